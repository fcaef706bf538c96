"""`python -m pegboard_bench.hostile.servers MODE [PORT]`: an MCP server, or a provider of models, that means harm."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OBJECT = {"type": "object"}
CALMLY = "calm"
"""The mode of a provider that means no harm."""
CALM = {"id": "x", "choices": [{"message": {"role": "assistant", "content": "done"}}]}
BOMB = 1024 * 1024 * 1024
"""Bytes that the compressed answers stand for: about a thousand times what is sent."""
DOUBLINGS = 31


def doubling() -> dict[str, Any]:
    """A schema of 31 definitions, each twice the work of the next."""
    definitions: dict[str, Any] = {
        f"x{n}": {"allOf": [{"$ref": f"#/$defs/x{n + 1}"}] * 2} for n in range(DOUBLINGS - 1)
    }
    definitions[f"x{DOUBLINGS - 1}"] = {}
    return {"type": "object", "$defs": definitions, "properties": {"a": {"$ref": "#/$defs/x0"}}}


BACKTRACKING = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
SCHEMAS = {"doubling": doubling(), "backtracking": BACKTRACKING}


def named(prefix: str, count: int, description: str) -> list[dict[str, Any]]:
    return [{"name": f"{prefix}_{n}", "description": description, "inputSchema": OBJECT} for n in range(count)]


def listing(mode: str, page: int) -> dict[str, Any]:
    """One page of tools."""
    match mode:
        case "pages":
            return {"tools": named(f"t{page}", 200, "d" * 500), "nextCursor": f"c{page + 1}"}
        case "one-page":
            return {"tools": named("tool", 100_000, "does it")}
        case "long-descriptions":
            return {"tools": named("tool", 20, "word " * 200_000)}
        case "few":
            return {"tools": named("calm", 3, "means no harm")}
        case "doubling" | "backtracking":
            return {"tools": [{"name": "t", "description": "x", "inputSchema": SCHEMAS[mode]}]}
        case _:
            return {"tools": named("boom", 1, "x")}


def answer(mode: str, message: dict[str, Any], page: Iterator[int]) -> dict[str, Any]:
    """The result of a request."""
    match message.get("method"):
        case "initialize":
            capabilities = {"tools": {"listChanged": True}, "resources": {}}
            info = {"name": "hostile", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
        case "tools/list":
            return listing(mode, next(page))
        case "resources/list" if mode == "resources":
            number = next(page)
            found = [{"uri": f"m://{number}/{n}", "name": "r" * 300} for n in range(500)]
            return {"resources": found, "nextCursor": f"c{number + 1}"}
        case "tools/call":
            return {"content": [{"type": "text", "text": "ok"}]}
        case _:
            return {"resources": [], "prompts": [], "resourceTemplates": []}


def on_stdio(mode: str) -> None:
    page = iter(range(10**9))
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") is None or "method" not in message:
            continue
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(mode, message, page)}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def bomb(opening: bytes, closing: bytes) -> bytes:
    """Text of `BOMB` bytes, as gzip."""
    packer = zlib.compressobj(9, wbits=31)
    block = b"x" * 2**20
    parts = [packer.compress(opening), *(packer.compress(block) for _ in range(BOMB // len(block)))]
    return b"".join([*parts, packer.compress(closing), packer.flush()])


class Compressing(BaseHTTPRequestHandler):
    """MCP at /mcp and models at every other path; calls and completions are answered by a bomb."""

    protocol_version = "HTTP/1.1"
    kind = "application/json"
    bombs: dict[str, bytes] = {}  # noqa: RUF012  # made once, by `on_http`

    def do_GET(self) -> None:
        self._send(405, b"", "text/plain")

    def do_POST(self) -> None:
        body = b"" if self._read_pieces() else self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.kind == CALMLY:
            self._send(200, json.dumps(CALM).encode(), "application/json")
            return
        message = json.loads(body)
        if self.path != "/mcp":
            self._send(200, self.bombs["model"], self.kind, "gzip")
        elif "id" not in message:
            self._send(202, b"", "text/plain")
        elif message["method"] == "tools/call":
            self._send(200, self.bombs["call"], self.kind, "gzip")
        else:
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer("", message, iter(range(10**9)))}
            self._send(200, json.dumps(reply).encode(), "application/json")

    def _read_pieces(self) -> bool:
        """Read a body without a length to its end, keeping nothing; whether it was one."""
        if self.headers.get("transfer-encoding", "") != "chunked":
            return False
        while size := int(self.rfile.readline(), 16):
            self.rfile.read(size + 2)
        self.rfile.readline()
        return True

    def _send(self, status: int, body: bytes, kind: str, coding: str = "") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        if coding:
            self.send_header("content-encoding", coding)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing is said."""


def on_http(mode: str) -> None:
    """Says its port on stdout."""
    if mode == CALMLY:
        Compressing.kind = CALMLY
        serve()
        return
    before = b"data: " if mode == "events" else b""
    Compressing.kind = "text/event-stream" if mode == "events" else "application/json"
    Compressing.bombs = {
        "call": bomb(before + b'{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"', b'"}]}}\n\n'),
        "model": bomb(before + b'{"id":"x","choices":[{"message":{"content":"', b'"}}]}\n\n'),
    }
    serve()


def serve() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Compressing) as server:
        sys.stdout.write(f"{server.server_address[1]}\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    on_http(sys.argv[1]) if sys.argv[1] in ("json", "events", CALMLY) else on_stdio(sys.argv[1])
