"""What `pegboard logs` and `pegboard top` show of a gateway that serves."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from doors import Raw
from pegboard import activity_export
from pegboard.activity_entries import ActivityEntry, ActivityQuery
from pegboard.activity_export import PAGE
from pegboard.apps.cli import app, event_source
from pegboard.apps.cli.event_source import happened
from pegboard.apps.cli.top_figures import TopWindow
from pegboard.clock import SYSTEM_CLOCK
from pegboard.errors import PegboardError
from pegboard.events import OutcomeReported
from pegboard.gateways import events_endpoint
from pegboard.gateways.events_endpoint import EventFeed, EventFeedApp
from pegboard.settings import load_settings
from pegboard.stores import MemoryActivity
from pegboard.stores.state import open_state
from served import Gateway, OpenGateway

TOOL = {"type": "function", "function": {"name": "print_invoice", "description": "Print", "parameters": {}}}


async def used(gateway: Gateway) -> None:
    body = {"model": "gpt-5.4", "messages": [{"role": "user", "content": "canary-text"}], "tools": [TOOL]}
    await gateway.http.post("/openai/v1/chat/completions", json=body, headers={"authorization": "Bearer canary-bearer"})
    raw = await Raw(http=gateway.http, url="/mcp").begin()
    await raw.names()
    await raw.post("tools/call", {"name": "no_such_tool", "arguments": {"text": "canary-argument"}})


async def run(name: str, *words: str) -> str:
    """What a command prints; it waits, so it runs in a thread."""
    result = await asyncio.to_thread(CliRunner().invoke, app, [name, *words])
    assert result.exit_code == 0, result.output
    return str(result.output)


@pytest.mark.requirement("logs.follow")
async def test_logs_show_what_happened_without_texts_and_secrets_and_filter_it(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway:
        await used(gateway)
        url = str(gateway.http.base_url)
        lines = [json.loads(each) for each in (await run("logs", "--url", url, "--no-follow", "--json")).splitlines()]
        text = await run("logs", "--url", url, "--no-follow", "--kind", "ModelRequest*")
        none = await run("logs", "--url", url, "--no-follow", "--server", "no-such-server")
    kinds = {each["event"] for each in lines}
    assert {"ModelRequestServed", "ToolsListed", "CallRejected"} <= kinds
    [shown] = text.splitlines()
    assert "ModelRequestServed" in shown
    assert "model=gpt-5.4" in shown
    assert "\x1b" not in text, "no colours where there is no terminal"
    assert none == ""
    assert "canary" not in json.dumps(lines)


async def test_no_follow_ends_after_what_had_happened_however_much_happens_then(
    gateway_of: OpenGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_source, "QUIET_SECONDS", 1e6)
    async with gateway_of() as gateway:
        await used(gateway)
        lines = (await run("logs", "--url", str(gateway.http.base_url), "--no-follow", "--json")).splitlines()
    assert "CallRejected" in {json.loads(each)["event"] for each in lines}


@pytest.mark.requirement("logs.follow")
async def test_what_happens_later_is_followed_until_the_gateway_ends(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway:
        heard = happened(None, str(gateway.http.base_url), since=0.0)
        first = await anext(heard)
        await used(gateway)
        kinds = [said["event"] async for batch in heard for said in batch if _ends(said, gateway)]
    assert first[0]["event"] == "Servers"
    assert "CallRejected" in kinds


def _ends(said: dict[str, Any], gateway: Gateway) -> bool:
    """Ends the gateway at the last event of its use."""
    if said["event"] == "CallRejected":
        gateway.server.end(0)
    return True


@pytest.mark.requirement("top.once")
async def test_top_prints_one_frame_with_the_figures_of_the_last_minute(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway:
        await used(gateway)
        figures: dict[str, Any] = json.loads(await run("top", "--url", str(gateway.http.base_url), "--json"))
        frame = await run("top", "--url", str(gateway.http.base_url), "--once")
    assert figures["requests_a_second"] > 0
    assert figures["latency"]["models"][0] == 1
    assert "Last minute" in frame
    assert "requests/s" in frame
    assert "\x1b" not in frame


async def test_events_need_a_token_where_the_dashboard_does(gateway_of: OpenGateway) -> None:
    async with gateway_of(allowed_hosts=("gate.example",)) as gateway:
        answer = await gateway.http.get("/events")
        result = await asyncio.to_thread(
            CliRunner().invoke, app, ["logs", "--url", str(gateway.http.base_url), "--no-follow"]
        )
    assert answer.status_code == 403
    assert "open only on this machine" in result.output


async def test_no_event_quotes_a_body_that_was_not_understood(gateway_of: OpenGateway) -> None:
    body = b'{"canary": 1, "canary": 2, "model": "m", "messages": [], "tools": []}'
    async with gateway_of() as gateway:
        headers = {"content-type": "application/json"}
        await gateway.http.post("/openai/v1/chat/completions", content=body, headers=headers)
        text = await run("logs", "--url", str(gateway.http.base_url), "--no-follow", "--json")
    [said] = [each for each in map(json.loads, text.splitlines()) if each["event"] == "ModelRequestServed"]
    assert said["failure"] == "request_not_understood"
    assert "canary" not in text


async def test_a_reader_that_is_far_behind_holds_nobody_up() -> None:
    feed, turns = EventFeed(), 0
    endpoint = EventFeedApp.__new__(EventFeedApp)
    endpoint._feed, endpoint._ends = feed, lambda: False
    endpoint._host = SimpleNamespace(fleet=SimpleNamespace(status=list))  # type: ignore[assignment]

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    lines = endpoint._lines(None)  # type: ignore[arg-type]
    await anext(lines)
    for _ in range(1_000):
        feed.emit(OutcomeReported(at=1.0, decision="", tool="a/b", success=True))
    waiting = asyncio.create_task(others())
    sent = [await anext(lines) for _ in range(10)]
    waiting.cancel()
    await lines.aclose()  # type: ignore[attr-defined]
    assert [each.count("data: ") for each in sent] == [100] * 10
    assert turns >= 9


async def test_a_token_that_is_refused_reads_no_more_however_much_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_endpoint, "ALIVE", 0.0)
    monkeypatch.setattr(events_endpoint, "EVERY", 0.0)
    feed, ended, checks = EventFeed(), False, 0

    async def viewer(request: Any) -> None:
        nonlocal checks
        checks += 1
        if checks > 3:
            raise PegboardError("The token was revoked.")

    endpoint = EventFeedApp.__new__(EventFeedApp)
    endpoint._feed, endpoint._ends = feed, lambda: ended
    endpoint._host = SimpleNamespace(fleet=SimpleNamespace(status=list))  # type: ignore[assignment]
    endpoint._access = SimpleNamespace(viewer=viewer)  # type: ignore[assignment]
    lines = []
    async for line in endpoint._lines(None):  # type: ignore[arg-type]
        feed.emit(OutcomeReported(at=1.0, decision="", tool="a/b", success=True))
        lines.append(line)
        ended = len(lines) > 100

    assert (checks, lines.count(": alive\n\n")) == (4, 3)
    assert feed.readers == 0


async def stored(folder: Path, entries: list[ActivityEntry]) -> Path:
    """A configuration whose store has these entries."""
    config = folder / "pegboard.toml"
    config.write_text(f'state_dir = "{folder}"\n[activity]\nkeep = "store"\n')
    state = open_state(load_settings([config]), SYSTEM_CLOCK)
    assert state.activity is not None
    await state.activity.put(entries)
    await state.close()
    return config


async def test_without_a_gateway_the_store_of_stdio_gateways_is_read(tmp_path: Path) -> None:
    entry = ActivityEntry(
        id="a", at=time.time(), door="mcp", kind="search", text="canary-text", called=("jira/find",), latency_ms=3.0
    )
    config = await stored(tmp_path, [entry])
    said = json.loads(await run("logs", "--config", str(config), "--no-follow", "--json"))
    figures = json.loads(await run("top", "--config", str(config), "--json"))
    assert (said["event"], said["called"]) == ("search", ["jira/find"])
    assert "canary" not in json.dumps(said)
    assert figures["tools"] == [["jira/find", 1, 0]]


async def test_all_of_the_chosen_period_is_read_from_a_store_the_earliest_first(tmp_path: Path) -> None:
    now = time.time()
    entries = [ActivityEntry(id=f"{n:04}", at=now - 3000 + n, door="mcp", kind="list") for n in range(2_300)]
    config = await stored(tmp_path, entries)
    heard = happened([config], None, since=now - 3000 + 100)

    batches = [await anext(heard)]
    while batches[-1]:
        batches.append(await anext(heard))
    await heard.aclose()

    assert [each["id"] for batch in batches for each in batch] == [each.id for each in entries[100:]]
    assert max(map(len, batches)) == PAGE, "a long period is never held as a whole"


async def test_entries_of_one_moment_and_those_that_come_late_are_read_once_in_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(activity_export, "PAGE", 3)
    store = MemoryActivity()
    entries = [ActivityEntry(id=f"{n:02}", at=float(n // 4), door="mcp", kind="list") for n in range(20)]
    await store.put(entries)
    pages = event_source._earliest_first(store, ActivityQuery(since=1.0, before=(4.0, "")))
    first = await anext(pages)
    late = ActivityEntry(id="late", at=2.5, door="mcp", kind="list")
    await store.put([late])

    found = [*first, *[entry async for page in pages for entry in page]]

    assert found == [*entries[4:12], late, *entries[12:16]]


async def test_what_happens_while_entries_of_a_store_are_read_or_printed_comes_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_source, "OVERLAP", 0.0)
    monkeypatch.setattr(event_source, "REST", 1e9)  # as after a long read
    monkeypatch.setattr(event_source, "MOST_REST", 0.0)
    began = time.time()
    config = await stored(tmp_path, [ActivityEntry(id="a", at=began, door="mcp", kind="list")])
    heard = happened([config], None, since=began)

    assert [each["id"] for each in await anext(heard)] == ["a"]
    await stored(tmp_path, [ActivityEntry(id="b", at=time.time(), door="mcp", kind="list")])
    heard_next = [await anext(heard) for _ in range(2)]
    assert [each["id"] for batch in heard_next for each in batch] == ["b"]
    await heard.aclose()


def test_failed_calls_of_entries_count_for_the_tool_that_they_are_known_to_be_of() -> None:
    window = TopWindow()
    entry = {"event": "search", "at": 59.0}
    window.take(entry | {"id": "1", "called": ["git/log", "git/log", "git/log"], "failures": 2})
    window.take(entry | {"id": "2", "called": ["git/log", "git/show"], "failures": 1})
    window.take(entry | {"id": "3", "called": ["git/show"]})
    window.take({"event": "CallFinished", "at": 59.0, "tool": "git/show", "success": False})
    window.take({"event": "request", "at": 59.0, "id": "4", "error": "status 500"})

    figures = window.figures(60.0)

    assert figures.failures == 5
    assert figures.tools == (("git/log", 4, 2), ("git/show", 3, 1))


@pytest.mark.parametrize(
    "words", [("--tool", "log"), ("--tool", "git/log"), ("--server", "git"), ("--server", "openai")]
)
async def test_a_stored_result_is_found_by_its_tool_and_a_request_by_its_upstream(
    tmp_path: Path, words: tuple[str, str]
) -> None:
    now = time.time()
    request = ActivityEntry(id="a", at=now, door="llm", kind="request", upstream="openai")
    result = ActivityEntry(id="b", at=now, door="mcp", kind="result", upstream="git/log", tokens_before=9)
    config = await stored(tmp_path, [request, result])

    lines = (await run("logs", "--config", str(config), "--no-follow", "--json", *words)).splitlines()

    assert [json.loads(each)["event"] for each in lines] == ["request" if "openai" in words else "result"]


async def test_without_a_gateway_and_a_store_the_error_says_what_to_do(tmp_path: Path) -> None:
    config = tmp_path / "pegboard.toml"
    config.write_text(f'state_dir = "{tmp_path}"\n')
    result = await asyncio.to_thread(CliRunner().invoke, app, ["top", "--config", str(config), "--once"])
    assert "No `pegboard serve` runs" in result.output
