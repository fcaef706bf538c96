"""A server in plain Python that runs tools as tasks (MCP 2025-11-25, tasks): tasked.py

`dig` may run as a task and `drill` only runs as one. Both tell of the end of their task, and answer the depth.
"""

from __future__ import annotations

import json
import sys
from typing import Any

SCHEMA = {"type": "object", "properties": {"depth": {"type": "integer"}}}
TOOLS = [
    {"name": name, "description": f"{name} a hole", "inputSchema": SCHEMA, "execution": {"taskSupport": support}}
    for name, support in (("dig", "optional"), ("drill", "required"))
]
CAPABILITIES = {"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}
RELATED = "io.modelcontextprotocol/related-task"
tasks: dict[str, dict[str, Any]] = {}
results: dict[str, dict[str, Any]] = {}


def say(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0"} | message), flush=True)


def called(params: dict[str, Any]) -> dict[str, Any]:
    result = {"content": [{"type": "text", "text": f"{params['name']} {(params.get('arguments') or {}).get('depth')}"}]}
    if "task" not in params:
        return result
    name = f"task-{len(tasks)}"
    times = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
    tasks[name] = {"taskId": name, "status": "working", "ttl": params["task"].get("ttl"), "pollInterval": 50} | times
    results[name] = result | {"_meta": {RELATED: {"taskId": name}}}
    return {"task": dict(tasks[name])}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    task = params.get("taskId")
    match method:
        case "initialize":
            about = {"serverInfo": {"name": "tasked", "version": "1"}, "capabilities": CAPABILITIES}
            return about | {"protocolVersion": params["protocolVersion"]}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return called(params)
        case "tasks/list":
            return {"tasks": list(tasks.values())}
        case "tasks/get" if task in tasks:
            return tasks[task]
        case "tasks/result" if task in tasks:
            tasks[task]["status"] = "completed"
            say(method="notifications/tasks/status", params=tasks[task])
            return results[task]
        case "tasks/cancel" if task in tasks:
            tasks[task]["status"] = "cancelled"
            return tasks[task]
    return None


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = answer(message["method"], message.get("params") or {})
        wrong = {"code": -32602, "message": "Unknown task"}
        say(id=message["id"], **({"error": wrong} if result is None else {"result": result}))


if __name__ == "__main__":
    main()
