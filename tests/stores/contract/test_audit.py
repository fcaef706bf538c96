from __future__ import annotations

import asyncio
import json

import pytest

from backends import Backend
from pegboard.audit_entries import AuditEntry, ChainEnds, findings
from pegboard.protocols import AuditLines


def entry(number: int, at: float = 1_000.0) -> AuditEntry:
    return AuditEntry(at=at, event="call", door="mcp", caller="ann", tool=f"tool_{number}", outcome="ok")


async def lines(store: AuditLines) -> list[bytes]:
    return [line async for line in store.read()]


async def wrong(store: AuditLines, key: bytes = b"") -> list[str]:
    return [each.text for each in findings(await lines(store), ChainEnds.of(await store.ends()), key)]


async def test_an_empty_log_has_no_ends(backend: Backend) -> None:
    assert await lines(backend.audit()) == []
    assert await backend.audit().ends() == ""
    assert await backend.audit().remove(9_999.0) == 0


@pytest.mark.parametrize("key", [b"", b"a key"])
async def test_lines_come_back_in_the_order_they_were_written_as_one_chain(backend: Backend, key: bytes) -> None:
    await backend.audit(key).append([entry(1), entry(2)])
    await backend.audit(key).append([entry(3)])

    kept = await lines(backend.audit(key))
    assert [json.loads(line)["tool"] for line in kept] == ["tool_1", "tool_2", "tool_3"]
    assert [json.loads(line)["number"] for line in kept] == [1, 2, 3]
    assert await wrong(backend.audit(key), key) == []
    assert await backend.audit(key).ends() == ChainEnds.of(await backend.audit(key).ends()).text(key)


async def test_processes_that_write_at_once_make_one_chain(backend: Backend) -> None:
    stores = [backend.audit() for _ in range(4)]

    await asyncio.gather(*(stores[each % 4].append([entry(each), entry(each)]) for each in range(24)))

    assert len(await lines(backend.audit())) == 48
    assert await wrong(backend.audit()) == []


async def test_more_lines_than_a_page_come_back(backend: Backend) -> None:
    store = backend.audit()

    await store.append([entry(each) for each in range(1_203)])

    assert [json.loads(line)["number"] for line in await lines(store)] == [*range(1, 1_204)]


async def test_the_oldest_lines_can_be_removed_and_the_chain_goes_on(backend: Backend) -> None:
    store = backend.audit()
    await store.append([entry(each, at=float(each)) for each in range(1, 701)])

    assert await store.remove(600.5) == 600
    await backend.audit().append([entry(701, at=701.0)])

    kept = await lines(backend.audit())
    assert json.loads(kept[0])["number"] == 601
    assert await wrong(backend.audit()) == []
    ends = ChainEnds.of(await backend.audit().ends())
    assert (ends.removed.number, ends.last.number) == (600, 701)
    assert [each.text for each in findings(kept[5:], ends)] == ["the lines 601 to 605 are missing"]


async def test_a_log_whose_lines_were_all_removed_goes_on_where_it_was(backend: Backend) -> None:
    store = backend.audit()
    await store.append([entry(1), entry(2)])

    assert await store.remove(2_000.0) == 2
    await store.append([entry(3, at=3_000.0)])

    assert [json.loads(line)["number"] for line in await lines(store)] == [3]
    assert await wrong(store) == []


async def test_lines_that_are_removed_while_a_log_is_read_hide_no_others(backend: Backend) -> None:
    await backend.audit().append([entry(each, at=float(each)) for each in range(1, 2_001)])
    seen = list[int]()

    async for line in backend.audit().read():
        seen.append(json.loads(line)["number"])
        if len(seen) == 10:
            await backend.audit().remove(299.0)
        if len(seen) == 600:
            await backend.audit().remove(1_499.0)

    assert seen == sorted(set(seen))
    assert {*range(1_500, 2_001)} <= {*seen}
    assert {*range(300, 1_001)} - {*seen} <= {*range(601, 1_001)}


async def test_lines_after_one_whose_clock_was_wrong_are_kept_as_long_as_others(backend: Backend) -> None:
    day, now = 86_400.0, 20_000 * 86_400.0
    store = backend.audit()
    for number, at in enumerate([now - day, now - 5_000 * day, now]):
        await store.append([entry(number, at=at)])

    assert await store.remove(now - 365 * day) == 0
    assert len(await lines(backend.audit())) == 3
    assert await store.remove(now - day) == 2
    assert await wrong(backend.audit()) == []
