"""openai-agents with answers that the provider keeps, whose model searches beside the calls that it makes.

`scripts/install_frameworks.py` installs it; the provider refuses a history in which a call has no result.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from mock_providers.scripted import Says, Seen
from stored_talks import FEW, JOBS, PICKED, hasty, hints, model, opened, wants

INSTALLED = Path(".demo/frameworks/openai-agents")
DRIVER = Path(__file__).parent / "drive_stored_answers.py"
ASKED = ["renew_loan", "convert_currency"]
CALLED = {"beside": ["renew_loan", "weather_forecast", "convert_currency", "water_plants"], "alone": ASKED}


@pytest.mark.requirement("openai.stored-answers")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("streams", ["whole", "streamed"])
@pytest.mark.parametrize("history", ["ids", "items"])
@pytest.mark.parametrize("searches", CALLED)
def test_openai_agents_make_the_calls_of_the_model_and_end(searches: str, history: str, streams: str) -> None:
    if not (INSTALLED / "installed.txt").exists():
        pytest.skip("scripts/install_frameworks.py installs it")
    jobs = {tool["name"]: JOBS[tool["name"]] for tool in FEW}

    def says(seen: Seen) -> Says:
        return hasty(seen) if searches == "beside" else model(seen, search="search_tools")

    with opened(PICKED, PICKED) as doors:
        doors.mock.model = says
        ran = subprocess.run(
            [INSTALLED / "bin/python", DRIVER, f"http://{doors.addresses[0]}", history, streams],
            input=json.dumps([jobs, [wants(name) if searches == "beside" else hints(name) for name in ASKED]]),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        assert doors.mock.refused == []
        assert any("search_tools" in json.dumps(items) for items in doors.mock.stored.values())
    told = json.loads(ran.stdout)
    assert told == {"called": CALLED[searches], "texts": ["Done."] * len(ASKED)}
