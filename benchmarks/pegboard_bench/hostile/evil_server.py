"""An MCP server on stdio whose schemas are made to take for ever. Its own program: standard library only.

``python evil_server.py``: the tool `double` has thirty definitions that refer twice to the next, `back` a pattern that
goes back and back, and `promise` the former in its output schema; `fine` is an ordinary one.
"""

from __future__ import annotations

import json
import sys
from typing import Any

DOUBLED: dict[str, Any] = {f"x{step}": {"allOf": [{"$ref": f"#/$defs/x{step + 1}"}] * 2} for step in range(30)} | {
    "x30": {}
}
DOUBLE: dict[str, Any] = {"type": "object", "$defs": DOUBLED, "properties": {"a": {"$ref": "#/$defs/x0"}}}
BACK: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
WORST: dict[str, Any] = {"double": {"a": 1}, "back": {"a": "a" * 40 + "!"}, "promise": {}}
"""The arguments that each tool takes longest with."""
PROMISE: dict[str, Any] = {"type": "object", "$defs": DOUBLED, "properties": {"a": {"allOf": [{"$ref": "#/$defs/x0"}]}}}
FINE: dict[str, Any] = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS: list[dict[str, Any]] = [
    {"name": "double", "description": "Doubles", "inputSchema": DOUBLE},
    {"name": "back", "description": "Goes back", "inputSchema": BACK},
    {"name": "promise", "description": "Promises", "inputSchema": FINE, "outputSchema": PROMISE},
    {"name": "fine", "description": "Says a text", "inputSchema": FINE},
]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        about = {"name": "evil", "version": "1"}
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        said = {"content": [{"type": "text", "text": params["name"]}]}
        return said | ({"structuredContent": WORST["back"]} if params["name"] == "promise" else {})
    return {}


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked and "method" in asked:
            result = answer(asked["method"], asked.get("params") or {})
            sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
