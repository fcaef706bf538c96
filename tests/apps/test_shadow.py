"""`pegboard shadow`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from pegboard.events import ShadowMeasured
from pegboard.telemetry.shadow_counts import FILE, ShadowCounts

Run = Callable[..., Result]

SEEN = ShadowMeasured(
    at=1_760_000_000.0,
    upstream="openai",
    model="some-model",
    key="team",
    policy="0a1b2c3d",
    tools=10,
    kept=2,
    tokens_before=1000,
    tokens_after=100,
    called=("create_issue",) * 9 + ("mute_alarm",),
    missed=("mute_alarm",),
)
NOT_SEEN = ShadowMeasured(at=1_760_000_001.0, upstream="gemini", model="m", key="", policy="ff", unmeasured="timeout")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PEGBOARD_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def counted(state: Path) -> None:
    counts = ShadowCounts(state / FILE)
    for event in (SEEN, NOT_SEEN):
        counts.emit(event)
    counts.close()


@pytest.mark.usefixtures("counted")
def test_each_route_has_what_would_have_been_saved_and_its_recall(run_json: Callable[..., Any]) -> None:
    routes = {route["upstream"]: route for route in run_json("shadow")["routes"]}

    assert routes["openai"] | {"first": 0, "last": 0} == {
        "upstream": "openai",
        "model": "some-model",
        "key": "team",
        "policy": "0a1b2c3d",
        "requests": 1,
        "measured": 1,
        "unmeasured": {},
        "tools": 10,
        "kept": 2,
        "tokens_before": 1000,
        "tokens_after": 100,
        "calls": 10,
        "missed": 1,
        "recall": [0.9, 0.5958, 0.9821],
        "first": 0,
        "last": 0,
    }
    assert (routes["gemini"]["recall"], routes["gemini"]["unmeasured"]) == (None, {"timeout": 1})


@pytest.mark.usefixtures("counted")
def test_tools_that_are_missed_most_come_first(run_json: Callable[..., Any]) -> None:
    tools = run_json("shadow", "--tools", 1)["tools"]

    assert [(each["tool"], each["calls"], each["missed"]) for each in tools] == [("mute_alarm", 1, 1)]


@pytest.mark.usefixtures("counted")
def test_for_people_it_is_a_table_with_intervals(run: Run) -> None:
    text = run("shadow").stdout

    assert "0.900 [0.596, 0.982]" in text
    assert "90.0%" in text
    assert "mute_alarm" in text
    assert "Not measured, timeout: 1 requests." in text


@pytest.mark.usefixtures("state")
def test_where_nothing_was_counted_it_says_how_to(run: Run, run_json: Callable[..., Any]) -> None:
    assert "shadow = true" in run("shadow").stdout
    assert run_json("shadow") == {"routes": [], "tools": []}


@pytest.mark.usefixtures("counted")
def test_what_was_counted_can_be_forgotten(run_json: Callable[..., Any]) -> None:
    assert run_json("shadow", "--forget") == {"removed": 2}
    assert run_json("shadow")["routes"] == []
