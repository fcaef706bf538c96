"""Qdrant's client on a server that is not there, and on one that only pretends; its engine in process is in the
contract's tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from pegboard import ToolId
from pegboard.compose import default_parts
from pegboard.errors import ConfigError, StoreError
from pegboard.protocols import Filter
from pegboard.retrieval.index.qdrant import QdrantIndex
from pegboard.settings import load_settings
from pegboard.testing import FakeEncoder
from pgvector_server import needs_qdrant

TOKEN = "token-that-nobody-else-may-see"
ONE = np.ones((1, 4), np.float32)

pytestmark = needs_qdrant


class Pretending(BaseHTTPRequestHandler):
    """Has every collection and nothing in it, and notes what it was asked."""

    asked: list[tuple[str, str, Any, dict[str, str]]]
    status = 200

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(length)) if length else None
        self.asked.append((self.command, self.path, body, dict(self.headers)))
        results = {"exists": {"exists": True}, "batch": [{"points": []}], "scroll": {"points": []}}
        said = {"result": results.get(self.path.partition("?")[0].rpartition("/")[2]), "status": "ok", "time": 0}
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(said if self.status == 200 else {"status": {"error": TOKEN}}).encode())

    do_GET = do_POST = do_PUT = answer  # noqa: N815

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def pretending() -> Iterator[tuple[str, type[Pretending]]]:
    handler = type("Told", (Pretending,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    server.server_close()
    thread.join()


def configured(url: str, **said: object) -> QdrantIndex:
    settings = load_settings(index="qdrant", index_recall=0, qdrant={"url": url, "token_env": "QDRANT_SECRET", **said})
    index = default_parts(settings, encoder=FakeEncoder()).index("toolset")
    assert isinstance(index, QdrantIndex)
    return index


@pytest.fixture(autouse=True)
def _token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QDRANT_SECRET", TOKEN)


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection:UserWarning")
async def test_the_key_goes_into_its_header_and_rights_into_the_request(
    pretending: tuple[str, type[Pretending]],
) -> None:
    url, handler = pretending
    rights = Filter(servers=frozenset({"sea"}), excluded=frozenset({ToolId("sea", "tide")}))

    assert await configured(url).search(ONE, 5, rights) == [[]]

    _, path, body, headers = handler.asked[-1]
    (search,) = body["searches"]
    assert headers["api-key"] == TOKEN
    assert "/collections/pegboard.toolset." in path
    assert search["filter"]["must"] == [{"key": "server", "match": {"any": ["sea"]}}]
    assert len(search["filter"]["must_not"][0]["has_id"]) == 1
    assert search["params"]["quantization"]["rescore"] is True


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection:UserWarning")
async def test_a_refusal_is_an_error_without_what_the_server_said(pretending: tuple[str, type[Pretending]]) -> None:
    url, handler = pretending
    handler.status = 403

    with pytest.raises(StoreError, match="status 403") as caught:
        await configured(url).ids()

    assert TOKEN not in str(caught.value)


async def test_a_collection_that_was_deleted_is_an_error_once_and_made_anew(qdrant_client: Any) -> None:
    index, tool = QdrantIndex(qdrant_client, "deleted", timeout=60), ToolId("a", "b")
    await index.add([tool], ONE)
    qdrant_client.delete_collection("deleted")

    with pytest.raises(StoreError, match="cannot be used"):
        await index.search(ONE, 1)
    assert await index.ids() == frozenset()
    await index.add([tool], ONE)

    assert [found for found, _ in (await index.search(ONE, 1))[0]] == [tool]


@pytest.mark.filterwarnings("ignore:Api key is used with an insecure connection:UserWarning")
async def test_a_server_that_is_not_there_is_an_error_that_names_its_address() -> None:
    with pytest.raises(StoreError, match=r"Qdrant at http://127\.0\.0\.1:9 cannot be used"):
        await configured("http://127.0.0.1:9").search(ONE, 5)


def test_an_address_with_a_token_is_refused_without_repeating_it() -> None:
    with pytest.raises(ConfigError) as caught:
        load_settings(qdrant={"url": "http://user:secret@host"})

    assert "secret" not in str(caught.value)


async def test_names_of_boards_that_the_server_does_not_accept_are_hashed(
    pretending: tuple[str, type[Pretending]],
) -> None:
    url, handler = pretending
    settings = load_settings(index="qdrant", index_recall=0, qdrant={"url": url})
    make = default_parts(settings, encoder=FakeEncoder()).index
    for board in ("tools@user", "a/b", "t" * 300):
        index = make(board)
        assert index is not None
        await index.ids()

    names = {path.split("/")[2] for _, path, _, _ in handler.asked}
    assert len(names) == 3
    assert sum(name.startswith("pegboard._") and len(name) == 34 for name in names) == 2
