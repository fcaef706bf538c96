"""`generateContent` and `streamGenerateContent`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mock_providers.wire import MOST_CALLS, SAID, Reply


class Contents:
    def error(self, message: str) -> Any:
        return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}

    def answer(self, asked: Mapping[str, Any], id_: str, path: str) -> Reply:
        parts = [{"functionCall": {"name": name, "args": {}}} for name in _called(asked)] or [{"text": SAID}]
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}

        def answer(parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
            candidate = {"content": {"role": "model", "parts": parts}, "index": 0} | more
            return {
                "candidates": [candidate],
                "usageMetadata": usage,
                "modelVersion": "some-model",
                "responseId": id_,
            }

        if ":stream" not in path:
            return Reply(document=answer(parts, finishReason="STOP"))
        pieces = [answer([part]) for part in parts]
        return Reply(events=[("", each) for each in [*pieces, answer([{"text": ""}], finishReason="STOP")]])


def _called(asked: Mapping[str, Any]) -> list[str]:
    config = asked.get("toolConfig", asked.get("tool_config")) or {}
    calling = config.get("functionCallingConfig", config.get("function_calling_config")) or {}
    answered = any("functionResponse" in part for part in asked["contents"][-1].get("parts", ()))
    if answered or calling.get("mode") == "NONE":
        return []
    return (calling.get("allowedFunctionNames") or list(_declared(asked)))[:MOST_CALLS]


def _declared(asked: Mapping[str, Any]) -> Iterator[str]:
    for group in asked.get("tools", ()):
        for each in group.get("functionDeclarations", group.get("function_declarations")) or ():
            yield each["name"]
