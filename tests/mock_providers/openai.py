"""Chat Completions and Responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mock_providers.wire import MOST_CALLS, SAID, Reply


def error(message: str) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}


class Chat:
    def error(self, message: str) -> Any:
        return error(message)

    def answer(self, asked: Mapping[str, Any], id_: str, path: str) -> Reply:
        calls = _chat_calls(asked)
        reason = "tool_calls" if calls else "stop"
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        shared = {"id": id_, "created": 1, "model": asked.get("model", "")}
        if not asked.get("stream"):
            message = {"role": "assistant", "content": None if calls else SAID, "refusal": None}
            message |= {"tool_calls": calls} if calls else {}
            choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
            return Reply(document=shared | {"object": "chat.completion", "choices": [choice], "usage": usage})

        def chunk(delta: Mapping[str, Any], finished: str | None = None) -> tuple[str, Any]:
            choice = {"index": 0, "delta": delta, "finish_reason": finished}
            return "", shared | {"object": "chat.completion.chunk", "choices": [choice]}

        events = [chunk({"role": "assistant", "content": None if calls else ""})]
        for number, call in enumerate(calls):
            opened = call | {"index": number, "function": {"name": call["function"]["name"], "arguments": ""}}
            events.append(chunk({"tool_calls": [opened]}))
            events += [
                chunk({"tool_calls": [{"index": number, "function": {"arguments": part}}]}) for part in ("{", "}")
            ]
        events += [] if calls else [chunk({"content": word}) for word in SAID.split(" ")]
        last = shared | {"object": "chat.completion.chunk", "choices": [], "usage": usage}
        return Reply(events=[*events, chunk({}, reason), ("", last), ("", "[DONE]")])


def _chat_calls(asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    names = [tool["function"]["name"] for tool in asked.get("tools", ()) if tool.get("type") == "function"]
    choice = asked.get("tool_choice")
    if isinstance(choice, Mapping) and "function" in choice:
        names = [choice["function"]["name"]]
    if choice == "none" or asked["messages"][-1].get("role") == "tool":
        return []
    most = MOST_CALLS if asked.get("parallel_tool_calls", True) else 1
    return [
        {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for name in names[:most]
    ]


class Responses:
    def error(self, message: str) -> Any:
        return error(message)

    def answer(self, asked: Mapping[str, Any], id_: str, path: str) -> Reply:
        output = _items(asked)
        response = {
            "id": id_,
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": asked.get("model", ""),
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": asked.get("tool_choice", "auto"),
            "tools": asked.get("tools", []),
            "usage": {
                "input_tokens": 100,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 20,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 120,
            },
        }
        if not asked.get("stream"):
            return Reply(document=response)
        begun = response | {"status": "in_progress", "output": [], "usage": None}
        events: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
        for place, item in enumerate(output):
            events += _item_events(place, item)
        events.append({"type": "response.completed", "response": response})
        return Reply(
            events=[(event["type"], event | {"sequence_number": number}) for number, event in enumerate(events)]
        )


def _items(asked: Mapping[str, Any]) -> list[dict[str, Any]]:
    said = asked.get("input")
    answered = isinstance(said, list) and said and said[-1].get("type") == "function_call_output"
    names = [tool["name"] for tool in asked.get("tools", ()) if tool.get("type") == "function"]
    choice = asked.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") == "function":
        names = [choice["name"]]
    if answered or choice == "none" or not names:
        text = {"type": "output_text", "text": SAID, "annotations": []}
        return [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [text]}]
    return [
        {
            "type": "function_call",
            "id": f"fc_{name}",
            "call_id": f"call_{name}",
            "name": name,
            "arguments": "{}",
            "status": "completed",
        }
        for name in names[: MOST_CALLS if asked.get("parallel_tool_calls", True) else 1]
    ]


def _item_events(place: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    at = {"item_id": item["id"], "output_index": place}
    if item["type"] == "function_call":
        opened = item | {"arguments": "", "status": "in_progress"}
        inside = [
            {"type": "response.function_call_arguments.delta", "delta": "{}"} | at,
            {"type": "response.function_call_arguments.done", "arguments": "{}", "name": item["name"]} | at,
        ]
    else:
        opened = item | {"content": [], "status": "in_progress"}
        part = item["content"][0]
        at |= {"content_index": 0}
        inside = [
            {"type": "response.content_part.added", "part": part | {"text": ""}} | at,
            {"type": "response.output_text.delta", "delta": SAID, "logprobs": []} | at,
            {"type": "response.output_text.done", "text": SAID, "logprobs": []} | at,
            {"type": "response.content_part.done", "part": part} | at,
        ]
    return [
        {"type": "response.output_item.added", "output_index": place, "item": opened},
        *inside,
        {"type": "response.output_item.done", "output_index": place, "item": item},
    ]
