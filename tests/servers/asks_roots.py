"""A server that asks for roots as soon as it is connected, and again when they changed, and writes them into a file.

asks_roots.py FILE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

TOOL = {"name": "work", "description": "Work in the roots", "inputSchema": {"type": "object"}}
ABOUT = {"serverInfo": {"name": "asks", "version": "1"}, "capabilities": {"tools": {}}}


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return ABOUT | {"protocolVersion": params["protocolVersion"]}
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            return {"content": []}
    return None


def main() -> None:
    for at, line in enumerate(sys.stdin):
        message = json.loads(line)
        method = message.get("method")
        if method in ("notifications/initialized", "notifications/roots/list_changed"):
            say(id=f"roots-{at}", method="roots/list")
        elif method is None and "result" in message:
            Path(sys.argv[1]).write_text(json.dumps([root["uri"] for root in message["result"]["roots"]]))
        elif "id" in message and method is not None:
            result = answer(method, message.get("params") or {})
            said = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
            say(id=message["id"], **said)


if __name__ == "__main__":
    main()
