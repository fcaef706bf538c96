"""Messages and `count_tokens`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mock_providers.wire import MOST_CALLS, SAID, Reply


class Messages:
    def error(self, message: str) -> Any:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}

    def answer(self, asked: Mapping[str, Any], id_: str, path: str) -> Reply:
        if path.endswith("/count_tokens"):
            return Reply(document={"input_tokens": len(json.dumps(asked)) // 4})
        blocks = _calls(asked) or [{"type": "text", "text": SAID}]
        reason = "tool_use" if blocks[0]["type"] == "tool_use" else "end_turn"
        message = {
            "id": id_,
            "type": "message",
            "role": "assistant",
            "model": asked.get("model", ""),
            "content": blocks,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {"input_tokens": 100, "output_tokens": 20},
        }
        if not asked.get("stream"):
            return Reply(document=message)
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": message | {"content": [], "stop_reason": None}},
            {"type": "ping"},
        ]
        for place, block in enumerate(blocks):
            events += _block_events(place, block)
        ended = {"stop_reason": reason, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 20}})
        events.append({"type": "message_stop"})
        return Reply(events=[(event["type"], event) for event in events])


def _calls(asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    choice = asked.get("tool_choice", {})
    names = [
        tool["name"]
        for tool in asked.get("tools", ())
        if tool.get("type") in (None, "custom") and not tool.get("defer_loading")
    ]
    if choice.get("type") == "tool":
        names = [choice["name"]]
    said = asked["messages"][-1]["content"]
    answered = isinstance(said, list) and any(block.get("type") == "tool_result" for block in said)
    if answered or choice.get("type") == "none":
        return []
    most = 1 if choice.get("disable_parallel_tool_use") else MOST_CALLS
    return [{"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": {}} for name in names[:most]]


def _block_events(place: int, block: dict[str, Any]) -> list[dict[str, Any]]:
    if block["type"] == "text":
        begun, delta = block | {"text": ""}, {"type": "text_delta", "text": SAID}
    else:
        begun, delta = block, {"type": "input_json_delta", "partial_json": "{}"}
    return [
        {"type": "content_block_start", "index": place, "content_block": begun},
        {"type": "content_block_delta", "index": place, "delta": delta},
        {"type": "content_block_stop", "index": place},
    ]
