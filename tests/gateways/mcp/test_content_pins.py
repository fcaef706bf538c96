"""Prompts, resources and skills are pinned as tools are: a change is told of, or held back until it is approved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pegboard.errors import StoreError
from pegboard.events import DefinitionChanged
from pegboard.gateways.mcp.resources.resource_listing import Kind
from pegboard.gateways.mcp.trust.content_pins import ContentPins, pin_of
from pegboard.model import Fingerprint, Pin, ServerName, ToolId
from pegboard.settings.storage import PinPolicy
from pegboard.stores import MemoryEvents
from pegboard.stores.memory import MemoryPins
from pegboard.testing import FakeClock

SERVER = ServerName("notes")
PROMPT = {"name": "review", "description": "Review a change"}
ITEMS: list[tuple[Kind, dict[str, Any], dict[str, Any]]] = [
    ("prompts", PROMPT, {**PROMPT, "description": "Approve a change"}),
    ("prompts", PROMPT, {**PROMPT, "arguments": [{"name": "key"}]}),
    ("resources", {"uri": "a://b", "name": "b"}, {"uri": "a://b", "name": "c"}),
    ("resourceTemplates", {"uriTemplate": "a://{b}", "name": "b"}, {"uriTemplate": "a://{b}", "name": "c"}),
    ("skills", {"uri": "skill://s/SKILL.md", "resources": []}, {"uri": "skill://s/SKILL.md", "resources": ["x"]}),
]


class DownPins(MemoryPins):
    """A store that has gone down, once ``down`` is set."""

    down = False

    async def put(self, seen: Mapping[ToolId, Fingerprint], **more: Any) -> Mapping[ToolId, Pin]:
        if self.down:
            raise StoreError("down")
        return await super().put(seen, **more)


@pytest.mark.requirement("M28")
@pytest.mark.parametrize(("kind", "first", "then"), ITEMS)
@pytest.mark.parametrize(("policy", "told", "left"), [("allow", 0, 1), ("warn", 1, 1), ("quarantine", 1, 0)])
async def test_a_changed_item_is_told_of_once_and_held_back_under_quarantine(
    events: MemoryEvents,
    clock: FakeClock,
    kind: Kind,
    first: dict[str, Any],
    then: dict[str, Any],
    policy: PinPolicy,
    told: int,
    left: int,
) -> None:
    store = MemoryPins()
    pins = ContentPins(store, policy, events=events, clock=clock)
    assert await pins.admitted(SERVER, kind, [first]) == [first]
    for _ in range(2):
        assert len(await pins.admitted(SERVER, kind, [then])) == left
    assert [event.tool for event in events.of(DefinitionChanged)] == [str(pin_of(SERVER, kind, first))] * told

    known = await store.get()
    await store.approve({pin: each.seen for pin, each in known.items()})
    assert await pins.admitted(SERVER, kind, [then]) == [then]


async def test_what_a_server_lists_no_more_is_forgotten(
    events: MemoryEvents, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.gateways.mcp.trust.content_pins.MOST_KEPT", 5)
    pins = ContentPins(MemoryPins(), "warn", events=events, clock=clock)
    for number in range(9):
        for text in ("a", "b"):
            items = [{"uri": f"a://{number}/{at}", "name": "x", "description": text} for at in range(3)]
            await pins.admitted(SERVER, "resources", items)

    (known,), (told,) = pins._known.values(), pins._told.values()
    assert (len(known), len(told)) == (5, 5)
    assert len(events.of(DefinitionChanged)) == 27


async def test_what_changes_by_itself_is_not_pinned(events: MemoryEvents, clock: FakeClock) -> None:
    pins = ContentPins(MemoryPins(), "quarantine", events=events, clock=clock)
    for size in (1, 2):
        grown = {"uri": "a://log", "name": "log", "size": size, "annotations": {"lastModified": str(size)}}
        assert await pins.admitted(SERVER, "resources", [grown]) == [grown]


async def test_while_the_store_is_down_only_what_is_known_is_listed_under_quarantine(
    events: MemoryEvents, clock: FakeClock
) -> None:
    store = DownPins()
    pins = ContentPins(store, "quarantine", events=events, clock=clock)
    await pins.admitted(SERVER, "prompts", [PROMPT])
    store.down = True
    assert await pins.admitted(SERVER, "prompts", [PROMPT, {"name": "unknown"}]) == [PROMPT]
    pins.policy = "warn"
    assert len(await pins.admitted(SERVER, "prompts", [PROMPT, {"name": "unknown"}])) == 2
