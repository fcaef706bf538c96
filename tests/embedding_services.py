"""Services for embeddings on loopback, as strict as the providers document theirs, which fail as tests want."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from pegboard.catalog import BpeCounter
from pegboard.model import Floats
from pegboard.testing import FakeEncoder

KEY = "sk-test-0123456789abcdef"
LENGTH = 3.0
"""Of the vectors that are sent: nothing says that it is 1."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What a provider takes. ``header`` is the one with the key, ``fields`` are those of a body besides `input`."""

    path: str
    header: tuple[str, str] | None = ("Authorization", f"Bearer {KEY}")
    parameters: Mapping[str, list[str]] = field(default_factory=dict)
    fields: frozenset[str]
    needed: frozenset[str] = frozenset({"model"})
    models: frozenset[str]
    inputs: int = 2048
    window: int
    tokens: int
    per_token: float = 1.0
    """Its tokens for one of cl100k."""
    too_long: int = 400
    too_many: int = 400


RULES: Mapping[str, Rules] = {
    "openai": Rules(
        path="/v1/embeddings",
        fields=frozenset({"model", "encoding_format", "dimensions", "user"}),
        models=frozenset({"text-embedding-3-small"}),
        window=8192,
        tokens=300_000,
    ),
    "azure": Rules(
        path="/openai/deployments/our-small/embeddings",
        header=("api-key", KEY),
        parameters={"api-version": ["2024-10-21"]},
        fields=frozenset({"model", "encoding_format", "dimensions", "user", "input_type"}),
        needed=frozenset(),
        models=frozenset({"text-embedding-3-small"}),
        window=8192,
        tokens=300_000,
    ),
    "mistral": Rules(
        path="/v1/embeddings",
        fields=frozenset({"model", "encoding_format", "output_dimension", "output_dtype"}),
        models=frozenset({"mistral-embed", "codestral-embed"}),
        inputs=512,
        window=8192,
        tokens=16_384,
        per_token=1.1,
    ),
    "tei": Rules(
        path="/v1/embeddings",
        header=None,
        fields=frozenset({"model", "encoding_format", "dimensions", "user"}),
        needed=frozenset(),
        models=frozenset({"bge"}),
        inputs=32,
        window=512,
        tokens=1_000_000,
        per_token=1.6,
        too_long=413,
        too_many=422,
    ),
}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What is answered in place of the right thing. ``rows`` are put where the right ones would stand."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    rows: Any = None
    body: bytes | None = None
    cut: bool = False
    after: threading.Event | None = None


RIGHT = Answer()


@dataclass
class Service:
    """``answer`` is asked what to do with the texts of a request, and how many came before it."""

    rules: Rules
    root: str = ""
    dimensions: int = 32
    answer: Callable[[list[str], int], Answer] = lambda _texts, _number: RIGHT
    shuffled: bool = False
    bodies: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    most_at_once: int = 0
    now: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    arrived: threading.Event = field(default_factory=threading.Event)

    @property
    def base_url(self) -> str:
        return self.root if self.rules.path.startswith("/openai") else f"{self.root}/v1"

    @property
    def texts(self) -> list[str]:
        return [text for body in self.bodies for text in body["input"]]

    def fault(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> tuple[int, str] | None:
        """The status and the reason for which the provider would refuse this, if it would."""
        rules, url = self.rules, urlsplit(path)
        if url.path != rules.path or parse_qs(url.query) != dict(rules.parameters):
            return 404, "no such place"
        if rules.header and headers.get(rules.header[0]) != rules.header[1]:
            return 401, f"Incorrect API key provided: {headers.get(rules.header[0])}"
        if headers.get("Content-Type") != "application/json":
            return 415, "not JSON"
        if unknown := body.keys() - rules.fields - {"input"}:
            return 400, f"unknown fields {unknown}"
        if missing := rules.needed - body.keys():
            return 400, f"missing {missing}"
        if body.get("model", next(iter(rules.models))) not in rules.models:
            return 404, "no such model"
        if body.get("encoding_format", "float") not in ("float", "base64"):
            return 400, "encoding_format"
        return self._fault_of_texts(body.get("input"))

    def _fault_of_texts(self, texts: Any) -> tuple[int, str] | None:
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
            return 400, "'$.input' is invalid"
        if len(texts) > self.rules.inputs:
            return self.rules.too_many, f"batch size {len(texts)} > maximum allowed batch size {self.rules.inputs}"
        counts = [count * self.rules.per_token for count in BpeCounter().count(texts)]
        if max(counts) > self.rules.window:
            return self.rules.too_long, f"maximum context length, in {texts[0]!r}"
        if sum(counts) > self.rules.tokens:
            return 400, "too many tokens in this request"
        return None

    def rows(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        dimensions = body.get("dimensions") or body.get("output_dimension") or self.dimensions
        rows = [
            {"object": "embedding", "index": place, "embedding": written(vector, body.get("encoding_format"))}
            for place, vector in enumerate(vectors(body["input"], dimensions))
        ]
        return rows[::-1] if self.shuffled else rows


def vectors(texts: list[str], dimensions: int) -> Floats:
    fake = FakeEncoder(dimensions)
    return np.stack([fake._vector(text) * LENGTH for text in texts])


def written(vector: Floats, encoding: str | None) -> Any:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode() if encoding == "base64" else vector.tolist()


@contextmanager
def service(kind: str, **fields: Any) -> Iterator[Service]:
    made = Service(rules=RULES[kind], **fields)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with made.lock:
                number = len(made.bodies)
                made.bodies.append(body)
                made.now += 1
                made.most_at_once = max(made.most_at_once, made.now)
            made.arrived.set()
            try:
                self._answered(body, number)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True
            finally:
                with made.lock:
                    made.now -= 1

        def _answered(self, body: dict[str, Any], number: int) -> None:
            if fault := made.fault(self.path, self.headers, body):
                made.refusals.append(fault[1])
                self._reply(fault[0], {}, json.dumps({"error": {"message": fault[1]}}).encode())
                return
            answer = made.answer(body["input"], number)
            if answer.after is not None:
                answer.after.wait(30)
            rows = made.rows(body) if answer.rows is None else answer.rows
            good = json.dumps({"object": "list", "data": rows, "model": body.get("model"), "usage": {}})
            bad = json.dumps({"error": {"message": f"{self.headers.items()} {body}"}})
            told = answer.body if answer.body is not None else (good if answer.status == 200 else bad).encode()
            self._reply(answer.status, answer.headers, told, cut=answer.cut)

        def _reply(self, status: int, headers: Mapping[str, str], body: bytes, *, cut: bool = False) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if cut else body)
            self.close_connection = self.close_connection or cut

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

    server = Server(("127.0.0.1", 0), Handler)
    made.root = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
