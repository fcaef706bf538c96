"""How often a process reads the pins of a store: as often for two hundred users as for one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

import pytest

from failing import Failing
from pegboard.catalog import Catalog, fingerprint
from pegboard.errors import StoreError
from pegboard.gateways.mcp.trust.user_approvals import UserPins
from pegboard.model import Pin, Server, ServerName, Tool, ToolId
from pegboard.stores import MemoryEvents, MemoryPins
from pegboard.testing import FakeClock, fake_tool
from pegboard.trust.approvals import Approvals
from pegboard.trust.every_user import for_every_user
from pegboard.trust.pin_reads import ApprovalWatch, GatheredPins
from processes import until

OLD, NEW = fake_tool("dig", "Dig a hole", server="garden"), fake_tool("dig", "Dig a deep hole", server="garden")
GARDEN = Server(name=ServerName("garden"))
READS = ("get", "version", "wordings")


def catalog(tool: Tool) -> Catalog:
    return Catalog.build([(GARDEN, [tool])])


@pytest.fixture
def store() -> Failing:
    return Failing(MemoryPins())


class Process:
    """The approvals of users who are here, as a gateway has them, in one process on the store."""

    def __init__(self, store: Failing, users: int, events: MemoryEvents, clock: FakeClock) -> None:
        self.store = store
        shared = GatheredPins(store)
        self.users = [
            Approvals(
                UserPins(shared, f"user-{number}", lambda server: server == "garden"),
                "quarantine",
                events=events,
                clock=clock,
                changed=lambda: None,
            )
            for number in range(users)
        ]
        self.watch = ApprovalWatch(shared, self._wake, is_strict=lambda: True)

    def _wake(self) -> None:
        for each in self.users:
            each.wake()

    async def listed(self, catalog: Catalog) -> None:
        for each in self.users:
            await each.see(catalog)

    @property
    def admits(self) -> int:
        """How many users are listed the new definition."""
        return sum(bool(each.admitted(catalog(NEW)).tools) for each in self.users)

    def reads(self) -> int:
        """Reads since the last time."""
        made = sum(name in READS for name in self.store.asked)
        self.store.asked.clear()
        return made


@pytest.mark.parametrize("number", [1, 200])
async def test_reads_of_approvals_do_not_grow_with_users(
    store: Failing, events: MemoryEvents, clock: FakeClock, number: int
) -> None:
    process = Process(store, number, events, clock)
    await process.listed(catalog(OLD))
    async with AsyncExitStack() as stack:
        for each in process.users:
            stack.callback(asyncio.create_task(each.run()).cancel)
        await process.watch.look()
        await until(lambda: not any(each._is_behind for each in process.users))
        await process.listed(catalog(NEW))
        assert process.admits == 0
        process.reads()

        for _ in range(3):  # three intervals in which nobody approves anything
            await process.watch.look()
        assert process.reads() == 3

        known = await store.store.get()
        [some, *_] = known
        await store.store.approve(for_every_user({some: known[some].seen}, known))  # another process does
        await process.watch.look()
        await until(lambda: process.admits == number)
        assert process.reads() == 2  # one number, and the pins of all

        await process.watch.look()
        assert process.reads() == 1


async def test_a_store_that_fails_when_something_was_approved_is_asked_again(
    store: Failing, events: MemoryEvents, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pegboard.trust.approvals.RETRY_SECONDS", 0.01)
    process = Process(store, 1, events, clock)
    [user] = process.users
    for each in (OLD, NEW):
        await process.listed(catalog(each))
    await process.watch.look()
    running = asyncio.create_task(user.run())
    await until(lambda: not user._is_behind)
    await store.store.approve({ToolId("garden@user-0", "dig"): fingerprint(NEW)})
    await process.watch.look()
    store.down = True
    asked = len(store.asked)
    await until(lambda: len(store.asked) > asked + 2)
    assert process.admits == 0
    store.down = False
    await until(lambda: process.admits == 1)
    running.cancel()


async def test_without_a_policy_that_holds_tools_back_the_store_is_not_asked(store: Failing) -> None:
    strict, told = False, []
    watch = ApprovalWatch(store, lambda: told.append("changed"), is_strict=lambda: strict)
    await watch.look()
    assert store.asked == []
    strict = True
    await watch.look()
    assert (store.asked, told) == (["version"], ["changed"])


class Counted(MemoryPins):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[set[ToolId] | None] = []

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        self.asked.append(None if tools is None else set(tools))
        await asyncio.sleep(0)
        return await super().get(tools)


async def test_what_is_asked_for_at_once_is_read_at_once_and_everybody_gets_their_own() -> None:
    store = Counted()
    await store.put({tool: fingerprint(OLD) for tool in (ToolId("a", "x"), ToolId("b", "x"))})
    store.asked.clear()
    gathered = GatheredPins(store)
    first, second, nothing, missing = await asyncio.gather(
        *(gathered.get(tools) for tools in ([ToolId("a", "x")], [ToolId("b", "x")], [], [ToolId("c", "x")]))
    )
    assert (list(first), list(second), nothing, missing) == ([ToolId("a", "x")], [ToolId("b", "x")], {}, {})
    assert store.asked == [{ToolId("a", "x"), ToolId("b", "x"), ToolId("c", "x")}]
    assert len(await gathered.get()) == 2
    await gathered.get([ToolId("a", "x")])
    assert len(store.asked) == 3


async def test_a_failed_read_fails_for_all_who_asked_and_one_who_left_harms_nobody(store: Failing) -> None:
    gathered = GatheredPins(store)
    left = asyncio.create_task(gathered.get([ToolId("a", "x")]))
    others = [asyncio.create_task(gathered.get([ToolId(name, "x")])) for name in "bc"]
    await asyncio.sleep(0)
    left.cancel()
    store.down = True
    for each in others:
        with pytest.raises(StoreError):
            await each
    store.down = False
    assert await gathered.get([ToolId("a", "x")]) == {}
