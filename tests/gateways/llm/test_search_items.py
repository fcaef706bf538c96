"""A model that searches for tools through the gateway finds the skills and agents of its configuration, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mock_providers.scripted import Calls, Says, Seen
from model_doors import gateway_beside

pytest.importorskip("langchain_google_genai", reason="pip install --group sdks")

from sdk_agents import AGENTS, Job
from sdk_drivers import RENEW

BODY = "Read the tide at each harbour first, then the wind."
SKILL = f"---\nname: sailing-plan\ndescription: Plans a day at sea\n---\n{BODY}\n"
AGENT = {"name": "Ferry desk", "description": "Books ferries across the sea", "url": "https://agents.example/ferries"}


@pytest.mark.requirement("025.items-everywhere")
@pytest.mark.parametrize("limits", [{}, {"most": {"skill": 0}, "budgets": {"agent": 1}}], ids=["default", "none"])
def test_a_search_of_a_model_brings_the_best_skill_with_its_text_and_the_agents_that_match(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, dict[str, int]]
) -> None:
    monkeypatch.setenv("PEGBOARD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PEGBOARD_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "skills" / "sailing-plan").mkdir(parents=True)
    (tmp_path / "skills" / "sailing-plan" / "SKILL.md").write_text(SKILL)
    (tmp_path / "ferries.json").write_text(json.dumps(AGENT))
    items = {"skills": [tmp_path / "skills"], "agents": [tmp_path / "ferries.json"], **limits}

    def model(seen: Seen) -> Says:
        if "search_tools" in seen.answered:
            return Says(text="done")
        return Says(calls=[Calls(tool="search_tools", arguments={"query": "a day at sea"})])

    with gateway_beside(policy={"k": 2, "ways": ["tools"], "way_back": True}, items=items) as gateway:
        gateway.mock.model = model
        AGENTS["chat"].run(gateway.url, Job(ask=RENEW))
        last = gateway.mock.received[-1].body.decode()

    assert (BODY in last, AGENT["url"] in last) == ((True, True) if not limits else (False, False))
