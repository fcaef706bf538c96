"""A service with `/chat/completions` on loopback, which answers as a test has it answer."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = str | int | float | dict[str, str]
"""The text of a completion, a status, seconds of silence, or summaries by id."""


@dataclass
class Service:
    """``answer`` is called with the tools of a request and how many came before it."""

    url: str = ""
    answer: Callable[[list[dict[str, Any]], int], Answer] = lambda tools, _: {
        tool["id"]: f"Find {tool['id'].partition('/')[2]}" for tool in tools
    }
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    most_at_once: int = 0
    now: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def tools(self) -> list[list[dict[str, Any]]]:
        return [json.loads(body["messages"][1]["content"])["tools"] for body in self.requests]


@contextmanager
def service() -> Iterator[Service]:
    made = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with made.lock:
                before = len(made.requests)
                made.requests.append(body)
                made.keys.append(self.headers.get("Authorization"))
                made.now += 1
                made.most_at_once = max(made.most_at_once, made.now)
            answer = made.answer(made.tools[before], before)
            if isinstance(answer, float):
                time.sleep(answer)
            with made.lock:
                made.now -= 1
            self._reply(answer if self.path == "/v1/chat/completions" else 404)

        def _reply(self, answer: Answer) -> None:
            text = json.dumps({"summaries": answer}) if isinstance(answer, dict) else str(answer)
            told = json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()
            status = answer if isinstance(answer, int) else 200
            try:
                self.send_response(status)
                self.send_header("Retry-After", "0")
                self.send_header("Content-Length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
