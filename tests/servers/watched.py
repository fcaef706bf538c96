"""A server of the handshake era that writes into a file what it is to watch, a line for each request.

watched.py FILE [refuses]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RESOURCES = [{"uri": f"note://watched/{name}", "name": name} for name in ("one", "two", "three")]
CAPABILITIES = {"tools": {}, "resources": {"subscribe": True}}
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
        case "resources/subscribe" | "resources/unsubscribe":
            with Path(sys.argv[1]).open("a") as file:
                print(method.partition("/")[2], params["uri"], file=file)
            return None if "refuses" in sys.argv and method == "resources/unsubscribe" else {}
    return None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = answer(message["method"], message.get("params") or {})
            said = {"error": {"code": -32601, "message": "no"}} if result is None else {"result": result}
            print(json.dumps({"jsonrpc": "2.0", "id": message["id"]} | said), flush=True)


if __name__ == "__main__":
    main()
