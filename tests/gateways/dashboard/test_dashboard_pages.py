"""Each figure of a page is what a query of the store says, and what others wrote is shown as text."""

from __future__ import annotations

import csv
import io
import re
import sys
import time
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from model_bodies import asking
from page_cells import Cells
from pegboard import Settings
from pegboard.activity_entries import (
    CHOSEN,
    DAY_SECONDS,
    ActivityEntry,
    ActivityQuery,
    ActivityTotals,
    scores_in_columns,
    summed,
)
from pegboard.activity_report import day_name, when
from pegboard.compose import build_routing
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.dashboard.page_templates import usd
from pegboard.routing import PROFILES
from pegboard.stores import MemoryActivity, MemoryEvents
from served import Gateway, OpenGateway

PATIENT = {"start_wait": 60}
"""The server is there when a page is asked for, however busy the machine is."""
MARKED_UP = {"command": sys.executable, "args": [str(Path(__file__).parents[2] / "servers" / "marked_up.py")]}


def today() -> int:
    """Not a constant: midnight may be between the import and a test."""
    return int(time.time() // DAY_SECONDS)


async def page(gateway: Gateway, path: str) -> Cells:
    answer = await gateway.http.get(path)
    assert answer.status_code == 200, answer.text
    return Cells(answer.text)


def figures(totals: ActivityTotals) -> dict[str, str]:
    return {
        "decisions": f"{totals.decisions:,}",
        "tokens-saved": f"{totals.tokens_saved:,}",
        "saved": usd(totals.saved),
        "billed": usd(totals.billed),
        "cost": usd(totals.cost),
        "errors": f"{totals.errors:,}",
        "failures": f"{totals.failures:,}",
        "searches": f"{totals.searches:,}",
    }


@pytest.mark.parametrize("days", [1, 7, 30])
async def test_the_overview_says_what_the_store_says(gateway_of: OpenGateway, week: MemoryActivity, days: int) -> None:
    async with gateway_of(parts={"activity": week}) as gateway:
        seen = await page(gateway, f"/ui?days={days}")
        first = today() - days + 1
        by_day = dict(await week.by_day(first))
        models = await week.by("model", first, 9)
        doors = await week.by("door", first, 9)

    assert {name: seen.ids[name] for name in figures(ActivityTotals())} == figures(summed(by_day.values()))
    assert seen.ids["tokens-most"] == f"{max(each.tokens_after + each.tokens_saved for each in by_day.values()):,}"
    rows = {row[0]: row[1:] for row in seen.tables[0][1:]}
    assert len(rows) == days
    for day in range(first, first + days):
        each = by_day.get(day, ActivityTotals())
        numbers = (each.decisions, each.tokens_before, each.tokens_after, each.tokens_saved)
        money = (usd(each.billed), usd(each.saved), "$0")
        counted = (each.errors, each.failures, each.input_tokens, each.cached_tokens, each.output_tokens)
        shown = [*(f"{one:,}" for one in numbers), *money, *(f"{one:,}" for one in counted), usd(each.cost)]
        assert rows[day_name(day)] == shown
    by_model = {each.name: each.totals for each in models if each.name}
    assert {row[0]: (row[1], row[6], row[7]) for row in seen.tables[1][1:]} == {
        name: (f"{each.decisions:,}", usd(each.cost), str(each.unpriced)) for name, each in by_model.items()
    }
    assert {row[0]: row[1] for row in seen.tables[2][1:]} == {each.name: str(each.totals.decisions) for each in doors}


@pytest.mark.parametrize(
    "query",
    [
        ActivityQuery(),
        ActivityQuery(door="llm"),
        ActivityQuery(key="ann", failed=True),
        ActivityQuery(conversation="0123456789ab"),
        ActivityQuery(model="a-model", tool="git/log"),
        ActivityQuery(client="claude-code", outcome="filtered"),
        ActivityQuery(tool="no/such"),
    ],
)
async def test_the_list_is_what_the_query_finds_page_by_page(
    gateway_of: OpenGateway, week: MemoryActivity, query: ActivityQuery
) -> None:
    named = {name: getattr(query, name) for name in (*CHOSEN, "tool")}
    params = {name: value for name, value in named.items() if value} | ({"failed": "1"} if query.failed else {})
    seen: list[str] = []
    async with gateway_of(parts={"activity": week}) as gateway:
        address: str | None = str(httpx2.URL("/ui/activity", params=params))
        while address:
            html = (await gateway.http.get(address)).text
            seen += re.findall(r'data-id="(\w+)"', html)
            older = re.search(r'href="([^"]*before=[^"]*)"', html)
            address = older[1].replace("&amp;", "&") if older else None

    assert seen == [each.id for each in await week.find(query, 10_000)]


async def test_tools_that_were_called_have_the_sums_of_the_store(gateway_of: OpenGateway, week: MemoryActivity) -> None:
    async with gateway_of(parts={"activity": week}) as gateway:
        seen = await page(gateway, "/ui/tools")

    tools = {each.name: each.totals for each in await week.by("tool", today() - 29, 99)}
    [used] = [table for table in seen.tables if table[0][:2] == ["tool", "decisions"]]
    assert {row[0]: (row[1], row[3], row[4]) for row in used[1:]} == {
        name: (f"{totals.decisions:,}", f"{totals.failures:,}", usd(totals.cost)) for name, totals in tools.items()
    }
    assert len(tools) == 2


async def test_what_was_offered_is_compared_with_what_was_called(gateway_of: OpenGateway, week: MemoryActivity) -> None:
    async with gateway_of(parts={"activity": week}) as gateway:
        tools = await page(gateway, "/ui/tools")
        overview = await page(gateway, "/ui")

    called = [each for each in await week.find(ActivityQuery(), 1_000) if each.called]
    right = [each for each in called if each.door == "llm" or each.called == ("time/now",)]
    wrong = [each for each in called if each.called == ("git/log",)]
    assert overview.ids["recall"] == f"{len(right) / len(called):.1%}"
    [lost] = [table for table in tools.tables if table[0][0] == "called"]
    offered = sum(each.door == "llm" for each in wrong)
    assert lost[1:] == [["git/log", "time/now", str(len(wrong)), str(offered)]]
    [outcomes] = [table for table in tools.tables if table[0][0] == "model or client"]
    clients = [each for each in called if each.client]
    assert [row[1:3] for row in outcomes[1:] if row[0] == "claude-code"] == [[str(len(clients))] * 2]


async def test_the_page_of_tools_says_what_an_index_found(gateway_of: OpenGateway) -> None:
    measured = {"index": "compressed", "index_recall": 0.001}
    async with gateway_of(servers={"odd": MARKED_UP}, **PATIENT, **measured) as gateway:
        async with Client(streamable_http_client(gateway.server.url)) as client:
            await client.list_tools()
        before = await page(gateway, "/ui/tools")
        after = before
        while "index-recall" not in after.ids:
            await gateway.http.post("/ui/try", data={"query": "paint it bold"})
            after = await page(gateway, "/ui/tools")
        metrics = await gateway.http.get("/metrics")

    assert after.ids["index-recall"].startswith("The index compressed found 100.0% of the nearest tools, in ")
    assert 'pegboard_index_nearest_total{found="true",index="compressed"}' in metrics.text


async def test_a_row_and_its_page_are_the_entry(gateway_of: OpenGateway, week: MemoryActivity) -> None:
    [entry] = await week.find(ActivityQuery(door="llm"), 1)
    async with gateway_of(parts={"activity": week}) as gateway:
        listed = await page(gateway, "/ui/activity?door=llm")
        alone = await gateway.http.get(f"/ui/activity/{entry.id}")

    row = dict(zip(listed.tables[0][0], listed.tables[0][1], strict=True))
    assert row["time (UTC)"] == when(entry.at)
    assert row["tokens saved"] == f"{entry.tokens_before - entry.tokens_after:,}"
    assert (row["offered"], row["called"]) == (f"{entry.offered} of {entry.tools}", ", ".join(entry.called))
    for text in (f"{entry.tokens_before:,}", f"{entry.tokens_after:,}", usd(entry.saved), "0.9100", "0.1200"):
        assert text in alone.text
    assert ("not offered" in alone.text) == bool(entry.missed)


async def test_a_decision_with_more_tools_at_hand_than_it_names_says_how_many_there_were(
    gateway_of: OpenGateway,
) -> None:
    names, activity = [f"git/tool {number}" for number in range(100)], MemoryActivity()
    scores = scores_in_columns(names, [0.5] * len(names), list(range(len(names))), more=240)
    await activity.put([ActivityEntry(id="a" * 32, at=time.time(), door="mcp", kind="search", scores=scores)])
    async with gateway_of(parts={"activity": activity}) as gateway:
        shown = await gateway.http.get(f"/ui/activity/{'a' * 32}")

    assert "100 of 340 tools that were offered are named." in shown.text


async def test_conversations_and_keys_have_the_sums_of_the_store(gateway_of: OpenGateway, week: MemoryActivity) -> None:
    async with gateway_of(parts={"activity": week}) as gateway:
        conversations = await page(gateway, "/ui/conversations")
        keys = await page(gateway, "/ui/clients")

    groups = {each.name: each.totals for each in await week.by("conversation", 0, 99) if each.name}
    assert {row[0]: (row[3], row[5], row[8]) for row in conversations.tables[0][1:]} == {
        name: (str(totals.decisions), f"{totals.tokens_saved:,}", usd(totals.cost)) for name, totals in groups.items()
    }
    by_key = {each.name or "(none)": each.totals for each in await week.by("key", 0, 99)}
    assert {row[0]: (row[5], row[6], row[10]) for row in keys.tables[0][1:]} == {
        name: (str(totals.decisions), f"{totals.tokens_saved:,}", usd(totals.cost)) for name, totals in by_key.items()
    }
    [client] = [each for each in await week.by("client", 0, 99) if each.name]
    assert keys.tables[1][1][:2] == ["claude-code", str(client.totals.decisions)]


async def test_what_calls_cost_stands_beside_the_limits_that_hold_for_all_of_them(gateway_of: OpenGateway) -> None:
    token, looks = "pgb_ann-9f3b7c-secret", "pgb_viewer-9f3b7c-secret"
    access = {
        "ann": {"hash": hashed(token)},
        "viewer": {"hash": hashed(looks), "tools": [], "scopes": ["ui:viewer"]},
    }
    spend = {"prices": {"odd/*": 0.25}, "session": 3, "key": 40, "day": 20}
    options = {"servers": {"odd": MARKED_UP}, "access": access, "spend": spend, **PATIENT}
    async with gateway_of(**options) as gateway:
        headers = {"authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
            Client(streamable_http_client(gateway.server.url, http_client=http)) as client,
        ):
            await client.list_tools()
            for _ in range(2):
                await client.call_tool("plain", {})
        answer = await gateway.http.get("/ui/clients", headers={"authorization": f"Bearer {looks}"})

    assert answer.status_code == 200, answer.text
    assert Cells(answer.text).ids["spent"] == "$0.5000"
    listed = re.findall(r"<li>(\$.*?)</li>", answer.text)
    assert listed == ["$3 for a session", "$40 for all calls", "$20 for all calls on a day"]


async def test_the_export_has_every_entry_and_no_formula(gateway_of: OpenGateway, week: MemoryActivity) -> None:
    bad = ActivityEntry(id="f" * 32, at=time.time(), door="mcp", kind="search", key="=HYPERLINK(1)", text="@x")
    await week.put([bad])
    async with gateway_of(parts={"activity": week}) as gateway:
        answer = await gateway.http.get("/ui/activity.csv")
        some = await gateway.http.get("/ui/activity.csv?door=llm")

    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert answer.headers["content-type"].startswith("text/csv")
    assert [row["id"] for row in rows] == [each.id for each in await week.find(ActivityQuery(), 10_000)]
    assert (rows[0]["key"], rows[0]["text"]) == ("'=HYPERLINK(1)", "'@x")
    assert {row["door"] for row in csv.DictReader(io.StringIO(some.text))} == {"llm"}


async def test_the_export_is_there_as_parquet_too(gateway_of: OpenGateway, week: MemoryActivity) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    async with gateway_of(parts={"activity": week}) as gateway:
        page = await gateway.http.get("/ui/activity?door=llm")
        answer = await gateway.http.get("/ui/activity.parquet?door=llm")

    assert "/ui/activity.parquet?door=llm" in page.text
    assert answer.headers["content-disposition"] == 'attachment; filename="activity.parquet"'
    found = parquet.read_table(io.BytesIO(answer.content)).column("id").to_pylist()
    assert found == [each.id for each in await week.find(ActivityQuery(door="llm"), 10_000)]


async def test_traffic_of_both_gateways_is_on_the_pages_at_once(gateway_of: OpenGateway) -> None:
    body = asking("openai_chat", "what is alpha?", tools=[f"tool_{number}" for number in range(30)], model="gpt-x")
    async with gateway_of(
        activity={"texts": True, "prices": {"gpt*": 2.0}}, servers={"odd": MARKED_UP}, **PATIENT
    ) as gateway:
        assert (await gateway.http.post("/openai/v1/chat/completions", json=body)).status_code == 200
        async with Client(streamable_http_client(gateway.server.url)) as client:
            await client.list_tools()
            await client.call_tool("search_tools", {"query": "paint it bold"})
        listed = await page(gateway, "/ui/activity")
        overview = await page(gateway, "/ui")
        exported = list(csv.DictReader(io.StringIO((await gateway.http.get("/ui/activity.csv")).text)))

    assert {row[1] for row in listed.tables[0][1:]} >= {"llm request", "mcp list", "mcp search"}
    [request] = [row for row in exported if row["door"] == "llm"]
    [search] = [row for row in exported if row["kind"] == "search"]
    assert (request["model"], request["tools"]) == ("gpt-x", "30")
    assert (search["text"], search["scores"][:14]) == ("paint it bold", "odd/<b>bold</b>"[:14])
    assert overview.ids["decisions"] == str(len(exported))
    saved = sum(int(row["tokens_before"]) - int(row["tokens_after"]) for row in exported)
    assert overview.ids["tokens-saved"] == f"{saved:,}"


async def test_texts_are_kept_only_if_the_settings_say_so(gateway_of: OpenGateway) -> None:
    async with gateway_of(servers={"odd": MARKED_UP}, **PATIENT) as gateway:
        async with Client(streamable_http_client(gateway.server.url)) as client:
            await client.call_tool("search_tools", {"query": "a private matter"})
        exported = await gateway.http.get("/ui/activity.csv")

    assert "mcp,search" in exported.text
    assert "private matter" not in exported.text


async def test_markup_of_servers_and_clients_is_shown_as_text(gateway_of: OpenGateway) -> None:
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}\x1b[2J\u202e"
    store = MemoryActivity()
    names = dict.fromkeys(("key", "client", "conversation", "text", "upstream", "model", "profile", "outcome"), evil)
    await store.put(
        [
            ActivityEntry(
                id="evil",
                at=time.time(),
                door="mcp",
                kind="search",
                called=(evil,),
                error=evil,
                **names,  # type: ignore[arg-type]
            )
        ]
    )
    async with gateway_of(parts={"activity": store}, servers={"odd": MARKED_UP}, **PATIENT, eager_tools=0) as gateway:
        async with Client(streamable_http_client(gateway.server.url)) as client:
            await client.list_tools()
        pages = ["", "/activity", "/activity/evil", "/tools", "/conversations", "/clients", "/settings", "/approvals"]
        answers = [await gateway.http.get(f"/ui{each}") for each in pages]
        typed = 'paint </textarea>"><script>alert(1)</script><img src=x onerror=alert(1)>'
        answers.append(await gateway.http.post("/ui/try", data={"query": typed}))
        answers.append(await gateway.http.get("/ui/activity", params={"key": typed, "conversation": typed}))

    for answer in answers:
        assert answer.status_code == 200, answer.text
        tags = Cells(answer.text).tags
        assert "img" not in tags
        assert tags.count("script") == answer.text.count('<script src="/ui/static/live.js" defer></script>') <= 1
        assert "\x1b" not in answer.text
        assert "\u202e" not in answer.text
    assert "&lt;b&gt;bold&lt;/b&gt;" in answers[3].text
    assert "49" not in "".join(re.findall(r"7\*7.{0,20}", answers[3].text))


async def test_a_query_is_explained(gateway_of: OpenGateway) -> None:
    async with gateway_of(servers={"odd": MARKED_UP}, **PATIENT) as gateway:
        async with Client(streamable_http_client(gateway.server.url)) as client:
            await client.list_tools()
        answer = await gateway.http.post("/ui/try", data={"query": "paint it bold"})

    rows = Cells(answer.text).tables[0]
    assert rows[0][:2] == ["tool", "score"]
    assert {row[0] for row in rows[1:]} == {"odd/<b>bold</b>", "odd/plain"}
    assert all("rank" in row[-1] for row in rows[1:])


async def test_all_profiles_are_side_by_side_as_each_of_them_decides(gateway_of: OpenGateway) -> None:
    async with gateway_of(servers={"odd": MARKED_UP}, **PATIENT) as gateway:
        async with Client(streamable_http_client(gateway.server.url)) as client:
            await client.list_tools()
        answer = await gateway.http.post("/ui/try", data={"query": "paint it bold"})
        dashboard = gateway.server._front._dashboard  # type: ignore[attr-defined]
        catalog = dashboard._board._host.gateway().view.board.catalog
        parts = replace(dashboard._board._host.parts, events=MemoryEvents())
        alone = {
            name: await build_routing(Settings(profile=name), catalog, parts=parts).explain("paint it bold")
            for name in PROFILES
        }

    _, profiles, tools = Cells(answer.text).tables
    assert [row[0].removesuffix(" (configured)") for row in profiles[1:]] == list(PROFILES) == tools[0][1:]
    assert [row[2] for row in profiles[1:]] == [f"{len(each.decision.active)} of 2" for each in alone.values()]
    for row in tools[1:]:
        for cell, explained in zip(row[1:], alone.values(), strict=True):
            place = [str(each.tool) for each in explained.order].index(row[0]) + 1
            offered = str(explained.order[place - 1].tool) in map(str, explained.decision.active)
            assert cell.startswith(f"{place}. offered" if offered else f"{place}.")
            assert explained.of_name(row[0])[0].why in cell
