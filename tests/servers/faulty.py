"""A server that does what no server should, when it is told to: on stdio, or with a port as argument on HTTP.

It says what it says by hand, in plain Python, and each call has a thread of its own. FAULTY_MODERN: it speaks the 2026
era only, else the handshake era only. FAULTY_JSON: on HTTP it answers with JSON, not with a stream of events.
FAULTY_LIST: so many bytes of definitions are listed. FAULTY_ENDLESS: after each page there is the same one again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODERN, JSON = bool(os.environ.get("FAULTY_MODERN")), bool(os.environ.get("FAULTY_JSON"))
ENVELOPE = {"resultType": "complete"} if MODERN else {}
LISTED = ENVELOPE | ({"ttlMs": 0, "cacheScope": "private"} if MODERN else {})
BREAK_OFF = b"\0"
"""Said instead of a message: the rest of it never comes."""
LETTERS = {"text": {"type": "string"}}
NUMBER = {"n": {"type": "integer"}}
TOOLS: list[dict[str, Any]] = [
    {"name": name, "description": text, "inputSchema": {"type": "object", "properties": LETTERS | NUMBER}}
    for name, text in {
        "echo": "Echo a text back",
        "pid": "Tell which process this is",
        "child": "Start a process that runs for long",
        "die": "Be killed in mid-call",
        "hang": "Never answer, while other calls are answered",
        "freeze": "Stop, so that nothing is answered any more",
        "late": "Answer after n milliseconds",
        "twice": "Answer twice, the second time with something else",
        "stranger": "Answer somebody who never asked, and then the caller",
        "crossed": "Answer under the id of the call before",
        "nothing": "Answer with what is no result",
        "garbage": "Print n lines that are no messages, and then answer",
        "half": "Break off in the middle of the answer",
        "big": "Answer with n bytes",
        "cut": "Answer with a text that was cut in the middle of an emoji",
        "anonymous": "Say n bytes that are nobody's answer",
        "progress": "Report progress n times, and then answer",
        "storm": "Say n times that the list of tools changed, and then answer",
    }.items()
]
NEWS = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}


def padded() -> list[dict[str, Any]]:
    """The tools, and as many more as FAULTY_LIST bytes need."""
    wanted = int(os.environ.get("FAULTY_LIST", "0"))
    more = [dict(TOOLS[0], name=f"long{at}", description=f"{at} " + "ä" * 5000) for at in range(wanted // 10_000)]
    return TOOLS + more


def said(message: dict[str, Any]) -> Iterator[dict[str, Any] | bytes]:
    """What is said to a request, in order."""
    method, params, own = message["method"], message.get("params", {}), message["id"]

    def answer(result: Any, to: Any = own) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "id": to, "result": result}

    capabilities = {"tools": {"listChanged": True}}
    if method == "initialize" and not MODERN:
        info = {"name": "faulty", "version": "1"}
        introduction = {"protocolVersion": params["protocolVersion"], "capabilities": capabilities, "serverInfo": info}
        yield answer(introduction)
    elif method == "server/discover" and MODERN:
        yield answer({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}} | LISTED)
    elif method == "tools/list":
        more = {"nextCursor": "more"} if os.environ.get("FAULTY_ENDLESS") else {}
        yield answer({"tools": padded()} | more | LISTED)
    elif method == "ping" and not MODERN:
        yield answer({})
    elif method == "tools/call":
        token = params.get("_meta", {}).get("progressToken")
        for each in called(params["name"], params.get("arguments") or {}, own, token):
            yield each if isinstance(each, dict | bytes) else answer(each[0], *each[1:])
    else:
        yield {"jsonrpc": "2.0", "id": own, "error": {"code": -32601, "message": "Method not found"}}


def called(name: str, arguments: dict[str, Any], own: Any, token: Any) -> Iterator[Any]:
    """Messages and bytes as they are, and tuples of a result and whom it is for, if not the caller."""
    text, number = arguments.get("text", ""), arguments.get("n", 0)
    match name:
        case "pid":
            text = str(os.getpid())
        case "child":
            text = str(subprocess.Popen(["sleep", "300"]).pid)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
            threading.Event().wait()  # another thread may have been stopped first
        case "hang":
            threading.Event().wait()
        case "late":
            time.sleep(number / 1000)
        case "stranger":
            yield result("not yours"), 10**9
        case "crossed":
            yield result("not yours"), own - 1
            return
        case "nothing":
            yield [text], own
            return
        case "garbage":
            yield b"Loading\xff { not JSON\n" * number
        case "half":
            yield BREAK_OFF
            return
        case "big":
            text = "x" * number
        case "cut":
            text = "done \ud83d"
        case "anonymous":
            yield json.dumps({"params": "x" * number, "jsonrpc": "2.0"}).encode() + b"\n"
        case "progress":
            for step in range(number):
                about = {"progressToken": token, "progress": step + 1, "message": "m" * 1000}
                yield {"jsonrpc": "2.0", "method": "notifications/progress", "params": about}
        case "storm":
            for _ in range(number):
                yield NEWS
    yield (result(text),)
    if name == "twice":
        yield (result("the second"),)


def result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]} | ENVELOPE


def on_stdio() -> None:
    """Standard output is written by one thread at a time; breaking off closes it, while the process lives on."""
    turn = threading.Lock()

    def work(message: dict[str, Any]) -> None:
        for each in said(message):
            with turn:
                if each == BREAK_OFF:
                    os.write(1, b'{"jsonrpc": "2.0", "id": 1, "res')
                    os.close(1)
                    return
                data = each if isinstance(each, bytes) else json.dumps(each).encode() + b"\n"
                while data:
                    data = data[os.write(1, data) :]

    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            threading.Thread(target=work, args=(message,), daemon=True).start()


class OnHttp(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if "id" not in message:
            self.send_response(202)
            self.send_header("content-length", "0")
            self.end_headers()
        elif JSON:
            self.whole(next(said(message)))
        else:
            self.events(said(message))

    def do_GET(self) -> None:
        self.send_error(405)

    def do_DELETE(self) -> None:
        self.send_error(405)

    def whole(self, said: dict[str, Any] | bytes) -> None:
        body = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body) + (said == BREAK_OFF)))
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = said == BREAK_OFF

    def events(self, said: Iterator[dict[str, Any] | bytes]) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for each in said:
            if each == BREAK_OFF:
                self.wfile.write(b'data: {"jsonrpc":')
                return
            data = each.strip() if isinstance(each, bytes) else json.dumps(each).encode()
            self.wfile.write(b"".join(b"data: %s\n\n" % line for line in data.split(b"\n")))

    def log_message(self, *_: Any) -> None:
        """Not to standard error."""


class Quiet(ThreadingHTTPServer):
    request_queue_size = 256

    def handle_error(self, *_: Any) -> None:
        """Who hangs up on it, it does not complain of."""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        Quiet(("127.0.0.1", int(sys.argv[1])), OnHttp).serve_forever()
    else:
        on_stdio()
