"""Removes everything that belongs to a client's session, a caller's key or a server.

Holds are removed first, so that a call that ends meanwhile is not charged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Mapping

from pegboard.activity_entries import conversation_mark
from pegboard.habits import caller_of
from pegboard.protocols import Activity, Archive
from pegboard.records import (
    KINDS,
    HabitRecord,
    HoldRecord,
    Kind,
    MeterRecord,
    PinRecord,
    Record,
    SessionRecord,
    StatisticsRecord,
)
from pegboard.stores.kept_answers import answer_mark, caller_and_marks
from pegboard.stores.sessions import session_key

Removed = Mapping[Kind, int]
SPENDING: tuple[Kind, ...] = ("hold", "meter")
TOOLS: tuple[Kind, ...] = ("statistics", "pin", "habit")


async def forget_session(
    archive: Archive, session: str, endpoints: Collection[str], ids: Collection[str] = ()
) -> Removed:
    """Forget the session that a client knows by this id, at these endpoints, and its spend; or what is known of the
    conversation with the answer of this id that a model provider keeps. ``ids`` are those that gateways gave it.

    Its share of the totals of its key and of each day stays.
    """
    known = _names({session, *ids}, endpoints)

    def is_its(record: Record) -> bool:
        match record:
            case HoldRecord():
                return _session_of(record.session)[1] in known
            case MeterRecord(kind="session"):
                return _session_of(record.name)[1] in known
        return False

    known |= await _answers(archive, lambda _, marks: answer_mark(session) in marks)
    return await _spending(archive, is_its) | {"session": await _sessions(archive, known)}


async def forget_caller(
    archive: Archive, caller: str, endpoints: Collection[str], budgets: Collection[str] = ()
) -> Removed:
    """Forget the spend of a key, by the key's name: in total, by day and by session; and forget those sessions,
    the answers to it that providers keep, and what its use taught. ``budgets`` are the keys of the accounts of what
    budgets count for it alone."""
    names, keys = set[str](), {caller, *budgets}

    def is_its(record: Record) -> bool:
        match record:
            case HoldRecord():
                return record.caller in keys
            case MeterRecord(kind="key"):
                return record.name in keys
            case MeterRecord(kind="day"):
                return record.name.partition(" ")[2] in keys
            case MeterRecord():
                key, session = _session_of(record.name)
                if key == caller:
                    names.update(_names([session], endpoints))
                return key in keys
        return False

    spent = await _spending(archive, is_its)
    names |= await _answers(archive, lambda whose, _: whose == caller)
    removed = spent | {"session": await _sessions(archive, names)}
    return removed | {"habit": await forget_habits(archive, caller)}


async def forget_habits(archive: Archive, caller: str) -> int:
    """Forget what the use of a key taught, by the key's name; the number of rows."""
    return await _remove(
        archive, "habit", lambda record: isinstance(record, HabitRecord) and caller_of(record.key) == caller
    )


async def forget_tools(archive: Archive, belongs: Callable[[str, str], bool]) -> Removed:
    """Forget statistics, pins and habits of the tools for which ``belongs(server, name)``. They are pinned again when
    seen."""

    def is_its(record: Record) -> bool:
        return isinstance(record, StatisticsRecord | PinRecord | HabitRecord) and belongs(record.server, record.name)

    return {kind: await _remove(archive, kind, is_its) for kind in TOOLS}


async def forget_activity(
    activity: Activity,
    *,
    session: str | None = None,
    caller: str | None = None,
    endpoints: Collection[str] = (),
    ids: Collection[str] = (),
) -> int:
    """Forget the decisions of a session, also by the ``ids`` that gateways gave it, or of a key; without either, all of
    them. The number."""
    names = set() if session is None else _names({session, *ids}, endpoints)
    marks = None if session is None else {conversation_mark(name) for name in names} - {""}
    return await activity.forget(key=caller, conversations=marks)


async def forget_everything(archive: Archive) -> Removed:
    return {kind: await archive.remove(kind) for kind in reversed(KINDS)}


async def _spending(archive: Archive, chosen: Callable[[Record], bool]) -> dict[Kind, int]:
    return {kind: await _remove(archive, kind, chosen) for kind in SPENDING}


async def _sessions(archive: Archive, names: Collection[str]) -> int:
    return await archive.remove("session", keys=[(name,) for name in names])


async def _answers(archive: Archive, chosen: Callable[[str, frozenset[str]], bool]) -> set[str]:
    """The keys of answers that providers keep, chosen by caller and marks, and of all others in their conversations."""
    known = {
        record.key: caller_and_marks(record.state.client)
        async for record in archive.read("session")
        if isinstance(record, SessionRecord)
    }
    found = [marks for whose, marks in known.values() if marks and chosen(whose, marks)]
    conversations = frozenset().union(*found)
    return {key for key, (_, marks) in known.items() if marks & conversations}


async def _remove(archive: Archive, kind: Kind, chosen: Callable[[Record], bool]) -> int:
    keys = [record.identity async for record in archive.read(kind) if chosen(record)]
    return await archive.remove(kind, keys=keys)


def _names(ids: Collection[str], endpoints: Collection[str]) -> set[str]:
    """Every key that sessions of these ids may have in a store: the id, the hash to which calls are charged, and those
    of the session's record."""
    return {
        name
        for each in ids
        for name in (
            each,
            hashlib.sha256(each.encode("utf-8", "surrogatepass")).hexdigest(),
            *(session_key(each, endpoint) for endpoint in endpoints),
        )
    }


def _session_of(meter: str) -> tuple[str, str]:
    """The key and the session in the name of a session's meter, as `spend_limits.meters` writes it."""
    try:
        key, session = json.loads(meter)
    except (ValueError, TypeError):
        return "", meter
    return str(key), str(session)
