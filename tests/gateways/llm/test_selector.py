"""Which tools of a request stay: the router's choice over the request's own tools, and the policy around it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from model_bodies import CODECS, CONVERSATION, FORMATS, after_a_call, asking, forcing, function, names_of, parsed
from pegboard import Catalog, Tool
from pegboard.catalog import BpeCounter
from pegboard.errors import CatalogError
from pegboard.gateways.llm.conversation.history import ProviderHistories
from pegboard.gateways.llm.formats.protocol import LlmRequest
from pegboard.gateways.llm.selection.board_cache import BOARD_BYTES, BoardCache, BoardOf, StillEmbedding
from pegboard.gateways.llm.selection.policy import Filtered, Policy
from pegboard.gateways.llm.selection.selector import RECENT_SECONDS, Selector
from pegboard.model import Floats
from pegboard.retrieval import CachedEncoder
from pegboard.routing import PROFILES, Profile
from pegboard.routing_board import RoutingBoard
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeClock, FakeEncoder

formats = pytest.mark.parametrize("name", FORMATS)

JOBS = {
    "create_issue": "Open an issue in a project's tracker.",
    "renew_loan": "Extend the due date of a borrowed book.",
    "weather_forecast": "Weather of the coming days at a place.",
    "convert_currency": "Convert an amount of money into another currency.",
    "water_plants": "Open the valve of one garden bed.",
    "book_flight": "Search and book airline tickets.",
    "翻译文本": "把一段文字翻译成另一种语言",
}
NAMES = list(JOBS)
ONE = Policy(profile=PROFILES["semantic"].with_overrides(k=1))
BY_MEANING = Policy(profile=PROFILES["semantic"])
INTENT = Policy(profile=replace(PROFILES["semantic"], query="conversation", k=1))


@pytest.fixture
def board_of(encoder: FakeEncoder) -> BoardOf:
    documents = CachedEncoder(encoder, MemoryEmbeddings())

    def make(catalog: Catalog, profile: Profile) -> RoutingBoard:
        return RoutingBoard(
            catalog, profile, documents=documents, queries=documents, events=MemoryEvents(), clock=FakeClock()
        )

    return make


@pytest.fixture
def selector(board_of: BoardOf) -> Selector:
    return Selector(BoardCache(board_of))


def described(name: str, said: str = "", **more: Any) -> dict[str, Any]:
    """A request that offers these jobs, in this format."""
    body = asking(name, said, NAMES, **more)
    entries = body["tools"][0]["functionDeclarations"] if name == "gemini" else body["tools"]
    for entry, description in zip(entries, JOBS.values(), strict=True):
        entry.get("function", entry)["description"] = description
    return body


async def kept(selector: Selector, name: str, body: Any, policy: Policy = ONE) -> list[str]:
    request = parsed(name, body)
    filtered = await selector.select(CODECS[name], request, policy)
    return [request.tools[place].name for place in filtered.kept.places]


@formats
async def test_the_relevant_tools_stay(selector: Selector, name: str) -> None:
    assert await kept(selector, name, described(name, "extend the due date of a borrowed book")) == ["renew_loan"]


@pytest.mark.requirement("P1", "P13")
@formats
async def test_a_tools_result_changes_nothing_but_that_its_tool_stays(selector: Selector, name: str) -> None:
    body = described(name, "extend the due date of a borrowed book")
    loop = after_a_call(name, "weather_forecast", result="convert an amount of money into another currency")
    body[CONVERSATION[name]] += loop[CONVERSATION[name]][1:]

    assert await kept(selector, name, body, INTENT) == ["renew_loan", "weather_forecast"]


@pytest.mark.requirement("P3")
@formats
async def test_a_short_follow_up_keeps_the_tools_of_what_it_follows(selector: Selector, name: str) -> None:
    body = described(name, "weather of the coming days at the place called Bergen")
    body[CONVERSATION[name]] += asking(name, "and in Oslo?")[CONVERSATION[name]]

    assert await kept(selector, name, body, INTENT) == ["weather_forecast"]


@pytest.mark.requirement("P4", "P12")
@formats
async def test_without_any_text_every_tool_passes(selector: Selector, name: str) -> None:
    assert await kept(selector, name, described(name, "")) == NAMES


@pytest.mark.requirement("P5")
@formats
async def test_each_of_several_wishes_gets_its_tool(selector: Selector, name: str) -> None:
    said = "Open an issue in the tracker, then extend the due date of my borrowed book."

    assert {"create_issue", "renew_loan"} <= set(await kept(selector, name, described(name, said), Policy()))


@pytest.mark.requirement("P7")
@formats
async def test_any_script_finds_its_tool(selector: Selector, name: str) -> None:
    assert await kept(selector, name, described(name, "把这段文字翻译成英文")) == ["翻译文本"]


@pytest.mark.requirement("P16")
@formats
async def test_tools_without_a_description_or_with_anothers_are_told_apart_by_name(
    selector: Selector, name: str
) -> None:
    bare = asking(name, "water the plants please", NAMES)
    same = described(name, "water the plants please")
    entries = same["tools"][0]["functionDeclarations"] if name == "gemini" else same["tools"]
    for entry in entries:
        entry.get("function", entry)["description"] = "Does it."

    assert await kept(selector, name, bare) == ["water_plants"]
    assert await kept(selector, name, same) == ["water_plants"]


@pytest.mark.requirement("P17")
async def test_of_one_name_the_text_in_this_request_counts(selector: Selector) -> None:
    def twice(first: str, second: str) -> dict[str, Any]:
        tools = [function("run", description=first), function("other"), function("run", description=second)]
        return asking("openai_chat", "weather of the coming days") | {"tools": tools}

    async def places(body: dict[str, Any]) -> tuple[int, ...]:
        return (await selector.select(CODECS["openai_chat"], parsed("openai_chat", body), ONE)).kept.places

    assert await places(twice("Weather of the coming days", "Book a flight")) == (0,)
    assert await places(twice("Book a flight", "Weather of the coming days")) == (2,)


@pytest.mark.requirement("P25", "003.cache-key")
async def test_an_array_of_tools_that_comes_again_is_embedded_once_whatever_else_changes(
    selector: Selector, encoder: FakeEncoder
) -> None:
    body = described("openai_chat", "extend the due date of a borrowed book")
    await kept(selector, "openai_chat", body)
    encoded = len(encoder.encoded)

    await kept(selector, "openai_chat", body)
    assert len(encoder.encoded) == encoded
    await kept(selector, "openai_chat", described("openai_chat", "another ask", model="other"))
    assert encoder.encoded[encoded:] == ["another ask"]


@pytest.mark.requirement("P25")
async def test_requests_that_come_together_share_one_board_which_is_built_off_the_event_loop(board_of: BoardOf) -> None:
    threads = []

    def noting(catalog: Catalog, profile: Profile) -> RoutingBoard:
        threads.append(threading.current_thread())
        return board_of(catalog, profile)

    selector = Selector(BoardCache(noting))
    bodies = [described("openai_chat", f"{said} please") for said in ("weather", "money", "flight") * 5]

    chosen = await asyncio.gather(*(kept(selector, "openai_chat", body) for body in bodies))

    assert chosen[:3] == [["weather_forecast"], ["convert_currency"], ["book_flight"]]
    assert chosen == chosen[:3] * 5
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


class Gated(FakeEncoder):
    """Encodes once it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()

    async def encode(self, texts: Sequence[str]) -> Floats:
        await self.open.wait()
        return await super().encode(texts)


@pytest.mark.requirement("P25")
async def test_who_cannot_wait_for_new_tools_to_be_embedded_is_told_and_later_finds_it_done() -> None:
    encoder = Gated()

    def gated(catalog: Catalog, profile: Profile) -> RoutingBoard:
        parts: Any = {"documents": encoder, "queries": encoder, "events": MemoryEvents(), "clock": FakeClock()}
        return RoutingBoard(catalog, profile, **parts)

    boards = BoardCache(gated)
    request = parsed("openai_chat", described("openai_chat", "open an issue in the tracker"))

    async def select() -> Filtered:
        return await Selector(boards).select(CODECS["openai_chat"], request, BY_MEANING, patience=0)

    with pytest.raises(StillEmbedding):
        await select()
    encoder.open.set()
    await boards.of(CODECS["openai_chat"], request.tools, BY_MEANING.profile)
    assert (await select()).decision is not None


@pytest.mark.requirement("P25")
async def test_closing_ends_what_is_still_embedded() -> None:
    def endless(catalog: Catalog, profile: Profile) -> RoutingBoard:
        parts: Any = {"documents": Gated(), "queries": Gated(), "events": MemoryEvents(), "clock": FakeClock()}
        return RoutingBoard(catalog, profile, **parts)

    boards = BoardCache(endless)
    request = parsed("openai_chat", described("openai_chat", "money"))
    with pytest.raises(StillEmbedding):
        await Selector(boards).select(CODECS["openai_chat"], request, BY_MEANING, patience=0)

    await boards.close()

    assert len(asyncio.all_tasks()) == 1


async def test_boards_are_kept_while_their_definitions_fit(board_of: BoardOf) -> None:
    boards = BoardCache(board_of, most_bytes=4_000 + 4 * BOARD_BYTES)
    selector = Selector(boards)

    for number in range(5):
        await kept(selector, "openai_chat", asking("openai_chat", "x", [f"{each}_{number}" for each in NAMES[:4]]))
        assert len(boards) == min(number + 1, 4)
    await kept(selector, "openai_chat", asking("openai_chat", "x", [f"{number}" * 99 for number in range(1_000)]))

    assert len(boards) == 1


async def test_decisions_are_kept_while_they_hold(board_of: BoardOf) -> None:
    clock = FakeClock()
    boards = BoardCache(board_of)
    selector = Selector(boards, clock=clock)
    for number in range(3):
        await kept(selector, "openai_chat", described("openai_chat", f"{number} money"))
    (board,) = boards._boards.values()
    assert len(board.recent) == 3
    clock.advance(RECENT_SECONDS + 1)
    await kept(selector, "openai_chat", described("openai_chat", "more money"))

    assert len(board.recent) == 1


async def test_tools_that_cannot_be_read_are_an_error_that_the_next_request_does_not_see(selector: Selector) -> None:
    broken = asking("openai_chat") | {"tools": [function("x", parameters=[1])]}

    for _ in range(2):
        with pytest.raises(CatalogError):
            await kept(selector, "openai_chat", broken)
    assert await kept(selector, "openai_chat", described("openai_chat", "money")) == ["convert_currency"]


async def select(selector: Selector, body: Any, policy: Policy) -> tuple[LlmRequest, Filtered]:
    request = parsed("openai_chat", body)
    return request, await selector.select(CODECS["openai_chat"], request, policy)


async def test_tokens_are_those_of_the_definitions_as_they_are_sent(selector: Selector) -> None:
    request, filtered = await select(selector, described("openai_chat", "money"), ONE)

    counts = BpeCounter().count([tool.definition.decode() for tool in request.tools])
    assert filtered.tokens_before == sum(counts)
    assert filtered.tokens_after == counts[NAMES.index("convert_currency")]


async def test_why_a_tool_stays_is_said(selector: Selector) -> None:
    body = described("openai_chat", "money", **forcing("openai_chat", "renew_loan"))

    _, filtered = await select(selector, body, replace(ONE, always=("book_*",)))

    assert dict(filtered.kept.why) == {1: "forced", 3: "relevant", 5: "always"}
    assert filtered.decision is not None
    assert filtered.decision.profile == "semantic"


async def test_what_never_stays_takes_nobodys_place(selector: Selector) -> None:
    body = described("openai_chat", "convert an amount of money, and open an issue")

    assert await kept(selector, "openai_chat", body, replace(ONE, never=("convert_*",))) == ["create_issue"]


async def test_what_never_stays_stays_where_the_conversation_has_called_it(selector: Selector) -> None:
    body = described("openai_chat", "open an issue")
    body["messages"] += after_a_call("openai_chat", "convert_currency")["messages"][1:]

    assert "convert_currency" in await kept(selector, "openai_chat", body, replace(INTENT, never=("*",)))


@pytest.mark.parametrize("policy", [replace(ONE, least_tools=8), replace(ONE, least_tokens=100_000)])
async def test_below_the_least_nothing_is_filtered(selector: Selector, policy: Policy) -> None:
    request, filtered = await select(selector, described("openai_chat", "money"), policy)

    assert filtered.kept.places == tuple(range(len(request.tools)))
    assert "the minimum is" in filtered.left_alone
    assert filtered.decision is None


@pytest.mark.requirement("003.rank", "003.threshold")
async def test_by_threshold_what_reaches_it_stays_and_where_nothing_does_everything(selector: Selector) -> None:
    semantic = PROFILES["semantic"]
    body = described("openai_chat", "convert_currency: Convert an amount of money into another currency.")
    by_threshold = Policy(profile=semantic.with_overrides(threshold=0.7))

    assert await kept(selector, "openai_chat", body, by_threshold) == ["convert_currency"]
    assert await kept(selector, "openai_chat", described("openai_chat", "zebra"), by_threshold) == NAMES
    assert len(await kept(selector, "openai_chat", body, Policy(profile=semantic))) == 5


@pytest.mark.parametrize("profile", ["semantic", "hybrid", "attention", "keyword"])
async def test_what_stays_is_what_the_router_picks_from_the_same_tools(
    selector: Selector, board_of: BoardOf, catalog_of: Callable[..., Catalog], fake_tools: list[Tool], profile: str
) -> None:
    for said in ("extend the due date of a loan", "weather in Oslo and money in Norway", "issue"):
        decision = await board_of(catalog_of(*fake_tools), PROFILES[profile]).route(said)
        chosen = await kept(selector, "openai_chat", described("openai_chat", said), Policy(profile=PROFILES[profile]))

        assert chosen == [tool.name for tool in decision.active]


@pytest.fixture
def fake_tools() -> list[Tool]:
    tools = [CODECS["openai_chat"].tool(entry) for entry in described("openai_chat")["tools"]]
    return [tool for tool in tools if tool is not None]


async def test_a_request_without_its_history_goes_on_from_what_is_remembered(selector: Selector) -> None:
    histories = ProviderHistories()
    first = parsed("openai_responses", described("openai_responses", "extend the due date of a borrowed book"))
    histories.remember("me", "resp_1", first, ["weather_forecast"])
    body = described("openai_responses", previous_response_id="resp_1")
    body["input"] = [{"type": "function_call_output", "call_id": "c1", "output": "done"}]

    second = histories.resumed("me", parsed("openai_responses", body))
    filtered = await selector.select(CODECS["openai_responses"], second, INTENT)

    assert [second.tools[place].name for place in filtered.kept.places] == ["renew_loan", "weather_forecast"]
    histories.remember("me", "resp_2", second, ["book_flight"])
    third = histories.resumed("me", parsed("openai_responses", body | {"previous_response_id": "resp_2"}))
    assert third.called == {"weather_forecast", "book_flight"}


@pytest.mark.parametrize("named", [{"previous_response_id": "unknown"}, {"conversation": {"id": "conv_1"}}])
async def test_a_request_that_continues_what_is_not_known_here_is_left_alone(
    selector: Selector, named: dict[str, Any]
) -> None:
    request = parsed("openai_responses", described("openai_responses", "money", **named))

    filtered = await selector.select(CODECS["openai_responses"], ProviderHistories().resumed("me", request), ONE)

    assert filtered.kept.places == tuple(range(len(NAMES)))
    assert "not known" in filtered.left_alone


def test_histories_belong_to_their_owners_and_the_oldest_are_forgotten() -> None:
    histories = ProviderHistories(capacity=2)
    request = parsed("openai_responses", asking("openai_responses", "Hello"))
    for number in range(3):
        histories.remember("me", f"resp_{number}", request, [])
    later = parsed("openai_responses", asking("openai_responses", "And?", previous_response_id="resp_2"))
    gone = parsed("openai_responses", asking("openai_responses", "And?", previous_response_id="resp_0"))

    assert histories.resumed("me", later).continues is None
    assert histories.resumed("you", later).continues == "resp_2"
    assert histories.resumed("me", gone).continues == "resp_0"


def test_no_caller_makes_the_histories_of_others_be_forgotten() -> None:
    histories = ProviderHistories(capacity=4)
    request = parsed("openai_responses", asking("openai_responses", "Hello"))
    histories.remember("me", "resp_0", request, [], caller="me")
    histories.ended("me", ["early"], "resp_0", "me")
    for number in range(9):
        histories.remember(f"owner {number} of eve", "resp_1", request, [], caller="eve")
        histories.ended(f"owner {number} of eve", ["early"], "resp_1", "eve")
    later = parsed("openai_responses", asking("openai_responses", "And?", previous_response_id="resp_0"))

    assert histories.resumed("me", later).continues is None
    assert histories.last_of("me", "early") == "resp_0"


@formats
async def test_the_request_leaves_with_the_tools_that_were_picked(selector: Selector, name: str) -> None:
    request = parsed(name, described(name, "convert an amount of money"))

    filtered = await selector.select(CODECS[name], request, ONE)

    out = json.loads(CODECS[name].rewrite(request, filtered.kept.places))
    assert names_of(name, out) == ["convert_currency"]
