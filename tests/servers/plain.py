"""A server in plain Python: it starts fast, and writes down who it is and what it was asked.

plain.py JOURNAL [TOOL ...]    # a line `start PID`, then a line a method, in the file JOURNAL

It speaks the handshake era only; with PLAIN_MODERN set, that of 2026 only. With PLAIN_MUTE it never answers.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

JOURNAL, *NAMES = sys.argv[1:]
TOOLS = [{"name": name, "description": f"Do {name}", "inputSchema": {"type": "object"}} for name in NAMES or ["pid"]]
MODERN = bool(os.environ.get("PLAIN_MODERN"))
ENVELOPE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def note(line: str) -> None:
    with Path(JOURNAL).open("a") as journal:
        journal.write(f"{line}\n")


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize" if not MODERN:
            info = {"name": "plain", "title": "Plain", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
        case "server/discover" if MODERN:
            return {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}} | ENVELOPE
        case "tools/list":
            return {"tools": TOOLS} | (ENVELOPE if MODERN else {})
        case "tools/call":
            if params["name"] == "hang":
                time.sleep(600)
            if params["name"] == "exit":
                sys.exit(1)
            return {"content": [{"type": "text", "text": str(os.getpid())}]}
    raise LookupError(method)


note(f"start {os.getpid()}")
if os.environ.get("PLAIN_MUTE"):
    time.sleep(600)
for line in sys.stdin:
    message = json.loads(line)
    note(message["method"])
    if "id" in message:
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            reply["result"] = answer(message["method"], message.get("params", {}))
        except LookupError:
            reply["error"] = {"code": -32601, "message": "Method not found"}
        print(json.dumps(reply), flush=True)
