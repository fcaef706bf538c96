"""The actions of `pegboard state` on the configured store."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import numpy as np

from pegboard.apps.cli.atomic_files import staged
from pegboard.apps.cli.configs import own_files_agreed
from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import ConfigError
from pegboard.evaluation.progress_bar import bar
from pegboard.habit_trial import trial_of
from pegboard.habits import TRIAL, caller_of
from pegboard.model import ToolId
from pegboard.protocols import About
from pegboard.records import KINDS, STATE, HabitRecord, Kind, MeterRecord, PinRecord, Record
from pegboard.results.result_shaper import owner_mark
from pegboard.routing.habit_book import is_control
from pegboard.settings import Settings, load_settings
from pegboard.spend_limits import BUDGET, day_of
from pegboard.stores import erasure, transfer
from pegboard.stores.state import State, open_state
from pegboard.trust.every_user import of_every_user
from pegboard.trust.tool_keys import tool_key

TABLES: Mapping[str, Kind] = {
    "statistics": "statistics",
    "lessons": "lesson",
    "habits": "habit",
    "pins": "pin",
    "spend": "meter",
}
"""The records of each table of `pegboard state show`."""
MOST_CALLERS = 100_000
"""Names of callers under which a session is looked for."""
REPORTED = 100
"""Records after which the progress bar is updated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenStore:
    """An open store, and its description at the time of opening."""

    settings: Settings
    state: State
    about: About

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The whole board and every toolset, each of which has its own sessions."""
        return ("", *self.settings.toolsets)


@asynccontextmanager
async def opened(files: Sequence[Path] | None) -> AsyncIterator[OpenStore]:
    settings = load_settings(files or own_files_agreed())
    state = open_state(settings, SYSTEM_CLOCK)
    try:
        yield OpenStore(settings=settings, state=state, about=await state.archive.about())
    finally:
        await state.close()


async def look(files: Sequence[Path] | None, tables: Sequence[str]) -> dict[str, Any]:
    """The output of `pegboard state show --json`, with these tables."""
    async with opened(files) as kept:
        archive, today = kept.state.archive, day_of(SYSTEM_CLOCK.time())
        spent = {"today": 0, "in_all": 0}
        async for meter in archive.read("meter"):
            match meter:
                case MeterRecord(name=name) if BUDGET in name:
                    continue  # it is in the account of everybody too
                case MeterRecord(kind="day", name=name) if name.partition(" ")[0] == today:
                    spent["today"] += meter.spent
                case MeterRecord(kind="key"):
                    spent["in_all"] += meter.spent
        changed = [pin async for pin in archive.read("pin") if isinstance(pin, PinRecord) and pin.approved != pin.seen]
        return {
            **asdict(kept.about),
            "spent_usd": {when: amount / 1e9 for when, amount in spent.items()},
            "pins_changed": len(changed),
            "retention_days": kept.settings.retention.model_dump(),
            **{name: await _rows(kept, name) for name in tables},
        }


async def _rows(kept: OpenStore, table: str) -> list[dict[str, Any]]:
    """The records of a table; habits are summed up by key."""
    records = [record async for record in kept.state.archive.read(TABLES[table])]
    if table != "habits":
        return [_fields(record) for record in records]
    habits = (record for record in records if isinstance(record, HabitRecord))
    share = kept.settings.usage.control
    return [_habits(key, list(rows), share) for key, rows in groupby(habits, key=lambda record: record.key)]


def _habits(key: str, rows: Sequence[HabitRecord], control: float) -> dict[str, Any]:
    trial = trial_of({row.name: np.frombuffer(row.sums, "<f4") for row in rows if row.server == TRIAL})
    difference = trial.difference()
    return {
        "key": key,
        "tools": sum(row.server != TRIAL for row in rows),
        "control": is_control(key, control),
        "used_now": trial.is_used,
        "epoch": trial.epoch,
        "calls": trial.calls,
        "difference": None if difference is None else asdict(difference),
        "used": max(row.used for row in rows),
    }


async def export(files: Sequence[Path] | None, target: Path | None, *, embeddings: bool) -> Mapping[Kind, int]:
    kinds = KINDS if embeddings else STATE
    async with opened(files) as kept:
        total = sum(kept.about.counts[kind] for kind in kinds)
        with _output(target) as file, _progress("exporting", total) as report:
            return await transfer.export(kept.state.archive, kinds, file, now=SYSTEM_CLOCK.time(), report=report)


async def import_(files: Sequence[Path] | None, source: Path, *, merge: bool) -> tuple[Mapping[Kind, int], int]:
    """The records of each kind in the file, and the number stored. Raises ConfigError; nothing is stored then."""
    counts = Counter(record.record for record in transfer.records(source))
    async with opened(files) as kept:
        there = sum(kept.about.counts[kind] for kind in STATE)
        if there and not merge:
            raise ConfigError(
                f"The store at {kept.about.place} is not empty: it has {there:,} records.",
                remedy="Import with --merge, or `pegboard state forget --everything` first.",
            )
        with _progress("importing", counts.total()) as report:
            records = _reported(transfer.records(source), report)
            return counts, await kept.state.archive.write(records)


async def forget(
    files: Sequence[Path] | None, what: str, value: str, *, agreed: Callable[[OpenStore], bool] | None
) -> Mapping[str, int]:
    """Remove records; returns their number by kind. ``agreed`` is asked first, if given."""
    async with opened(files) as kept:
        if agreed and not agreed(kept):
            raise ConfigError("Nothing was removed.", remedy="Confirm on a terminal, or give --yes.")
        return {kind: count for kind, count in (await _forgotten(kept, what, value)).items() if count}


async def _forgotten(kept: OpenStore, what: str, value: str) -> Mapping[Any, int]:
    ids = await _ids(kept, value) if what == "session" else set[str]()
    removed, activity = dict(await _forget(kept, what, value, ids)), kept.state.activity
    if what not in ("session", "key", "everything"):
        return removed
    removed["result"] = sum([await kept.state.results.forget(owner) for owner in _owners(what, value, ids)])
    if activity is None:
        return removed
    whose: dict[str, dict[str, Any]] = {"session": {"session": value, "ids": ids}, "key": {"caller": value}}
    forgotten = await erasure.forget_activity(activity, endpoints=kept.endpoints, **whose.get(what, {}))
    return {**removed, "activity": forgotten}


def _owners(what: str, value: str, ids: Iterable[str]) -> list[str | None]:
    """Whose results are removed; a key and a subject of the issuer may have the same name."""
    match what:
        case "session":
            return [owner_mark("session", each) for each in (*ids, f"conversation {value}")]
        case "key":
            return [owner_mark("key", value), owner_mark("subject", value)]
    return [None]


async def _ids(kept: OpenStore, session: str) -> set[str]:
    """Those that gateways gave a session, also of callers that only the store knows: subjects of an issuer are not
    configured."""
    from pegboard.gateways.stored_names import session_ids

    activity, habits = kept.state.activity, kept.state.archive.read("habit")
    seen = [] if activity is None else await activity.by("key", 0, MOST_CALLERS)
    taught = {caller_of(record.key) async for record in habits if isinstance(record, HabitRecord)}
    return session_ids(session, kept.settings, {each.name for each in seen} | taught)


async def _forget(kept: OpenStore, what: str, value: str, ids: Collection[str]) -> Mapping[Any, int]:
    archive = kept.state.archive
    match what:
        case "session":
            return await erasure.forget_session(archive, value, kept.endpoints, ids)
        case "key":
            from pegboard.gateways.stored_names import budget_keys

            return await erasure.forget_caller(archive, value, kept.endpoints, budget_keys(value, kept.settings))
        case "server":
            servers = {*kept.settings.servers, value}
            return await erasure.forget_tools(
                archive, lambda *tool: of_every_user(ToolId(*tool), servers).server == value
            )
        case "tool":
            servers = {*kept.settings.servers, *(value[:end] for end, letter in enumerate(value) if letter == "/")}
            return await erasure.forget_tools(
                archive, lambda *tool: value in _names(of_every_user(ToolId(*tool), servers))
            )
        case "lessons":
            return {"lesson": await archive.remove("lesson")}
        case "habits":
            return {"habit": await archive.remove("habit")}
        case "expired":
            return await kept.state.retirement.once()
    return await erasure.forget_everything(archive)


def _names(key: ToolId) -> tuple[str, ...]:
    """The name of what goes by this key, and that of the tool whose pin has it, if that is another one."""
    tool = ToolId(key.server, key.name.removeprefix("tools/"))
    return (str(key), str(tool)) if tool_key(tool) == key else (str(key),)


def _fields(record: Record) -> dict[str, Any]:
    return {name: value for name, value in asdict(record).items() if name != "record"}


def _reported(records: Iterable[Record], report: transfer.Report) -> Iterator[Record]:
    for number, record in enumerate(records, start=1):
        report(number)
        yield record


@contextmanager
def _progress(label: str, total: int) -> Iterator[transfer.Report]:
    with bar(label) as progress:
        yield lambda done: progress(done, max(done, total)) if done % REPORTED == 0 else None


@contextmanager
def _output(target: Path | None) -> Iterator[IO[bytes]]:
    if target is None:
        yield sys.stdout.buffer
    else:
        with staged(target, private=True) as file:
            yield file
