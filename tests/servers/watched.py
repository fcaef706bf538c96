"""A server of the handshake era that writes what it is to watch, and its log level, into a file, a line each.

watched.py FILE [refuses]

Whoever reads a resource changes it, which is told; of `note://watched/end`, the server ends.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RESOURCES = [{"uri": f"note://watched/{name}", "name": name} for name in ("one", "two", "three")]
CAPABILITIES = {"tools": {}, "logging": {}, "resources": {"subscribe": True}}
ABOUT = {"serverInfo": {"name": "watched", "version": "1"}, "capabilities": CAPABILITIES}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return ABOUT | {"protocolVersion": params["protocolVersion"]}
        case "tools/list":
            return {"tools": []}
        case "resources/list":
            return {"resources": RESOURCES}
        case "resources/subscribe" if all(each["uri"] != params["uri"] for each in RESOURCES):
            return None
        case "resources/read" if params["uri"] == "note://watched/end":
            sys.exit(1)
        case "resources/read":
            say(method="notifications/resources/updated", params={"uri": params["uri"]})
            return {"contents": [{"uri": params["uri"], "text": "changed"}]}
        case "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel":
            with Path(sys.argv[1]).open("a") as file:
                print(method.partition("/")[2], *params.values(), file=file)
            return None if "refuses" in sys.argv and method == "resources/unsubscribe" else {}
    return None


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = answer(message["method"], message.get("params") or {})
            said = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
            say(id=message["id"], **said)


if __name__ == "__main__":
    main()
