from __future__ import annotations

import asyncio

from backends import Backend
from pegboard.gateways.mcp.trust.content_pins import ContentPins, pin_of
from pegboard.model import NEVER, Fingerprint, Pin, ServerName, ToolId, Wording
from pegboard.stores import MemoryEvents
from pegboard.testing import FakeClock

LOG, NOW = ToolId("git", "log"), ToolId("time", "now")
A, B, C = (Fingerprint(letter * 64) for letter in "abc")


async def test_what_is_seen_first_is_approved(backend: Backend) -> None:
    store = backend.pins()

    assert await store.get([LOG]) == {}
    assert await store.put({LOG: A, NOW: B}) == {LOG: Pin(approved=A, seen=A), NOW: Pin(approved=B, seen=B)}
    assert not (await store.get([LOG]))[LOG].changed


async def test_what_is_seen_later_is_noted_and_not_approved(backend: Backend) -> None:
    await backend.pins().put({LOG: A})

    seen = await backend.pins().put({LOG: B})

    assert seen == {LOG: Pin(approved=A, seen=B)}
    assert seen[LOG].changed
    assert await backend.pins().get([LOG, NOW]) == seen


async def test_a_definition_that_goes_back_to_the_approved_one_is_as_before(backend: Backend) -> None:
    store = backend.pins()
    for fingerprint in (A, B, A):
        pins = await store.put({LOG: fingerprint})

    assert not pins[LOG].changed


async def test_only_the_fingerprint_that_was_looked_at_is_approved(backend: Backend) -> None:
    store = backend.pins()
    for fingerprint in (A, B, C):
        await store.put({LOG: fingerprint})

    await store.approve({LOG: B})
    assert (await store.get([LOG]))[LOG] == Pin(approved=B, seen=C)
    await store.approve({LOG: C})
    assert not (await store.get([LOG]))[LOG].changed


async def test_a_tool_can_be_approved_before_it_is_seen(backend: Backend) -> None:
    store = backend.pins()

    await store.approve({LOG: A})

    assert await store.put({LOG: B}) == {LOG: Pin(approved=A, seen=B)}


async def test_of_several_processes_that_see_a_tool_first_one_decides(backend: Backend) -> None:
    stores = [backend.pins() for _ in range(8)]
    seen = [Fingerprint(f"{number}" * 64) for number in range(8)]

    await asyncio.gather(*(store.put({LOG: one, NOW: one}) for store, one in zip(stores, seen, strict=True)))

    pins = [await store.get([LOG, NOW]) for store in stores]
    assert all(each == pins[0] for each in pins)
    assert pins[0][LOG].approved in seen


async def test_nothing_is_asked_and_nothing_is_put_without_harm(backend: Backend) -> None:
    store = backend.pins()

    assert await store.put({}) == {}
    await store.approve({})
    assert await store.get([]) == {}


async def test_all_pins_can_be_asked_for(backend: Backend) -> None:
    assert await backend.pins().get() == {}

    await backend.pins().put({LOG: A, NOW: B})

    assert await backend.pins().get() == {LOG: Pin(approved=A, seen=A), NOW: Pin(approved=B, seen=B)}


async def test_many_tools_of_any_name_are_pinned_at_once(backend: Backend) -> None:
    tools = {
        ToolId(f"sérver {number % 7}", f"tool/{number} \"'\\"): Fingerprint(str(number)) for number in range(1_500)
    }

    await backend.pins().put(tools)

    pins = await backend.pins().get(list(tools))
    assert {tool: pin.approved for tool, pin in pins.items()} == tools


async def test_what_is_doubted_is_not_approved_by_being_seen_first(backend: Backend) -> None:
    store = backend.pins()

    pins = await store.put({LOG: A, NOW: B}, doubted={LOG})

    assert pins == {LOG: Pin(approved=NEVER, seen=A), NOW: Pin(approved=B, seen=B)}
    assert (pins[LOG].new, pins[LOG].changed, pins[NOW].new) == (True, True, False)
    assert (await store.put({LOG: A}))[LOG].new, "nor by being seen again"
    await store.approve({LOG: A})
    assert (await store.put({LOG: A}, doubted={LOG}))[LOG] == Pin(approved=A, seen=A), "what is approved stays so"


async def test_the_texts_of_both_definitions_are_kept(backend: Backend) -> None:
    store = backend.pins()

    await store.put({LOG: A, NOW: A}, texts={LOG: "a"})
    assert await store.wordings([LOG, NOW]) == {LOG: Wording(approved="a", seen="a"), NOW: Wording()}
    await store.put({LOG: B}, texts={LOG: "b"})
    assert await store.wordings([LOG]) == {LOG: Wording(approved="a", seen="b")}
    await store.put({LOG: C}, texts={LOG: "c"})
    assert await store.wordings([LOG]) == {LOG: Wording(approved="a", seen="c")}
    await store.approve({LOG: C})
    assert await backend.pins().wordings([LOG]) == {LOG: Wording(approved="c", seen="c")}


async def test_a_text_stands_for_its_own_definition_only(backend: Backend) -> None:
    store = backend.pins()
    await store.put({LOG: A}, texts={LOG: "a"})
    await store.put({LOG: B}, texts={LOG: "b"})

    await store.approve({LOG: C})
    assert (await store.wordings([LOG]))[LOG].approved is None, "it was approved without having been seen"
    await store.put({LOG: C})
    assert await store.wordings([LOG]) == {LOG: Wording()}
    await store.put({LOG: C}, texts={LOG: "c"})
    assert await store.wordings([LOG]) == {LOG: Wording(approved="c", seen="c")}


async def test_a_definition_that_was_doubted_has_a_text_too(backend: Backend) -> None:
    store = backend.pins()
    await store.put({LOG: A}, texts={LOG: "a"}, doubted={LOG})
    assert await store.wordings([LOG]) == {LOG: Wording(seen="a")}

    await store.approve({LOG: A})

    assert await store.wordings([LOG, NOW]) == {LOG: Wording(approved="a", seen="a")}


async def test_every_process_sees_by_a_number_that_something_was_approved(backend: Backend) -> None:
    store, other = backend.pins(), backend.pins()
    await store.put({LOG: A})
    before = await other.version()

    await store.put({LOG: B})
    assert await other.version() == before, "what is only seen changes no approval"
    await store.approve({LOG: B})
    approved = await other.version()
    assert approved != before
    await store.approve({NOW: C})
    assert await other.version() not in (before, approved)


async def test_resources_of_long_addresses_and_odd_texts_are_pinned_and_hide_no_other(
    backend: Backend, events: MemoryEvents, clock: FakeClock
) -> None:
    server, long = ServerName("files"), [f"https://a.example/{ending}" for ending in ("é" * 4_000, "é" * 3_999)]
    given = [{"uri": uri, "name": "x"} for uri in (*long, "a://b")] + [{"uri": "a://c", "description": "\ud800"}]
    pins = ContentPins(backend.pins(), "quarantine", events=events, clock=clock)

    assert await pins.admitted(server, "resources", given) == given
    changed = [each | {"name": "y"} for each in given]
    assert await pins.admitted(server, "resources", changed) == []
    assert len({pin_of(server, "resources", each) for each in given}) == len(given)
