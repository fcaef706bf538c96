"""A server in plain Python that lists what a file says, so that a test can have it say something else tomorrow.

listed.py FILE    # {"title": …, "instructions": …, "page": 2, "tools": […], "fails": […]}, read anew for each answer

It speaks the handshake era; with LISTED_MODERN set, that of 2026. A call answers the name of the tool and of the file.
The tools that `fails` names answer with an error, those in `structured` with that content, and those that `wordless`
names without a text. `"tools": null` is a server that has no such list and says so. With `"announces": true` a call is
followed by the notice that the list has changed, if the file has.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

FILE = Path(sys.argv[1])
MODERN = bool(os.environ.get("LISTED_MODERN"))
ENVELOPE: dict[str, Any] = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if MODERN else {}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    said = json.loads(FILE.read_text("utf-8"))
    about = {
        "serverInfo": {"name": "listed", "title": said["title"], "version": said.get("version", "1")},
        "instructions": said["instructions"],
        "capabilities": {}
        if said["tools"] is None
        else {"tools": {"listChanged": True} if said.get("announces") else {}},
    }
    match method:
        case "initialize" if not MODERN:
            return about | {"protocolVersion": params["protocolVersion"]}
        case "server/discover" if MODERN:
            stamp = {"_meta": {"io.modelcontextprotocol/serverInfo": about["serverInfo"]}}
            return about | stamp | {"supportedVersions": ["2026-07-28"]} | ENVELOPE
        case "tools/list" if said["tools"] is not None:
            start, size = int(params.get("cursor") or 0), said.get("page", 100)
            more = {"nextCursor": str(start + size)} if start + size < len(said["tools"]) else {}
            return {"tools": said["tools"][start : start + size]} | more | ENVELOPE
        case "tools/call":
            [tool] = [tool for tool in said["tools"] if tool["name"] == params["name"]]
            text = {"type": "text", "text": f"{FILE.stem}/{params['name']}"}
            return (
                {"content": [] if tool["name"] in said.get("wordless", ()) else [text]}
                | structured(tool, said.get("structured", {}))
                | ({"isError": True} if tool["name"] in said.get("fails", ()) else {})
                | ENVELOPE
            )
    return None


def structured(tool: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What is given for it, or what its `outputSchema` promises, if it has one."""
    if tool["name"] in given:
        return {"structuredContent": given[tool["name"]]}
    if "outputSchema" not in tool:
        return {}
    kind = tool["outputSchema"]["properties"]["done"]["type"]
    return {"structuredContent": {"done": "yes" if kind == "string" else True}}


def main() -> None:
    listed = FILE.read_bytes()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        unknown = {"code": -32601, "message": f"no {message['method']} here"}
        said = {"error": unknown} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"]} | said), flush=True)
        if message["method"] == "tools/call" and FILE.read_bytes() != listed and b'"announces": true' in listed:
            listed = FILE.read_bytes()
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}), flush=True)


if __name__ == "__main__":
    main()
