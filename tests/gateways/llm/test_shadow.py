"""In the shadow requests pass as they came, and what filtering would have cost is counted."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import msgspec
import pytest

from model_bodies import FORMATS, asking
from model_doors import Gateway, model_door
from model_upstream import model_upstream
from pegboard.events import ModelRequestServed, RouteDecided, ShadowMeasured
from pegboard.gateways.llm.shadow.recorder import RequestRecord
from pegboard.model import Floats
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.telemetry.metrics import Metrics
from pegboard.telemetry.shadow_counts import FILE, RouteCounts, ShadowCounts
from pegboard.testing import FakeEncoder
from processes import until
from shadows import PATHS, SHADOW, one, shadowing

JOBS = (
    *("create_issue", "renew_loan", "book_flight", "water_plants", "send_invoice", "mute_alarm"),
    *("rotate_image", "translate_letter", "charge_battery", "paint_fence", "weigh_parcel", "tune_piano"),
)
ONE_CALL: dict[str, dict[str, Any]] = {
    "openai_chat": {"parallel_tool_calls": False, "model": "some-model"},
    "openai_responses": {"parallel_tool_calls": False, "model": "some-model"},
    "anthropic": {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}, "model": "some-model"},
    "gemini": {},
}
"""With this the mock calls the first tool alone; of Gemini's it calls the first two, of which one is a miss."""
TURNS = 1000


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PEGBOARD_STATE_DIR", str(tmp_path))
    return tmp_path


def counts(folder: Path) -> list[RouteCounts]:
    return ShadowCounts(folder / FILE).read()


async def measured(found: Gateway | Before, requests: int = 1) -> list[ShadowMeasured]:
    """What is told once answers are over."""
    await until(lambda: len(found.events.of(ShadowMeasured)) == requests)
    return [event for event in found.events.of(ShadowMeasured) if isinstance(event, ShadowMeasured)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A turn whose user wants one thing, and whose model calls the first tools that it is offered."""

    number: int
    format: str
    wanted: str
    called: tuple[str, ...]
    body: bytes
    path: str

    @property
    def upstream(self) -> str:
        return self.format.partition("_")[0]

    @property
    def missed(self) -> tuple[str, ...]:
        return tuple(name for name in self.called if name != self.wanted)


def planted(number: int, chance: random.Random) -> Planted:
    """In one of twenty turns the model calls something else than what the user wants."""
    format_, wanted = FORMATS[number % len(FORMATS)], chance.choice(JOBS[:4])
    after = JOBS.index(wanted) + 1
    others = [*JOBS[after:], *JOBS[: after - 1]]
    goes_astray = chance.random() < 0.05
    tools = [others[0], wanted, *others[1:]] if goes_astray else [wanted, *others]
    streams = chance.random() < 0.5
    more, path = dict(ONE_CALL[format_]), PATHS[format_]
    if format_ == "anthropic":
        more["max_tokens"] = 100
    if streams and format_ == "gemini":
        path = path.replace(":generateContent", ":streamGenerateContent?alt=sse")
    elif streams:
        more["stream"] = True
    said = f"Please {wanted.replace('_', ' a ')}, as in case {number}"
    return Planted(
        number=number,
        format=format_,
        wanted=wanted,
        called=tuple(tools[: 2 if format_ == "gemini" else 1]),
        body=json.dumps(asking(format_, said, tools, **more)).encode(),
        path=path,
    )


async def test_of_a_thousand_turns_exactly_the_planted_misses_are_found(folder: Path) -> None:
    chance, record = random.Random(7), folder / "turns.jsonl"
    turns = [planted(number, chance) for number in range(TURNS)]
    async with (
        shadowing(record=str(record)) as (found, _),
        aiohttp.ClientSession(found.url, connector=aiohttp.TCPConnector(limit=16)) as http,
    ):

        async def said(turn: Planted) -> tuple[int, str, str]:
            async with http.post(turn.path, data=turn.body, headers={"content-type": "application/json"}) as answer:
                await answer.read()
                told = answer.headers
                return answer.status, told["x-pegboard-filter"], told.get("x-pegboard-tools", "1/12")

        answers = await asyncio.gather(*map(said, turns))

    assert set(answers) == {(200, "shadow", "1/12")}
    assert Counter(each.body for each in found.mock.received) == Counter(turn.body for turn in turns)
    expected = {turn.number: turn.missed for turn in turns if turn.missed}
    assert missed_in(record) == expected
    assert 0 < len(expected) < TURNS
    assert counted(folder) == (
        TURNS,
        Counter((turn.upstream, tool) for turn in turns for tool in turn.called),
        Counter((turn.upstream, tool) for turn in turns for tool in turn.missed),
    )


def counted(folder: Path) -> tuple[int, Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Requests that were measured; calls, and misses, by upstream and tool."""
    called: Counter[tuple[str, str]] = Counter()
    missed: Counter[tuple[str, str]] = Counter()
    for route in counts(folder):
        for tool, (calls, misses) in route.calls.items():
            called[route.upstream, tool] += calls
            missed[route.upstream, tool] += misses
    return sum(route.measured for route in counts(folder)), called, +missed


def missed_in(record: Path) -> dict[int, tuple[str, ...]]:
    """The misses by the number of the turn."""
    found = {}
    for line in record.read_bytes().splitlines():
        told = msgspec.json.decode(line, type=RequestRecord)
        number = int(told.body.partition("as in case ")[2].partition('"')[0])
        if missed := tuple(name for name in told.called if name not in (told.kept or ())):
            found[number] = missed
    return found


async def test_a_miss_lowers_the_counterfactual_recall_and_tokens_are_those_that_would_have_been_saved() -> None:
    async with shadowing() as (found, http):
        await one(http)
        (told,) = await measured(found)
        (served,) = found.events.of(ModelRequestServed)

    assert (told.called, told.missed) == (("renew_loan", "book_flight"), ("book_flight",))
    assert (told.tools, told.kept, told.unmeasured) == (3, 1, "")
    assert 0 < told.tokens_after < told.tokens_before
    assert isinstance(served, ModelRequestServed)
    assert (served.outcome, served.kept, served.tools) == ("shadow", 3, 3)
    assert served.tokens_before == served.tokens_after, "nothing was saved"


@asynccontextmanager
async def before(url: str, *, encoder: FakeEncoder | None = None, **llm: Any) -> AsyncIterator[Before]:
    """A gateway in the shadow before one provider."""
    parts = {"encoder": encoder or FakeEncoder(), "embeddings": MemoryEmbeddings()}
    upstreams = {"openai": {"url": url, "retries": 0}}
    async with (
        model_door(upstreams, parts=parts, **{"policy": SHADOW} | llm) as (address, _, events),
        httpx2.AsyncClient(base_url=f"http://{address}", trust_env=False) as http,
    ):
        yield Before(http=http, events=events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Before:
    http: httpx2.AsyncClient
    events: MemoryEvents


class Halting(FakeEncoder):
    """Encodes once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def encode(self, texts: Sequence[str]) -> Floats:
        await self.go.wait()
        return await super().encode(texts)


async def test_the_headers_say_what_would_have_been_kept_where_the_model_takes_its_time() -> None:
    async with model_upstream() as upstream, before(upstream.url) as door:
        upstream.mood = "mute"
        asked = asyncio.create_task(one(door.http))
        await until(lambda: len(upstream.sent) == 1 and bool(door.events.of(RouteDecided)))
        upstream.release.set()
        headers = (await asked).headers

    assert headers["x-pegboard-filter"] == "shadow"
    assert headers["x-pegboard-tools"] == "1/3"
    after, whole = map(int, headers["x-pegboard-tokens"].split("/"))
    assert 0 < after < whole


async def test_neither_the_provider_nor_the_client_waits_for_the_picking() -> None:
    encoder = Halting()
    async with model_upstream() as upstream, before(upstream.url, encoder=encoder, filter_timeout=0.001) as door:
        headers = (await one(door.http)).headers
        assert headers["x-pegboard-reason"] == "not measured yet"
        assert "x-pegboard-tools" not in headers
        assert not door.events.of(ShadowMeasured)

        encoder.go.set()
        (told,) = await measured(door)

    assert (told.kept, told.tools, told.unmeasured) == (1, 3, "")


async def test_what_cannot_be_picked_in_time_is_not_measured_and_harms_nobody() -> None:
    async with (
        model_upstream() as upstream,
        before(upstream.url, encoder=Halting(), shadow_timeout=0.01, policy=SHADOW | {"fail": "closed"}) as door,
    ):
        answer = await one(door.http)
        (told,) = await measured(door)

    assert answer.status_code == 200
    assert told.unmeasured in ("timeout", "still_embedding")


async def test_a_body_that_cannot_be_read_passes_even_where_failing_is_closed(folder: Path) -> None:
    broken = b'{"model": "m", "tools": [{"type": "function", "function": 7}], "messages": []'
    async with model_upstream() as upstream, before(upstream.url, policy=SHADOW | {"fail": "closed"}) as door:
        answer = await door.http.post(PATHS["openai_chat"], content=broken)
        (told,) = await measured(door)

    assert (answer.status_code, upstream.sent[0].body) == (200, broken)
    assert told.unmeasured == "request_not_understood"
    assert counts(folder)[0].unmeasured == {"request_not_understood": 1}


@pytest.mark.parametrize(("mood", "why"), [("error", "status_529"), ("cut", "broke_off")])
async def test_an_answer_that_is_none_is_not_measured(mood: str, why: str) -> None:
    async with model_upstream() as upstream, before(upstream.url) as door:
        upstream.mood = mood
        with suppress(httpx2.TransportError):
            await one(door.http)
        (told,) = await measured(door)

    assert told.unmeasured == why


async def test_a_client_that_hangs_up_leaves_nothing_behind() -> None:
    async with model_upstream() as upstream, before(upstream.url, encoder=Halting()) as door:
        upstream.mood = "mute"
        asked = asyncio.create_task(one(door.http))
        await until(lambda: len(upstream.sent) == 1)
        asked.cancel()
        (told,) = await measured(door)
        await asyncio.wait([asked])

    assert told.unmeasured == "broke_off"


async def test_a_compressed_body_passes_as_it_is_and_is_measured() -> None:
    body = gzip.compress(json.dumps(asking("openai_chat", "renew the loan", ["renew_loan", "tune_piano"])).encode())
    async with model_upstream() as upstream, before(upstream.url) as door:
        await door.http.post(PATHS["openai_chat"], content=body, headers={"content-encoding": "gzip"})
        (told,) = await measured(door)

    arrived = upstream.sent[0].headers
    assert (arrived["content-encoding"], arrived["content-length"]) == ("gzip", str(len(body)))
    assert (told.kept, told.tools) == (1, 2)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("anthropic", "/anthropic/v1/messages/count_tokens"),
        ("openai_responses", "/openai/v1/responses/input_tokens"),
        ("gemini", "/gemini/v1beta/models/m:countTokens"),
    ],
)
async def test_tokens_that_are_only_counted_are_asked_of_no_model(name: str, path: str) -> None:
    async with shadowing() as (found, http):
        body = asking(name, "renew the loan", ["renew_loan", "tune_piano"])
        await http.post(path, json=body)
        (told,) = await measured(found)

    assert told.unmeasured == "no_model_asked"


async def test_a_request_narrows_what_would_be_kept_and_cannot_leave_the_shadow() -> None:
    async with shadowing(policy=SHADOW | {"k": 2}) as (found, http):
        answer = await one(http, x_pegboard_shadow="off", x_pegboard_k="1")
        (told,) = await measured(found)

    assert answer.headers["x-pegboard-filter"] == "shadow"
    assert told.kept == 1
    assert len(found.mock.last.json["tools"]) == 3


async def test_a_request_cannot_step_into_the_shadow() -> None:
    async with shadowing(policy=SHADOW | {"shadow": False}) as (found, http):
        answer = await one(http, x_pegboard_shadow="on")

    assert answer.headers["x-pegboard-filter"] == "filtered"
    assert len(found.mock.last.json["tools"]) == 1


async def test_a_rule_puts_some_models_into_the_shadow() -> None:
    rules = [{"upstream": "openai", "model": "some-*", "shadow": True}]
    async with shadowing(policy=SHADOW | {"shadow": False}, rules=rules) as (_, http):
        said = [(await one(http, format_)).headers["x-pegboard-filter"] for format_ in ("openai_chat", "gemini")]

    assert said == ["shadow", "filtered"]


async def test_policies_are_counted_apart(folder: Path) -> None:
    for k in (1, 2):
        async with shadowing(policy=SHADOW | {"k": k}) as (_, http):
            await one(http)

    assert [(route.kept, route.requests) for route in counts(folder)] == [(2, 1), (1, 1)]


async def test_metrics_count_requests_calls_misses_and_tokens() -> None:
    metrics = Metrics("1")
    async with shadowing() as (found, http):
        await one(http)
        for event in await measured(found):
            metrics.emit(event)
    text = metrics.render()[0].decode()

    assert 'pegboard_shadow_requests_total{key="",unmeasured="",upstream="openai"} 1.0' in text
    assert 'pegboard_shadow_calls_total{key="",upstream="openai"} 2.0' in text
    assert 'pegboard_shadow_misses_total{key="",upstream="openai"} 1.0' in text
    assert 'pegboard_shadow_tokens_saved_total{key="",upstream="openai"}' in text
