"""A server of the handshake era that writes what it is to watch, and its log level, into a file, a line each.

watched.py FILE [refuses] [silent]

Whoever reads a resource changes it, which is told; of `note://watched/end`, the server ends. Its only prompt has the
number of its starts as name; if it is silent, which tells of no change, that of all its answers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RESOURCES = [{"uri": f"note://watched/{name}", "name": name} for name in ("one", "two", "three")]
SILENT = "silent" in sys.argv
CAPABILITIES = {
    "tools": {},
    "logging": {},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": not SILENT},
}
ABOUT = {"serverInfo": {"name": "watched", "version": "1"}, "capabilities": CAPABILITIES}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return ABOUT | {"protocolVersion": params["protocolVersion"]}
        case "tools/list":
            return {"tools": []}
        case "resources/list":
            return {"resources": RESOURCES}
        case "prompts/list":
            note("listed prompts")
            told = Path(sys.argv[1]).read_text().splitlines()
            return {"prompts": [{"name": str(told.count("listed prompts" if SILENT else "started server"))}]}
        case "resources/subscribe" if all(each["uri"] != params["uri"] for each in RESOURCES):
            return None
        case "resources/read" if params["uri"] == "note://watched/end":
            sys.exit(1)
        case "resources/read":
            say(method="notifications/resources/updated", params={"uri": params["uri"]})
            return {"contents": [{"uri": params["uri"], "text": "changed"}]}
        case "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel":
            note(f"{method.partition('/')[2]} {params.get('uri') or params['level']}")
            return None if "refuses" in sys.argv and method == "resources/unsubscribe" else {}
    return None


def note(line: str) -> None:
    with Path(sys.argv[1]).open("a") as file:
        print(line, file=file)


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


def main() -> None:
    note("started server")
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = answer(message["method"], message.get("params") or {})
            said = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
            say(id=message["id"], **said)


if __name__ == "__main__":
    main()
