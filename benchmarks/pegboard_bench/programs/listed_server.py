"""An MCP server on standard streams that lists the recorded tools of other servers, to make a board large.

    python listed_server.py FILE.jsonl.gz LEFT_OUT COUNT

Nobody calls them: each call is answered with its name.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any


def recorded(path: Path, left_out: frozenset[str], count: int) -> list[dict[str, Any]]:
    """The first tools of the recorded servers, each name once; where they are too few, again under other names."""
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    servers = [json.loads(line) for line in lines]
    tools = [tool for server in servers if server["name"] not in left_out for tool in server["tools"]]
    named = {tool["name"]: tool for tool in tools}
    found = list(named.values())
    copies = (tool | {"name": f"{tool['name']}_{turn}"} for turn in range(2, 100) for tool in found)
    return [*found, *copies][:count] if count > len(found) else found[:count]


def main(tools: list[dict[str, Any]]) -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        method, params = asked.get("method"), asked.get("params") or {}
        result: dict[str, Any] | None = None
        if method == "initialize":
            about = {"name": "listed", "version": "1"}
            result = {"protocolVersion": params["protocolVersion"], "serverInfo": about, "capabilities": {"tools": {}}}
        elif method == "tools/list":
            result = {"tools": tools}
        elif method == "tools/call":
            result = {"content": [{"type": "text", "text": params["name"]}]}
        error = {"error": {"code": -32601, "message": "Method not found"}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"]} | ({"result": result} if result else error)))
        sys.stdout.write("\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(recorded(Path(sys.argv[1]), frozenset(sys.argv[2].split(",")), int(sys.argv[3])))
