"""The path of one `tools/call` through the package. `pytest -rP` prints it."""

from __future__ import annotations

import asyncio
from functools import reduce
from pathlib import Path
from typing import Any

import httpx2
import pytest

from doors import Raw
from pegboard import Settings
from pegboard.gateways.mcp.gateway import after_answer
from pegboard.gateways.mcp.transport.config_reload import Source
from pegboard.gateways.serve import serving
from pegboard.telemetry import activity_recorder
from upstream_specs import scripted
from walks import Function, Walk, Watch

MOST_FILES = 30
MOST_FOR_SHAPES = 12
"""Further files of a call whose result is shaped (docs/decisions/0040); the default policy passes none of them."""
MOST_PASSED = 7
"""Files on the way from the server's first middleware to the upstream connection."""
FIRST = "gateways/mcp/transport/call_handler.py"
"""The server's first middleware."""
UPSTREAM = Function("upstreams/connection.py", "Connection.call")
CALLS = 12
"""A background task that runs during one call does not run during all of them."""


async def walk_of_a_call(folder: Path, *, modern: bool, **options: Any) -> Walk:
    """What `pegboard serve` calls between the request of a warm call and its answer, in each of a few calls."""
    settings = Settings(
        servers={"scripted": scripted()},
        profile="keyword",
        port=0,
        start_wait=60,
        state_dir=folder,
        cache_dir=folder,
        **options,
    )
    listening, watch, walks = asyncio.Event(), Watch(), []
    with watch.watched():
        async with serving(settings, Source(), started=lambda url: listening.set()) as server:
            ending = asyncio.create_task(server.until_end())
            await listening.wait()
            async with httpx2.AsyncClient(trust_env=False, timeout=60) as http:
                client = Raw(http, server.url, modern=modern)
                if not modern:
                    await client.begin()
                for _ in range(CALLS):
                    assert await client.call("echo", text="warm") == "warm"
                    with watch.walk() as walk:
                        assert await client.call("echo", text="hello") == "hello"
                    walks.append(walk)
            server.end(0)
            server.end(0)
            await ending
    return reduce(Walk.common, sorted(walks, key=lambda walk: len(walk.functions)))


@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "2026-07-28"])
async def test_a_call_goes_through_few_files_and_none_call_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, modern: bool
) -> None:
    monkeypatch.setattr(after_answer, "PAUSE", 3600.0)  # no answer waits for that work, at whatever load it is done
    monkeypatch.setattr(after_answer, "LONGEST_WAIT", 3600.0)
    monkeypatch.setattr(activity_recorder, "EVERY", 3600.0)
    walk = await walk_of_a_call(tmp_path, modern=modern)
    passed = walk.through(UPSTREAM)
    passed = passed[passed.index(FIRST) :]  # a request of 2026-07-28 is handled in the task of its HTTP request
    print("Through", " → ".join(passed), "\n", walk)
    assert not walk.circles, f"These files call each other:\n{walk}"
    assert len(walk.files) <= MOST_FILES, f"More than {MOST_FILES} files:\n{walk}"
    assert passed[-1] == UPSTREAM.file
    assert len(passed) <= MOST_PASSED


async def test_only_a_call_whose_result_is_shaped_passes_the_files_that_do_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(after_answer, "PAUSE", 3600.0)
    monkeypatch.setattr(after_answer, "LONGEST_WAIT", 3600.0)
    monkeypatch.setattr(activity_recorder, "EVERY", 3600.0)
    walk = await walk_of_a_call(tmp_path, modern=False, results={"policy": "handle", "threshold": 0})
    shapes = [file for file in walk.files if file.startswith("results/") or file.endswith("/call_results.py")]
    assert shapes
    assert not walk.circles, f"These files call each other:\n{walk}"
    assert len(walk.files) <= MOST_FILES + MOST_FOR_SHAPES, f"More files than that:\n{walk}"
