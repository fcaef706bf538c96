"""The pages of a dashboard over a store with many decisions: times over HTTP, and the size of the store."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import typer

from pegboard.activity_entries import ActivityQuery
from pegboard.clock import SYSTEM_CLOCK
from pegboard.extras import required
from pegboard.gateways.mcp.transport.config_reload import Source
from pegboard.gateways.mcp.transport.http import PATH
from pegboard.gateways.serve import serving
from pegboard.protocols import Activity
from pegboard.settings import Settings, load_settings
from pegboard.stores.sqlite.backend import ACTIVITY_FILE
from pegboard.stores.state import State, open_state
from pegboard_bench.observability.decisions import ACTS, CLIENTS, MODELS, SERVERS, THINGS, decisions

BATCH = 1_000
SAID = 50_000
HTML = {"accept": "text/html"}


@asynccontextmanager
async def settings_of(url: str | None, folder: Path) -> AsyncIterator[Settings]:
    """Settings of a gateway that keeps activity in files, or in PostgreSQL under a schema of its own."""
    schema = f"bench_{uuid4().hex}"
    state = {"url": url, "prefix": schema, "timeout": 30} if url else {}
    yield load_settings(state=state, state_dir=folder, cache_dir=folder, activity={"keep": "store"}, port=0)
    if url:
        async with await _connected(url) as connection:
            await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def kept(state: State) -> Activity:
    """The activity of a store that keeps it."""
    if state.activity is None:
        raise ValueError("this store keeps no activity")
    return state.activity


@asynccontextmanager
async def activity_of(settings: Settings) -> AsyncIterator[Activity]:
    state = open_state(settings, SYSTEM_CLOCK)
    try:
        yield kept(state)
    finally:
        await state.close()


async def filled(store: Activity, many: int, now: float, seed: int) -> float:
    """Put decisions in batches as a gateway does, and say how far it is; the seconds it took."""
    batch, began = [], time.perf_counter()
    for number, entry in enumerate(decisions(many, now, seed), 1):
        batch.append(entry)
        if len(batch) == BATCH:
            await store.put(batch)
            batch = []
        if number % SAID == 0:
            typer.echo(f"{number:,} of {many:,} decisions after {time.perf_counter() - began:.0f} s")
    if batch:
        await store.put(batch)
    return time.perf_counter() - began


async def size_of(settings: Settings) -> int:
    """Bytes of all decisions, sums and indexes. PostgreSQL is told to gather statistics, as it does by itself later."""
    if settings.state.url is None:
        files = (settings.state_dir / f"{ACTIVITY_FILE}{end}" for end in ("", "-wal"))
        return sum(path.stat().st_size for path in files if path.exists())
    async with await _connected(settings.state.url.get_secret_value()) as connection:
        schema = settings.state.prefix
        await connection.set_autocommit(True)
        for name in ("activity", "activity_sums"):
            await connection.execute(f"VACUUM (ANALYZE) {schema}.{name}")
        query = f"SELECT sum(pg_total_relation_size('{schema}.' || name)) FROM unnest(%s::text[]) AS name"  # noqa: S608
        row = await (await connection.execute(query, [["activity", "activity_sums"]])).fetchone()
        return int(row[0])


async def page_times(settings: Settings, store: Activity, rounds: int) -> Mapping[str, list[float]]:
    """Milliseconds of each page, `rounds` of each in turn, after one that is not counted."""
    [newest] = await store.find(ActivityQuery(), 1)
    [old] = (await store.find(ActivityQuery(before=(newest.at - 20 * 86_400, "")), 1)) or [newest]
    addresses = {
        "overview, 1 day": "/ui?days=1",
        "overview, 30 days": "/ui?days=30",
        "activity": "/ui/activity",
        "activity, 20 days back": f"/ui/activity?before={old.at!r}:{old.id}",
        "activity of a door": "/ui/activity?door=api",
        "activity of a key": f"/ui/activity?key={newest.key}",
        "activity of a key, failed": f"/ui/activity?key={newest.key}&failed=1",
        "activity of no key": "/ui/activity?key=nobody&failed=1",
        "activity of a conversation": f"/ui/activity?conversation={newest.conversation}",
        "activity of a model": f"/ui/activity?model={MODELS[0]}",
        "activity of a client, found": "/ui/activity?outcome=filtered&client=" + CLIENTS[0].replace(" ", "+"),
        "activity of a tool": f"/ui/activity?tool={SERVERS[0]}/{ACTS[0]}_{THINGS[0]}",
        "activity of a tool of no model": f"/ui/activity?model={MODELS[0]}&tool={SERVERS[0]}/{ACTS[0]}_{THINGS[0]}",
        "a decision": f"/ui/activity/{old.id}",
        "conversations": "/ui/conversations",
        "clients and keys": "/ui/clients",
        "tools and servers": "/ui/tools",
        "settings": "/ui/settings",
    }
    took: dict[str, list[float]] = {name: [] for name in addresses}
    async with _serving(settings) as http:
        for round_ in range(rounds + 1):
            for name, address in addresses.items():
                began = time.perf_counter()
                answer = await http.get(address)
                answer.raise_for_status()
                if round_:
                    took[name].append((time.perf_counter() - began) * 1_000)
    return took


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[18]


@asynccontextmanager
async def _serving(settings: Settings) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a gateway that serves meanwhile."""
    listening = asyncio.Event()
    async with serving(settings, Source(), started=lambda _: listening.set()) as server:
        ending = asyncio.create_task(server.until_end())
        try:
            await listening.wait()
            base = server.url.removesuffix(PATH)
            async with httpx2.AsyncClient(base_url=base, trust_env=False, timeout=120, headers=HTML) as http:
                yield http
        finally:
            for _ in range(2):
                server.end(0)
            await ending


async def _connected(url: str) -> Any:
    return await required("psycopg", "postgres").AsyncConnection.connect(url)
