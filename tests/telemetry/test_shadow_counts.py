from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pegboard.errors import ConfigError
from pegboard.events import Event, ShadowMeasured
from pegboard.telemetry import shadow_counts
from pegboard.telemetry.shadow_counts import OTHERS, ShadowCounts

SEEN = ShadowMeasured(
    at=5.0,
    upstream="openai",
    model="some-model",
    key="team",
    policy="0a1b2c3d",
    tools=10,
    kept=2,
    tokens_before=1000,
    tokens_after=100,
    called=("a", "b", "b"),
    missed=("b", "b"),
)
NOT_SEEN = ShadowMeasured(
    at=9.0, upstream="openai", model="some-model", key="team", policy="0a1b2c3d", unmeasured="timeout"
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shadow.sqlite"


def told(path: Path, *events: Event) -> list[shadow_counts.RouteCounts]:
    counts = ShadowCounts(path)
    for event in events:
        counts.emit(event)
    counts.close()
    return ShadowCounts(path).read()


def test_requests_of_one_route_are_added_up_over_processes(path: Path) -> None:
    told(path, SEEN)
    (route,) = told(path, replace(SEEN, at=7.0, called=("a",), missed=()), NOT_SEEN)

    assert (route.requests, route.measured, route.unmeasured) == (3, 2, {"timeout": 1})
    assert (route.tools, route.kept, route.tokens_before, route.tokens_after) == (20, 4, 2000, 200)
    assert route.calls == {"a": (2, 0), "b": (2, 2)}
    assert (route.called, route.missed, route.first, route.last) == (4, 2, 5.0, 9.0)


def test_routes_are_told_apart_and_the_one_used_last_comes_first(path: Path) -> None:
    routes = told(path, replace(SEEN, at=8.0), replace(SEEN, model="other", at=9.0), replace(SEEN, policy="ff", at=7.0))

    assert [(route.model, route.policy) for route in routes] == [
        ("other", "0a1b2c3d"),
        ("some-model", "0a1b2c3d"),
        ("some-model", "ff"),
    ]


def test_names_that_clients_make_up_take_bounded_room_and_no_call_is_lost(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shadow_counts, "MOST_ROUTES", 3)
    monkeypatch.setattr(shadow_counts, "MOST_NAMES", 2)
    names = [f"tool-{number}" for number in range(5)]
    routes = told(
        path,
        replace(SEEN, called=tuple(names), missed=tuple(names)),
        *(replace(SEEN, model=f"model-{number}") for number in range(9)),
    )

    assert len(routes) == 4
    assert routes[0].requests + routes[1].requests + routes[2].requests + routes[3].requests == 10
    of_many = next(route for route in routes if route.model == "some-model")
    assert of_many.calls == {"tool-0": (1, 1), "tool-1": (1, 1), OTHERS: (3, 3)}


def test_names_that_no_file_can_hold_cost_no_count(path: Path) -> None:
    (route,) = told(path, replace(SEEN, model="m\ud800", called=("t\udfff",), missed=()))

    assert (route.model, route.calls) == ("m?", {"t?": (1, 0)})


def test_other_events_are_none_of_its_business_and_make_no_file(path: Path) -> None:
    assert told(path, Event(at=1.0)) == []
    assert not path.exists()


def test_what_is_forgotten_begins_anew(path: Path) -> None:
    told(path, SEEN, NOT_SEEN)

    assert ShadowCounts(path).forget() == 2
    assert ShadowCounts(path).read() == []


def test_a_file_that_is_none_is_an_error_with_what_to_do(path: Path) -> None:
    path.write_text("not a database" * 100)

    with pytest.raises(ConfigError, match="cannot be used"):
        ShadowCounts(path).read()
