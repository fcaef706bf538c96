"""Tools that nobody has sent before are picked by their words until their vectors are there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from back_office import JOBS, LOAN, PATHS, WEATHER, asking
from model_bodies import CODECS, FORMATS, PATH, parsed
from model_doors import Gateway, gateway
from pegboard import Catalog
from pegboard.gateways.llm.selection import board_cache
from pegboard.gateways.llm.selection.board_cache import MOST_TOLD, BoardCache
from pegboard.model import Floats
from pegboard.routing import PROFILES, Profile
from pegboard.routing_board import RoutingBoard
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeClock, FakeEncoder

PATIENCE = 2.0
"""Seconds: a board has its words by then, on a machine that is busy too."""
formats = pytest.mark.parametrize("name", FORMATS)


class Slow(FakeEncoder):
    """An encoder that takes as long for the texts of tools as it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.done = asyncio.Event()

    async def encode(self, texts: Sequence[str]) -> Floats:
        await self.done.wait()
        return await super().encode(texts)


@asynccontextmanager
async def opened(
    encoder: Slow, patience: float = PATIENCE, filter_timeout: float = 30, **policy: Any
) -> AsyncIterator[Gateway]:
    parts = {"encoder": encoder, "embeddings": MemoryEmbeddings()}
    llm: dict[str, Any] = {"patience": patience, "filter_timeout": filter_timeout}
    async with gateway(parts=parts, policy={"k": 1, "ways": ["tools"]} | policy, **llm) as found:
        yield found


async def sent(door: Gateway, name: str, body: dict[str, Any]) -> list[str]:
    async with httpx2.AsyncClient(base_url=door.url, trust_env=False, timeout=60) as client:
        answer = await client.post(PATHS[name], json=body)
    assert answer.status_code == 200, answer.text
    return [tool.name for tool in CODECS[name].parse(door.mock.last.body, PATH).tools]


@pytest.mark.requirement("A12")
@formats
async def test_until_they_are_embedded_tools_are_picked_by_words_and_more_of_them(name: str) -> None:
    encoder = Slow()
    async with opened(encoder) as door:
        arrived = await sent(door, name, asking(name, [WEATHER]))
        said = door.said
        encoder.done.set()

    assert "weather_forecast" in arrived
    assert 1 < len(arrived) <= 11
    assert said["x-pegboard-filter"] == "filtered"
    assert said["x-pegboard-reason"] == "selected by words alone: its tools are being embedded"


@pytest.mark.requirement("A12")
async def test_who_comes_after_the_first_waits_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, waits = Slow(), list[float | None]()
    wait_for = asyncio.wait_for

    async def noting(awaited: Any, timeout: float | None) -> Any:
        waits.append(timeout)
        return await wait_for(awaited, timeout)

    def board_of(catalog: Catalog, profile: Profile) -> RoutingBoard:
        parts: Any = {"documents": encoder, "queries": encoder, "events": MemoryEvents(), "clock": FakeClock()}
        return RoutingBoard(catalog, profile, patient=False, **parts)

    boards, tools = BoardCache(board_of), parsed("openai_chat", asking("openai_chat", [WEATHER])).tools
    monkeypatch.setattr("pegboard.gateways.llm.selection.board_cache.asyncio.wait_for", noting)

    first, second = [await boards.of(CODECS["openai_chat"], tools, PROFILES["hybrid"], PATIENCE) for _ in range(2)]
    encoder.done.set()
    last = await boards.of(CODECS["openai_chat"], tools, PROFILES["hybrid"])

    assert [board.is_embedded for board in (first, second, last)] == [False, False, True]
    assert waits == [PATIENCE, 0.0]


@pytest.mark.requirement("A12")
@formats
async def test_what_words_picked_stays_with_its_conversation_and_the_next_goes_by_meaning(name: str) -> None:
    encoder = Slow()
    async with opened(encoder) as door:
        first = await sent(door, name, asking(name, [WEATHER]))
        encoder.done.set()
        second = await sent(door, name, asking(name, [WEATHER, "and in Oslo?"]))
        while "x-pegboard-reason" in door.said:
            other = await sent(door, name, asking(name, [LOAN]))
        other = await sent(door, name, asking(name, [LOAN]))

    assert second == first
    assert other == ["renew_loan"]


@pytest.mark.requirement("A12")
@pytest.mark.parametrize(
    ("patience", "filter_timeout"), [(0.0, 60.0), (4.0, 3.0)], ids=["at once", "longer than the selection may take"]
)
async def test_words_pick_however_short_or_long_a_request_waits_for_meaning(
    patience: float, filter_timeout: float
) -> None:
    encoder = Slow()
    async with opened(encoder, patience, filter_timeout) as door:
        arrived = await sent(door, "openai_chat", asking("openai_chat", [WEATHER]))
        encoder.done.set()

    assert len(arrived) <= 11


@pytest.mark.requirement("A12")
async def test_where_a_profile_goes_by_meaning_alone_all_tools_pass() -> None:
    encoder = Slow()
    async with opened(encoder, profile="semantic") as door:
        arrived = await sent(door, "openai_chat", asking("openai_chat", [WEATHER]))
        said = door.said
        encoder.done.set()

    assert len(arrived) == len(JOBS)
    assert (said["x-pegboard-filter"], said["x-pegboard-reason"]) == (
        "failed",
        "The request's tools are still being embedded.",
    )


def test_the_old_name_of_the_cache_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="`Boards` is now `BoardCache`"):
        assert board_cache.Boards is BoardCache


async def test_a_board_keeps_few_texts_whatever_callers_never_want() -> None:
    def board_of(catalog: Catalog, profile: Profile) -> RoutingBoard:
        encoder = FakeEncoder()
        parts: Any = {"documents": encoder, "queries": encoder, "events": MemoryEvents(), "clock": FakeClock()}
        return RoutingBoard(catalog, profile, **parts)

    tools = parsed("openai_chat", asking("openai_chat", [WEATHER])).tools
    board = await BoardCache(board_of).of(CODECS["openai_chat"], tools, PROFILES["hybrid"])
    for number in range(10 * MOST_TOLD):
        board.tell(("never", number), f"a text of {number}")

    assert [*board.told] == [("never", number) for number in range(9 * MOST_TOLD, 10 * MOST_TOLD)]
