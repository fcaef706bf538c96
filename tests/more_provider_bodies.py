"""Requests and answers of Bedrock Converse and Cohere Chat for tests, and the frames of Bedrock's streams."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from zlib import crc32

from model_bodies import SIZED
from pegboard.gateways.llm.formats.bedrock.request import BedrockConverse
from pegboard.gateways.llm.formats.cohere.request import CohereChat
from pegboard.gateways.llm.formats.protocol import Codec

CONVERSE = "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse"
NAMES = ("book_flight", "renew_loan", "tune_piano", "water_plants", "call_taxi")
POINT = {"cachePoint": {"type": "default"}}
USED = (10, 5)
"""Tokens of an answer."""
Call: TypeAlias = tuple[str, Mapping[str, Any]]
"""A tool, and its arguments."""
CODECS: Mapping[str, tuple[Codec, str]] = {
    "bedrock": (BedrockConverse(), CONVERSE),
    "cohere": (CohereChat(), "/v2/chat"),
}


def specified(name: str) -> dict[str, Any]:
    return {"toolSpec": {"name": name, "description": name.replace("_", " "), "inputSchema": {"json": SIZED}}}


def function(name: str) -> dict[str, Any]:
    said = {"name": name, "description": name.replace("_", " "), "parameters": SIZED}
    return {"type": "function", "function": said}


def converse(text: str = "renew the loan", **config: Any) -> dict[str, Any]:
    tools = config.pop("tools", [specified(name) for name in NAMES])
    return {
        "system": [{"text": "Be kind."}, POINT],
        "messages": [{"role": "user", "content": [{"text": text}]}],
        "toolConfig": {"tools": tools, **config},
        "inferenceConfig": {"maxTokens": 100},
    }


def chat(text: str = "renew the loan", **more: Any) -> dict[str, Any]:
    return {
        "model": "command-a-03-2025",
        "messages": [{"role": "user", "content": text}],
        "tools": [function(name) for name in NAMES],
        **more,
    }


def frame(event: str, payload: dict[str, Any]) -> bytes:
    """A frame of an event stream, as Bedrock writes it."""
    headers = b""
    for name, value in ((":event-type", event), (":content-type", "application/json"), (":message-type", "event")):
        headers += bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    whole = prelude + struct.pack(">I", crc32(prelude)) + headers + body
    return whole + struct.pack(">I", crc32(whole))


def answer_of_converse(calls: Sequence[Call], text: str, number: int) -> dict[str, Any]:
    uses = [
        {"toolUse": {"toolUseId": f"t{number}{place}", "name": tool, "input": dict(given)}}
        for place, (tool, given) in enumerate(calls)
    ]
    content = [*([{"text": text}] if text else []), *uses]
    usage = {"inputTokens": USED[0], "outputTokens": USED[1], "totalTokens": sum(USED)}
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use" if calls else "end_turn",
        "usage": usage,
        "metrics": {"latencyMs": 7},
    }


def answer_of_cohere(calls: Sequence[Call], text: str, number: int) -> dict[str, Any]:
    made = [
        {"id": f"c{number}{place}", "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
        for place, (tool, given) in enumerate(calls)
    ]
    said: dict[str, Any] = {"tool_plan": text} if calls and text else {"content": [{"type": "text", "text": text}]}
    return {
        "id": f"answer_{number}",
        "message": {
            "role": "assistant",
            **({} if calls and not text else said),
            **({"tool_calls": made} if made else {}),
        },
        "finish_reason": "TOOL_CALL" if calls else "COMPLETE",
        "usage": {"tokens": {"input_tokens": USED[0], "output_tokens": USED[1]}},
    }
