"""A tool's pin is no prompt's: each is approved for itself, whatever the tool is called."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from pegboard import Catalog
from pegboard.catalog import fingerprint
from pegboard.errors import NotApproved
from pegboard.gateways.mcp.resources.resource_listing import KINDS
from pegboard.gateways.mcp.trust.content_pins import pin_of, print_of
from pegboard.gateways.mcp.trust.server_approvals import ServerApprovals
from pegboard.model import Fingerprint, Server, ServerName, Tool, ToolId
from pegboard.stores import MemoryEvents, MemoryPins, SqliteArchive
from pegboard.testing import FakeClock, fake_tool
from pegboard.trust.fingerprints import text_of
from pegboard.trust.switches import Switches
from pegboard.trust.tool_keys import ITEM_KINDS, tool_key

NOTES = ServerName("notes")
TOOL, CHANGED = (fake_tool("prompts/review", said, server="notes") for said in ("Review it", "Send it away"))
PROMPT = {"name": "review", "description": "Review a change"}
ID, KEY = ToolId("notes", "prompts/review"), ToolId("notes", "tools/prompts/review")
Make = Callable[..., ServerApprovals]


def catalog(tool: Tool) -> Catalog:
    return Catalog.build([(Server(name=NOTES), [tool])])


@pytest.fixture
def store() -> MemoryPins:
    return MemoryPins()


@pytest.fixture
def approvals(store: MemoryPins, events: MemoryEvents, clock: FakeClock) -> Make:
    def make(switches: Switches | None = None) -> ServerApprovals:
        return ServerApprovals(
            store,
            "quarantine",
            contents="quarantine",
            events=events,
            clock=clock,
            changed=lambda: None,
            switches=switches,
        )

    return make


async def listed(trust: ServerApprovals, tool: Tool) -> list[str]:
    await trust.see(catalog(tool))
    return [each.name for each in trust.admitted(catalog(tool)).tools]


def test_no_tool_has_the_key_of_an_item_or_of_another_tool() -> None:
    names = [f"{'tools/' * deep}{kind}x" for deep, kind in product(range(4), ("", *(f"{kind}/" for kind in KINDS)))]
    keys = [tool_key(ToolId("notes", name)) for name in names]

    assert len(set(keys)) == len(names)
    assert not {pin_of(NOTES, kind, dict.fromkeys(("name", "uri", "uriTemplate"), "x")) for kind in KINDS} & set(keys)
    assert set(ITEM_KINDS) == set(KINDS)


async def test_a_tool_and_a_prompt_of_one_name_are_approved_apart(store: MemoryPins, approvals: Make) -> None:
    trust = approvals()

    assert await listed(trust, TOOL) == ["prompts/review"]
    assert await trust.contents.admitted(NOTES, "prompts", [PROMPT]) == [PROMPT]
    assert await listed(approvals(), TOOL) == ["prompts/review"]
    assert await listed(trust, CHANGED) == []

    await store.approve({ID: (await store.get([ID]))[ID].seen})
    await trust.ask()
    assert await listed(trust, CHANGED) == []
    with pytest.raises(NotApproved, match="pins approve notes/tools/prompts/review"):
        trust.check(ID)
    await store.approve({KEY: fingerprint(CHANGED)})
    await trust.ask()
    assert await listed(trust, CHANGED) == ["prompts/review"]


@pytest.mark.parametrize("tool", [TOOL, CHANGED])
async def test_what_was_approved_by_the_name_of_the_tool_is_approved_still(
    store: MemoryPins, approvals: Make, tool: Tool
) -> None:
    await store.put({ID: fingerprint(TOOL)}, texts={ID: text_of(ID, catalog(TOOL)) or ""})
    await store.put({ToolId("notes", ""): Fingerprint("whole")})

    assert await listed(approvals(), tool) == ([] if tool is CHANGED else ["prompts/review"])
    assert (await store.get([KEY]))[KEY].approved == fingerprint(TOOL)


async def test_what_was_approved_of_a_prompt_approves_no_tool(store: MemoryPins, approvals: Make) -> None:
    assert await approvals().contents.admitted(NOTES, "prompts", [PROMPT | {"description": '"inputSchema"'}])
    await store.put({ToolId("notes", ""): Fingerprint("whole")})

    assert await listed(approvals(), TOOL) == []
    assert (await store.get([KEY]))[KEY].new


async def test_a_rejected_tool_of_such_a_name_is_off(approvals: Make, clock: FakeClock, tmp_path: Path) -> None:
    switches = Switches(SqliteArchive(tmp_path / "s", tmp_path / "c", clock), clock, lambda: None)
    trust = approvals(switches)
    assert await listed(trust, TOOL) == ["prompts/review"]

    await switches.turn_off(KEY, who="ann", definition=fingerprint(TOOL))

    assert await listed(trust, TOOL) == []


async def test_a_tool_that_is_switched_off_hides_no_prompt_whose_pin_has_its_name(
    approvals: Make, clock: FakeClock, tmp_path: Path
) -> None:
    switches = Switches(SqliteArchive(tmp_path / "s", tmp_path / "c", clock), clock, lambda: None)
    trust = approvals(switches)

    async def seen() -> tuple[list[str], int]:
        return await listed(trust, TOOL), len(await trust.contents.admitted(NOTES, "prompts", [PROMPT]))

    assert await seen() == (["prompts/review"], 1)

    await switches.turn_off(ID, who="ann")
    assert await seen() == ([], 1)
    await switches.turn_on(ID)
    await switches.turn_off(ID, who="ann", definition=print_of(PROMPT))
    assert await seen() == (["prompts/review"], 0)
    await switches.turn_on(ID, print_of(PROMPT))
    await switches.turn_off(ToolId("notes", ""), who="ann")
    assert await seen() == ([], 0)
