"""What talkative servers say and ask in the course of a call, to a client that says no more than it must."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import httpx2

from doors import Raw

ASKED_BY_FORM = {"elicitation": {"form": {}}}
STEPS = (1, 2, 3)


@dataclass
class Heard:
    """One call: its result, the messages of its progress, what was logged, and how often somebody was asked."""

    back: httpx2.AsyncClient
    result: dict[str, Any] = field(default_factory=dict)
    progress: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    questions: int = 0

    @property
    def text(self) -> str:
        return str(self.result["content"][0]["text"])


async def hear(raw: Raw, name: str, arguments: dict[str, Any], *, word: str, back: httpx2.AsyncClient) -> Heard:
    """Call a tool, and answer with this word whoever asks for one.

    Answers go ``back`` on connections of their own: all others may be waiting for them.
    """
    heard = Heard(back=back)
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    meta = {"progressToken": word} | ({"io.modelcontextprotocol/logLevel": "info"} if raw.modern else {})
    await _round(raw, params | {"_meta": meta}, heard, word)
    while heard.result.get("resultType") == "input_required":
        answers = {key: _accepted(word) for key in heard.result["inputRequests"]}
        heard.questions += len(answers)
        again = params | {"_meta": meta, "inputResponses": answers, "requestState": heard.result["requestState"]}
        await _round(raw, again, heard, word)
    return heard


async def _round(raw: Raw, params: dict[str, Any], heard: Heard, word: str) -> None:
    message, headers = raw.prepared("tools/call", params)
    async with raw.http.stream("POST", raw.url, json=message, headers=headers) as answer:
        if answer.headers["content-type"].startswith("application/json"):
            heard.result = json.loads(await answer.aread())["result"]
            return
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                await _one(raw, json.loads(line.removeprefix("data: ")), message["id"], heard, word)


async def _one(raw: Raw, came: dict[str, Any], call: int, heard: Heard, word: str) -> None:
    match came.get("method"):
        case "notifications/progress":
            assert came["params"]["progressToken"] == word, "somebody else's progress"
            heard.progress.append(came["params"]["message"])
        case "notifications/message":
            heard.logs.append(came["params"]["data"]["said"])
        case "elicitation/create":
            heard.questions += 1
            _, headers = raw.prepared("notifications/initialized", None)
            told = {"jsonrpc": "2.0", "id": came["id"], "result": _accepted(word)}
            assert (await heard.back.post(raw.url, json=told, headers=headers)).status_code == 202
        case None:
            assert came["id"] == call, "an answer that got lost"
            heard.result = came["result"]


def _accepted(word: str) -> dict[str, Any]:
    return {"action": "accept", "content": {"word": word}}
