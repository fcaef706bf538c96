"""The pages of activity: sums by day, the decisions, one decision, conversations, the stream and the CSV."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request

from pegboard.activity_entries import (
    CHOSEN,
    DAY_SECONDS,
    ActivityEntry,
    ActivityQuery,
    ActivityTotals,
    Grouping,
    summed,
)
from pegboard.activity_export import FORMATS, decisions
from pegboard.activity_outcomes import DecisionOutcomes, decision_outcomes
from pegboard.activity_report import day_name
from pegboard.errors import PegboardError
from pegboard.gateways.dashboard.charts import BarChart, bar_chart
from pegboard.gateways.dashboard.page_templates import PageTemplates
from pegboard.protocols import Activity, Archive
from pegboard.records import MeterRecord
from pegboard.spend_limits import BUDGET
from pegboard.telemetry.activity_recorder import ActivityRecorder

PERIODS = (1, 7, 30)
"""Days that the overview sums up, today included."""
PAGE = 50
LIVE = 200
"""Entries that a live list has at most, as in live.js."""
EXPORTED = 100_000
"""Most entries of a file."""
GROUPS = 200
JUDGED = 1_000
"""Decisions whose calls are compared with what was offered."""
MOST_OUTCOMES = 20
DOORS = ("llm", "mcp", "api")
OUTCOMES = ("filtered", "unchanged", "passed", "off", "shadow", "found", "nothing found")
"""Those that a list is most often narrowed to; any other can be typed."""
SUGGESTED: tuple[Grouping, ...] = ("client", "model", "tool")
MOST_SUGGESTED = 50
"""Names of each of them that are offered, those that were seen last."""
ALIVE = 15.0
"""Seconds between two signs of life of a stream, at which the rights of its viewer are checked again."""


class ActivityPages:
    """Each page as the values of its template."""

    def __init__(self, recorder: ActivityRecorder, archive: Archive, now: Callable[[], float]) -> None:
        self._recorder = recorder
        self._store = recorder.store
        self._archive = archive
        self._now = now
        self._has_parquet = find_spec("pyarrow") is not None

    async def overview(self, request: Request) -> dict[str, Any]:
        asked = request.query_params.get("days", "")
        period = int(asked) if asked in map(str, PERIODS) else 7
        today = int(self._now() // DAY_SECONDS)
        first = today - period + 1
        await self._recorder.flush()
        kept = dict(await self._store.by_day(first))
        days = [(day, kept.get(day, ActivityTotals())) for day in range(first, today + 1)]
        spent = await spending_by_day(self._archive, day_name(first))
        outcomes = await latest_outcomes(self._store)
        return {
            "outcomes": outcomes,
            "period": period,
            "periods": PERIODS,
            "days": [(day, each, spent.get(day_name(day), 0)) for day, each in reversed(days)],
            "totals": summed(each for _, each in days),
            "spent": sum(spent.get(day_name(day), 0) for day, _ in days),
            "tokens": _tokens_chart(days),
            "errors": _errors_chart(days),
            "models": [each for each in await self._store.by("model", first, GROUPS + 1) if each.name][:GROUPS],
            "doors": await self._store.by("door", first, len(DOORS)),
            "lost": self._recorder.lost,
        }

    async def activity(self, request: Request) -> dict[str, Any]:
        query = query_of(request.query_params)
        await self._recorder.flush()
        entries = await self._store.find(query, PAGE + 1)
        shown, more = entries[:PAGE], len(entries) > PAGE
        chosen = filters_of(query)
        older = urlencode(chosen | {"before": f"{shown[-1].at!r}:{shown[-1].id}"}) if more else ""
        return {
            "entries": shown,
            "query": query,
            "doors": DOORS,
            "suggested": {"outcome": OUTCOMES} | {each: await self._names(each) for each in SUGGESTED},
            "older": older,
            "filters": urlencode(chosen),
            "live": query.before is None,
            "files": [("csv", "CSV"), *([("parquet", "Parquet")] if self._has_parquet else [])],
        }

    async def _names(self, grouping: Grouping) -> list[str]:
        """Names to choose from: a control character could not be seen in them."""
        found = [each.name for each in await self._store.by(grouping, 0, MOST_SUGGESTED)]
        return [name for name in found if name and name.isprintable()]

    async def decision(self, id_: str) -> dict[str, Any] | None:
        await self._recorder.flush()
        entry = await self._store.get(id_)
        return None if entry is None else {"entry": entry}

    async def conversations(self, request: Request) -> dict[str, Any]:
        await self._recorder.flush()
        groups = await self._store.by("conversation", 0, GROUPS + 1)
        return {"groups": [each for each in groups if each.name][:GROUPS], "most": GROUPS}

    async def exported(self, params: Mapping[str, str], kind: str) -> AsyncIterator[bytes]:
        """The entries as a file, the newest first. Raises ConfigError at once if there is no such kind."""
        await self._recorder.flush()
        pages = decisions(self._store, query_of(params), EXPORTED)
        return FORMATS[kind][1](pages)

    async def stream(
        self,
        params: Mapping[str, str],
        templates: PageTemplates,
        *,
        still: Callable[[], Awaitable[bool]],
        ends: Callable[[], bool],
    ) -> AsyncIterator[str]:
        """Rows as server-sent events, as they are stored, until the server ends or its viewer may not look. It begins
        with those that the list should have: what happened while nobody listened is among them."""
        query, checked = query_of(params), time.monotonic()
        with self._recorder.watched() as watcher:
            yield "retry: 2000\n\n"
            try:
                found = await self._store.find(query, LIVE)
            except PegboardError:  # the browser tries again
                return
            for kept in reversed(found):
                yield event_of(kept, templates)
                await asyncio.sleep(0)
            while not ends():
                if time.monotonic() - checked >= ALIVE:
                    if not await still():
                        return
                    checked = time.monotonic()
                    yield ": alive\n\n"
                try:
                    entry = await asyncio.wait_for(watcher.get(), 1.0)
                except TimeoutError:
                    continue
                if entry is None:
                    yield "event: behind\ndata:\n\n"
                elif query.passes(entry):
                    yield event_of(entry, templates)


async def latest_outcomes(store: Activity) -> DecisionOutcomes:
    """What came of the last `JUDGED` decisions."""
    found: list[ActivityEntry] = []
    async for page in decisions(store, ActivityQuery(), JUDGED):
        found += page
    return decision_outcomes(found, MOST_OUTCOMES)


def event_of(entry: ActivityEntry, templates: PageTemplates) -> str:
    row = templates.render("row.html", {"entry": entry})
    return f"event: entry\nid: {entry.id}\n{''.join(f'data: {line}' + chr(10) for line in row.splitlines())}\n"


def query_of(params: Mapping[str, str]) -> ActivityQuery:
    """The query of an address; what cannot be read is left out."""
    at, _, id_ = params.get("before", "").partition(":")
    try:
        before = (float(at), id_) if id_ else None
    except ValueError:
        before = None
    given: dict[str, Any] = {name: _storable(params.get(name)) for name in (*CHOSEN, "tool")}
    if given["door"] not in DOORS:
        given["door"] = None
    return ActivityQuery(**given, failed=params.get("failed") == "1", before=before)


def filters_of(query: ActivityQuery) -> dict[str, str]:
    """The parameters of a query, but for the page."""
    named = {name: getattr(query, name) for name in (*CHOSEN, "tool")}
    return {name: value for name, value in named.items() if value} | ({"failed": "1"} if query.failed else {})


async def spending_by_day(archive: Archive, first: str) -> dict[str, int]:
    """What calls of tools cost on each day (UTC) from the ``first`` on, in billionths of a dollar."""
    spent: dict[str, int] = {}
    async for record in archive.read("meter", after=("day", first)):
        if not isinstance(record, MeterRecord) or record.kind != "day":
            break  # days come first
        if BUDGET not in record.name:
            day = record.name.partition(" ")[0]
            spent[day] = spent.get(day, 0) + record.spent
    return spent


def _storable(text: str | None) -> str | None:
    """The text of a filter; None for an empty one."""
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd") if text else None


def _tokens_chart(days: list[tuple[int, ActivityTotals]]) -> BarChart:
    return bar_chart(
        "Tokens of tool definitions and shortened results by day: sent and saved. The table below has the figures.",
        [("sent", "sent"), ("saved", "saved")],
        [
            (
                day_name(day)[5:],
                f"{day_name(day)}: {each.tokens_after:,} sent, {each.tokens_saved:,} saved",
                [float(each.tokens_after), float(max(0, each.tokens_saved))],
            )
            for day, each in days
        ],
    )


def _errors_chart(days: list[tuple[int, ActivityTotals]]) -> BarChart:
    return bar_chart(
        "Decisions with an error and failed calls by day. The table below has the figures.",
        [("error", "errors"), ("failure", "failed calls")],
        [
            (
                day_name(day)[5:],
                f"{day_name(day)}: {each.errors:,} errors, {each.failures:,} failed calls",
                [float(each.errors), float(each.failures)],
            )
            for day, each in days
        ],
    )
