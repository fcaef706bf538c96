"""Definitions that a server lists to each user apart: one approval of a definition is for all users."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.gateways.mcp.trust.user_approvals import UserPins
from pegboard.model import Fingerprint, Pin, ToolId
from pegboard.stores import MemoryPins
from pegboard.trust.every_user import for_every_user

pytestmark = pytest.mark.requirement("M28")

FORK = ToolId("github", "fork")
OLD, NEW, OTHER = Fingerprint("old"), Fingerprint("new"), Fingerprint("other")


def pins_of(user: str, store: Any) -> UserPins:
    return UserPins(store, user, lambda server: server == "github")


async def approve_as_seen(store: MemoryPins, tool: ToolId) -> None:
    known = await store.get()
    await store.approve(for_every_user({tool: known[tool].seen}, known))


async def test_an_approval_of_what_one_user_is_listed_is_for_all_that_are_listed_the_same() -> None:
    store = MemoryPins()
    ann, bob, eve = (pins_of(name, store) for name in ("ann", "bob", "eve"))
    for each in (ann, bob, eve):
        await each.put({FORK: OLD})
    await ann.put({FORK: NEW})
    assert (await ann.put({FORK: NEW}))[FORK].changed
    assert (await bob.put({FORK: NEW}))[FORK].changed

    await approve_as_seen(store, ToolId("github@ann", "fork"))

    assert not [
        tool for tool, pin in (await store.get()).items() if pin.changed
    ]  # bob's, too, whether he is here or not
    assert await eve.put({FORK: NEW}) == {FORK: Pin(approved=NEW, seen=NEW)}  # listed to her later
    assert (await eve.get([FORK]))[FORK] == Pin(approved=NEW, seen=NEW)


async def test_another_definition_is_not_approved_with_it() -> None:
    store = MemoryPins()
    ann, bob = pins_of("ann", store), pins_of("bob", store)
    for each in (ann, bob):
        await each.put({FORK: OLD})
    await ann.put({FORK: NEW})
    await bob.put({FORK: OTHER})

    await approve_as_seen(store, ToolId("github@ann", "fork"))

    assert (await bob.get([FORK]))[FORK] == Pin(approved=OLD, seen=OTHER)
    assert (await bob.put({FORK: OLD}))[FORK] == Pin(approved=OLD, seen=OLD)


async def test_approvals_of_shared_servers_are_for_themselves_alone() -> None:
    store = MemoryPins()
    await store.put({ToolId("mail", "send"): OLD})
    await store.put({ToolId("mail", "send"): NEW})
    before = await store.get()

    await approve_as_seen(store, ToolId("mail", "send"))

    assert (await store.get()).keys() == before.keys()
