"""What gateways really stored is found by what clients and operators call it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from doors import Raw
from pegboard.apps.cli import state_actions
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.records import MeterRecord, SessionRecord
from pegboard.telemetry.activity_recorder import ActivityRecorder

OpenDoor = Callable[..., AbstractAsyncContextManager[tuple[str, Host]]]
ACCESS = {"ann": {"hash": hashed("anns")}, "bob": {"hash": hashed("bobs")}}
SPEND = {"prices": {"scripted/*": 0.01}, "budgets": [{"day": 1}, {"total": 5}, {"by": "all", "day": 9}]}


@asynccontextmanager
async def door(open_door: OpenDoor, **options: Any) -> AsyncIterator[tuple[str, httpx2.AsyncClient]]:
    """The address of a gateway that keeps activity in its store, and a client of HTTP."""
    recorder = ActivityRecorder()
    async with open_door(**options, activity={"keep": "store"}, replaced={"events": recorder}) as (url, host):
        activity = host.parts.activity
        assert activity is not None
        async with recorder.running(activity), httpx2.AsyncClient(trust_env=False, timeout=60) as http:
            yield url, http


async def called(http: httpx2.AsyncClient, url: str, token: str | None, modern: bool) -> str:
    """A search and a call; the session's id, as its client knows it."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    raw = Raw(http, url, modern=modern, headers=headers)
    if modern:
        raw.headers["x-pegboard-session"] = raw.session = f"work of {token}"
    else:
        await raw.begin()
    await raw.result("tools/call", name="search_tools", arguments={"query": "say something back"})
    said = await raw.result("tools/call", name="echo", arguments={"text": "hi"})
    assert not said.get("isError"), said
    assert raw.session is not None
    return raw.session


def configured(folder: Path, **settings: Any) -> list[Path]:
    """A configuration with the state of the gateway in ``folder``."""
    file = folder / "pegboard.toml"
    lines = [f"state_dir = {json.dumps(str(folder))}", f"cache_dir = {json.dumps(str(folder))}"]
    lines += [f"{name} = {inline(value)}" for name, value in settings.items()]
    file.write_text("\n".join(lines) + '\n[activity]\nkeep = "store"\n')
    return [file]


def inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {inline(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    return json.dumps(value)


async def left(files: list[Path]) -> tuple[set[str], list[str]]:
    """The names of meters, and the keys of sessions."""
    async with state_actions.opened(files) as kept:
        meters = {each.name async for each in kept.state.archive.read("meter") if isinstance(each, MeterRecord)}
        sessions = [each.key async for each in kept.state.archive.read("session") if isinstance(each, SessionRecord)]
    return meters, sessions


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("access", [{}, ACCESS])
async def test_a_session_goes_by_the_id_that_its_client_has_with_what_it_spent_and_did(
    open_door: OpenDoor, tmp_path: Path, access: dict[str, Any], modern: bool
) -> None:
    options = {"access": access, "spend": SPEND}
    async with door(open_door, **options) as (url, http):
        files = configured(tmp_path, **options)
        before = await left(files)
        mine = await called(http, url, "anns" if access else None, modern)
        hers = await left(files)
        await called(http, url, "bobs" if access else "no token", modern)
    everything = await left(files)

    removed = await state_actions.forget(files, "session", mine, agreed=None)

    assert removed == {"session": 1, "meter": 1, "activity": 1}
    assert before == (set(), [])
    meters, sessions = await left(files)
    assert len(everything[1]) == 2
    assert sessions == [key for key in everything[1] if key not in hers[1]]
    [spent] = [name for name in hers[0] if name.startswith('["", "') and name != '["", ""]']
    assert meters == everything[0] - {spent}
    assert await state_actions.forget(files, "session", mine, agreed=None) == {}


async def test_a_key_goes_with_what_budgets_counted_for_it_alone(open_door: OpenDoor, tmp_path: Path) -> None:
    options = {"access": ACCESS, "spend": SPEND}
    async with door(open_door, **options) as (url, http):
        files = configured(tmp_path, **options)
        await called(http, url, "bobs", False)
        bobs = await left(files)
        await called(http, url, "anns", False)
    both = await left(files)

    removed = await state_actions.forget(files, "key", "ann", agreed=None)

    assert removed["meter"] == 6  # of two budgets: in all, on this day and by session
    meters, sessions = await left(files)
    assert bobs[0] <= meters
    assert {name for name in meters - bobs[0] if "budget" in name} == set()
    assert sessions == both[1]
