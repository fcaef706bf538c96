"""What belongs to a client's session, a caller's key or a server, and its removal.

What is held is removed first: a call that ends meanwhile is then charged to nobody.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping

from pegboard.records import KINDS, HoldRecord, Kind, MeterRecord, PinRecord, Record, StatisticsRecord
from pegboard.seams import Archive
from pegboard.stores.sessions import key_of

Removed = Mapping[Kind, int]
SPENDING: tuple[Kind, ...] = ("hold", "meter")
TOOLS: tuple[Kind, ...] = ("statistics", "pin")


async def forget_session(archive: Archive, session: str, endpoints: Collection[str]) -> Removed:
    """What is known of a session by the id that its client has, at these endpoints; and what it spent.

    What it added to the totals of its key and of the days stays in those.
    """
    known = _names(session, endpoints)

    def is_its(record: Record) -> bool:
        match record:
            case HoldRecord():
                return _session_of(record.session)[1] in known
            case MeterRecord(kind="session"):
                return _session_of(record.name)[1] in known
        return False

    return await _spending(archive, is_its) | {"session": await _sessions(archive, known)}


async def forget_caller(archive: Archive, caller: str, endpoints: Collection[str]) -> Removed:
    """What was spent with a key, by its name, in all, on each day and in each session; and those sessions."""
    names = set[str]()

    def is_its(record: Record) -> bool:
        match record:
            case HoldRecord():
                return record.caller == caller
            case MeterRecord(kind="key"):
                return record.name == caller
            case MeterRecord(kind="day"):
                return record.name.partition(" ")[2] == caller
            case MeterRecord():
                key, session = _session_of(record.name)
                if key == caller:
                    names.update(_names(session, endpoints))
                return key == caller
        return False

    return await _spending(archive, is_its) | {"session": await _sessions(archive, names)}


async def forget_tools(archive: Archive, belongs: Callable[[str, str], bool]) -> Removed:
    """Statistics and pins of the tools for which ``belongs(server, name)``. They are pinned anew as they are seen."""

    def is_its(record: Record) -> bool:
        return isinstance(record, StatisticsRecord | PinRecord) and belongs(record.server, record.name)

    return {kind: await _remove(archive, kind, is_its) for kind in TOOLS}


async def forget_everything(archive: Archive) -> Removed:
    return {kind: await archive.remove(kind) for kind in reversed(KINDS)}


async def _spending(archive: Archive, chosen: Callable[[Record], bool]) -> dict[Kind, int]:
    return {kind: await _remove(archive, kind, chosen) for kind in SPENDING}


async def _sessions(archive: Archive, names: Collection[str]) -> int:
    return await archive.remove("session", keys=[(name,) for name in names])


async def _remove(archive: Archive, kind: Kind, chosen: Callable[[Record], bool]) -> int:
    keys = [record.identity async for record in archive.read(kind) if chosen(record)]
    return await archive.remove(kind, keys=keys)


def _names(session: str, endpoints: Collection[str]) -> set[str]:
    """All that a session may be called in a store."""
    return {session, *(key_of(session, endpoint) for endpoint in endpoints)}


def _session_of(meter: str) -> tuple[str, str]:
    """The key and the session of a session's meter, as `spending.meters` names it."""
    try:
        key, session = json.loads(meter)
    except (ValueError, TypeError):
        return "", meter
    return str(key), str(session)
