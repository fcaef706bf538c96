"""What only an index on a server can do: be away, be slow, be somebody else's."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from chroma_server import needs_chroma
from pegboard import Catalog, ToolId
from pegboard.compose import default_parts
from pegboard.errors import ConfigError, StoreError
from pegboard.protocols import Filter, VectorIndex
from pegboard.retrieval.index import chroma as module
from pegboard.retrieval.index.chroma import ChromaIndex
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings, load_settings
from pegboard.testing import FakeClock, FakeEncoder
from pegboard_bench.index.server import ChromaServer

IDS = [ToolId("server", f"tool {number}") for number in range(700)]
ROWS = np.random.default_rng(1).normal(size=(len(IDS), 8)).astype(np.float32)
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)
TOKEN = "token-that-nobody-else-may-see"
USER = "0123456789abcdef" * 2
QUERY = "book a repair slot for my bicycle"


class Pretending(BaseHTTPRequestHandler):
    """Answers as it is told to, and notes what it was asked."""

    asked: list[tuple[str, Any, dict[str, str]]]
    silent: threading.Event
    status = 200

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, body, dict(self.headers)))
        if self.path.endswith("/query"):
            self.silent.wait()
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(json.dumps({"id": "collection", "ids": [], "error": TOKEN}).encode())

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def pretending() -> Iterator[tuple[str, type[Pretending]]]:
    handler = type("Told", (Pretending,), {"asked": [], "silent": threading.Event()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    handler.silent.set()
    server.shutdown()
    server.server_close()
    thread.join()


def index_of(made: VectorIndex | None) -> VectorIndex:
    assert made is not None
    return made


@needs_chroma
@pytest.mark.requirement("design.index-down")
async def test_while_the_server_is_down_words_answer_one_warning_says_so_and_it_is_used_again_when_it_is_back(
    chroma: ChromaServer,
    town: Catalog,
    board_of: Callable[..., RoutingBoard],
    clock: FakeClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    board = board_of(town, index="chroma", chroma={"url": chroma.url})
    before = await board.scores(QUERY)
    caplog.set_level(logging.WARNING)
    chroma.stop()
    down = [await board.scores(QUERY) for _ in range(3)]
    clock.advance(2)
    down.append(await board.scores(QUERY))
    chroma.start()
    still = await board.scores(QUERY)
    clock.advance(2)
    after = await board.scores(QUERY)

    assert before is not None
    assert after is not None
    assert "cosine" in before.parts
    assert all(scores is not None and set(scores.parts) == {"bm25", "name"} for scores in (*down, still))
    np.testing.assert_allclose(after.values, before.values, atol=1e-6)
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 2
    assert said[0].endswith("Until it answers again, tools are ranked by words alone.")
    assert "answers again" in said[1]


@needs_chroma
async def test_what_is_there_with_the_same_vector_is_not_sent_again(
    chroma_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[str] = []
    ask = ChromaIndex._ask

    async def noted(self: ChromaIndex, what: str, *rest: Any) -> Any:
        sent.append(what)
        return await ask(self, what, *rest)

    monkeypatch.setattr(ChromaIndex, "_ask", noted)
    await ChromaIndex(chroma_url, "sent-once", timeout=60).add(IDS, ROWS)
    first, sent[:] = list(sent), []
    await ChromaIndex(chroma_url, "sent-once", timeout=60).add(IDS, ROWS)
    again, sent[:] = list(sent), []
    changed = np.concatenate([ROWS[1:2], ROWS[1:]])
    await ChromaIndex(chroma_url, "sent-once", timeout=60).add(IDS, changed)

    assert first.count("upsert") == 3
    assert again == ["get"] * 3
    assert sent.count("upsert") == 1


@needs_chroma
async def test_a_filter_too_long_to_be_sent_still_holds(chroma_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_NAMED", 3)
    index = ChromaIndex(chroma_url, "long-filter", timeout=60)
    await index.add(IDS, ROWS)

    (found,) = await index.search(ROWS[:1], 10, Filter(excluded=frozenset(IDS[:600])))
    (only,) = await index.search(ROWS[:1], 10, Filter(only=frozenset(IDS[5:9])))

    expected = sorted(range(600, 700), key=lambda place: -float(ROWS[0] @ ROWS[place]))[:10]
    assert [tool for tool, _ in found] == [IDS[place] for place in expected]
    assert {tool for tool, _ in only} == set(IDS[5:9])


@needs_chroma
async def test_a_collection_that_was_deleted_is_an_error_once_and_made_anew(chroma: ChromaServer) -> None:
    index = ChromaIndex(chroma.url, "deleted", timeout=60)
    await index.add(IDS[:3], ROWS[:3])
    index._id = "00000000-0000-0000-0000-000000000000"

    with pytest.raises(StoreError, match="status 4"):
        await index.search(ROWS[:1], 1)

    assert [tool for tool, _ in (await index.search(ROWS[:1], 1))[0]] == IDS[:1]


@pytest.mark.requirement("M30")
async def test_the_token_goes_into_its_header_and_into_no_error(
    pretending: tuple[str, type[Pretending]], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, handler = pretending
    handler.status = 503
    monkeypatch.setenv("CHROMA_SECRET", TOKEN)
    settings = load_settings(index="chroma", chroma={"url": url, "token_env": "CHROMA_SECRET"})
    index = default_parts(settings, encoder=FakeEncoder()).index("tools")
    assert index is not None

    with pytest.raises(StoreError) as caught:
        await index.ids()

    assert handler.asked[0][2]["Authorization"] == f"Bearer {TOKEN}"
    assert "status 503" in str(caught.value)
    assert TOKEN not in str(caught.value) + repr(settings)
    assert caught.value.__cause__ is None


async def test_a_server_that_does_not_answer_is_given_up_in_time(pretending: tuple[str, type[Pretending]]) -> None:
    index = ChromaIndex(pretending[0], "silent", timeout=0.2)

    async with asyncio.timeout(50):
        with pytest.raises(StoreError, match=r"no answer within 0\.2 s"):
            await index.search(ROWS[:1], 1)


@pytest.mark.parametrize("token", ["", " ", "two\nlines"])
def test_a_variable_without_a_token_is_a_config_error_that_names_it(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROMA_SECRET", token)
    settings = Settings(index="chroma", chroma={"token_env": "CHROMA_SECRET"})

    with pytest.raises(ConfigError, match="CHROMA_SECRET"):
        default_parts(settings, encoder=FakeEncoder()).index("")


@pytest.mark.parametrize("url", ["ftp://host", "http://user:secret@host", "http://host?token=secret", "host:8000"])
def test_an_address_that_is_none_or_holds_a_secret_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(chroma={"url": url})

    assert "secret" not in str(caught.value)


async def test_boards_and_spaces_of_vectors_have_collections_of_their_own(
    pretending: tuple[str, type[Pretending]],
) -> None:
    url, handler = pretending
    settings = Settings(index="chroma", chroma={"url": url})
    for encoder, board in ((FakeEncoder(8), ""), (FakeEncoder(9), ""), (FakeEncoder(8), "toolset")):
        index = default_parts(settings, encoder=encoder).index(board)
        assert index is not None
        await index.ids()

    names = [body["name"] for path, body, _ in handler.asked if path.endswith("/collections")]
    assert len(set(names)) == 3
    assert all(name.startswith("pegboard.") for name in names)
    assert names[2].startswith("pegboard.toolset.")


async def test_the_boards_of_users_have_collections_of_their_own_by_names_that_the_server_accepts(
    pretending: tuple[str, type[Pretending]],
) -> None:
    url, handler = pretending
    make = default_parts(Settings(index="chroma", chroma={"url": url}), encoder=FakeEncoder()).index

    async def name(board: str) -> str:
        await index_of(make(board)).ids()
        return next(body["name"] for path, body, _ in reversed(handler.asked) if path.endswith("/collections"))

    boards = ["", "tools", f"@{USER}", f"tools@{USER}", f"tool@{USER}", "t" * 600, "t" * 601]
    names = [await name(board) for board in boards]
    boards += [each.split(".")[1].strip("_") for each in names if "._" in each]  # toolsets that look like one
    names += [await name(board) for board in boards[len(names) :]]

    assert len(set(names)) == len(boards) == 12
    assert all(re.fullmatch("[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]", each) for each in names)
    assert re.fullmatch(r"pegboard\.[0-9a-f]{12}", names[0])
    assert re.fullmatch(r"pegboard\.tools\.[0-9a-f]{12}", names[1])


@needs_chroma
@pytest.mark.parametrize("board", [f"@{USER}", f"tools@{USER}"])
async def test_the_index_of_a_users_board_can_be_filled(chroma_url: str, board: str) -> None:
    settings = Settings(index="chroma", chroma={"url": chroma_url, "timeout": 60})
    index = index_of(default_parts(settings, encoder=FakeEncoder()).index(board))
    await index.add(IDS[:3], ROWS[:3])

    assert await index.ids() == set(IDS[:3])


@pytest.mark.requirement("003.fallback")
async def test_an_encoder_and_its_fallback_have_collections_of_their_own_whatever_the_first_answer_shows(
    pretending: tuple[str, type[Pretending]],
) -> None:
    url, handler = pretending
    encoder = FakeEncoder(8)
    encoder.dimensions = 0
    parts = default_parts(Settings(index="chroma", chroma={"url": url}), encoder=encoder, fallback=FakeEncoder(8))
    before, other = parts.index(""), parts.fallback_index("")
    encoder.dimensions = 8
    for index in (before, parts.index(""), other):
        assert index is not None
        await index.ids()

    first, later, fallback = [body["name"] for path, body, _ in handler.asked if path.endswith("/collections")]
    assert first == later != fallback
