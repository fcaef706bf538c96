"""Where `pegboard logs` and `pegboard top` get what happens: a running `pegboard serve`, else a store of activity."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pegboard.activity_entries import NOT_RANKED, ActivityEntry, ActivityQuery
from pegboard.activity_export import Pages, decisions
from pegboard.apps.cli.configs import own_files, own_files_agreed
from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import ConfigError
from pegboard.extras import required
from pegboard.protocols import Activity
from pegboard.settings import Settings, load_settings
from pegboard.stores.state import open_state

TOKEN = "PEGBOARD_TOKEN"  # noqa: S105
EVENTS = "/events"
EVERY = 0.5
REST, MOST_REST = 4.0, 15.0
"""Times as long as it read, a reader leaves a store alone, and for how many seconds at most."""
PATIENCE = 10.0
OVERLAP = 120.0
"""Seconds of entries that are read again, as calls change them later. Of what is older, no more than a page is held."""
QUIET_SECONDS = 1.0
"""Seconds without anything after which a gateway has said all that it remembers; one of this version says so itself."""
Happened = dict[str, Any]


async def happened(files: Sequence[Path] | None, url: str | None, *, since: float) -> AsyncGenerator[list[Happened]]:
    """What happened from a moment on (seconds since the epoch), the earliest first, and then what happens; an empty
    list once that is all, and now and then where nothing does. Ends when the gateway does.

    Raises ConfigError where there is no gateway and no store.
    """
    address = url or await asyncio.to_thread(_running, files)
    if address is not None:
        async for batch in _served(address, since):
            yield batch
        return
    settings = load_settings(files or own_files_agreed())
    if settings.activity.keep != "store":
        raise ConfigError(
            "No `pegboard serve` runs with this configuration, and no activity is in a store.",
            remedy='Start it; give --url; or set [activity] keep = "store", which `pegboard mcp` writes to, too.',
        )
    async for batch in _stored(settings, since):
        yield batch


def _running(files: Sequence[Path] | None) -> str | None:
    required("httpx2", "remote")
    from pegboard.gateways.mcp.attach.serve_discovery import running_folder, running_for

    return running_for(files or own_files(), running_folder())


async def _served(url: str, since: float) -> AsyncIterator[list[Happened]]:
    httpx2 = required("httpx2", "remote")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"--url {url!r} is not an address.", remedy="Write it as http://127.0.0.1:7332.")
    address = parts._replace(path=EVENTS, query="", fragment="").geturl()
    token = os.environ.get(TOKEN, "")
    headers = {"authorization": f"Bearer {token}"} if token else {}
    timeout = httpx2.Timeout(PATIENCE, read=None)
    try:
        async with (
            httpx2.AsyncClient(trust_env=False, timeout=timeout, headers=headers) as http,
            http.stream("GET", address) as answer,
        ):
            if answer.status_code != httpx2.codes.OK:
                raise _refused(answer.status_code, await answer.aread())
            async with aclosing(_or_quiet(answer.aiter_lines())) as lines:
                async for line in lines:
                    if line is None or line.startswith(":"):
                        yield []
                    elif line.startswith("data: "):
                        said = json.loads(line[6:])
                        if said.get("at", since) >= since:
                            yield [said]
    except httpx2.HTTPError as error:
        raise ConfigError(
            f"The gateway at {parts.netloc.rpartition('@')[2]} cannot be reached: {type(error).__name__}.",
            remedy="Check --url, and that `pegboard serve` runs.",
        ) from error


async def _or_quiet(lines: AsyncIterator[str]) -> AsyncGenerator[str | None]:
    """The lines; None where none has come for a while, from the first one on."""
    coming = asyncio.ensure_future(anext(lines))
    quiet = None
    try:
        while True:
            if not (await asyncio.wait([coming], timeout=quiet))[0]:
                yield None
                continue
            yield coming.result()
            coming, quiet = asyncio.ensure_future(anext(lines)), QUIET_SECONDS
    except StopAsyncIteration:
        return
    finally:
        coming.cancel()
        await asyncio.wait([coming])


def _refused(status: int, body: bytes) -> ConfigError:
    try:
        said = json.loads(body)
        message, remedy = str(said["message"]), str(said.get("remedy", ""))
    except (ValueError, KeyError, TypeError):
        message, remedy = f"The gateway answered with status {status}.", ""
    if status == 401:
        remedy = f"Put a token with the scope ui:viewer into the variable {TOKEN}."
    return ConfigError(message, remedy=remedy)


async def _stored(settings: Settings, since: float) -> AsyncIterator[list[Happened]]:
    """Entries of a store, each again if it has changed."""
    state = open_state(settings, SYSTEM_CLOCK)
    known: dict[str, ActivityEntry] = {}
    try:
        if state.activity is None:
            raise ConfigError("This store keeps no activity.", remedy="Keep state in PostgreSQL or in files.")
        while True:
            now = time.time()
            if now - since > 2 * OVERLAP:
                older = ActivityQuery(since=since, before=(now - OVERLAP, ""))
                async for page in _earliest_first(state.activity, older):
                    if fresh := _fresh(page, known):
                        yield fresh
                since = now - OVERLAP
            began = time.monotonic()
            found = await _newest_first(state.activity, ActivityQuery(since=since))
            took = time.monotonic() - began
            if fresh := _fresh(reversed(found), known):
                yield fresh
            yield []
            known = {each.id: each for each in found}
            since = max(since, now - OVERLAP)  # not of the time after: reading and printing may have taken long
            await asyncio.sleep(min(MOST_REST, max(EVERY, took * REST)))
    finally:
        await state.close()


def _fresh(entries: Iterable[ActivityEntry], known: Mapping[str, ActivityEntry]) -> list[Happened]:
    return [entry_fields(each) for each in entries if known.get(each.id) != each]


async def _earliest_first(store: Activity, query: ActivityQuery) -> Pages:
    """All that the query chooses, in pages that are read twice: a store gives the newest first, and of a long period
    only where each page ends is remembered."""
    ends = [_place(page[-1]) async for page in decisions(store, query)]
    for before, last in reversed([*zip([query.before, *ends], ends, strict=False)]):
        found = await _newest_first(store, replace(query, since=last[0], before=before))
        yield [each for each in reversed(found) if _place(each) >= last]


async def _newest_first(store: Activity, query: ActivityQuery) -> list[ActivityEntry]:
    """All that the query chooses, without the longest of what is not shown."""
    found: list[ActivityEntry] = []
    async for page in decisions(store, query):
        found += [each._replace(text="", scores=NOT_RANKED) for each in page]
    return found


def _place(entry: ActivityEntry) -> tuple[float, str]:
    """Where the entry stands in a list."""
    return entry.at, entry.id


def entry_fields(entry: ActivityEntry) -> Happened:
    """An entry without what it does not have, and without the text of a user.

    >>> entry_fields(ActivityEntry(id="a", at=1.0, door="mcp", kind="list", tools=3))
    {'event': 'list', 'id': 'a', 'at': 1.0, 'door': 'mcp', 'tools': 3}
    """
    kept = {name: value for name, value in entry._asdict().items() if value and name not in ("text", "kind", "scores")}
    return {"event": entry.kind, **kept}
