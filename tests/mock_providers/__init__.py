"""A server that answers as model providers do, and refuses what they would refuse.

It calls the first tools that a request offers, until one of them has answered; then it says something.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.types import Receive, Scope, Send

from mock_providers import anthropic, gemini, openai
from mock_providers.scripted import SCRIPTED, SIGNS, STREAMS, Model
from mock_providers.wire import Provider, Reply
from pegboard.gateways.llm.formats.registry import codec_for
from strict_upstreams import PROBLEMS
from strict_upstreams.conversations import CONVERSATIONS, unsigned


class Silent:
    """A provider whose answers no test with this server is about: they say nothing."""

    def answer(self, asked: Mapping[str, Any], id_: str, path: str) -> Reply:
        return Reply(document={})

    def error(self, message: str) -> Any:
        return {"message": message}


PROVIDERS: Mapping[str, Provider] = {
    "openai_chat": openai.Chat(),
    "openai_responses": openai.Responses(),
    "anthropic": anthropic.Messages(),
    "gemini": gemini.Contents(),
    "bedrock": Silent(),
    "cohere": Silent(),
}
SIGNING = "gemini-3"
"""In the names of models that sign their calls, and refuse what is not signed."""
MODELS = {"object": "list", "data": [{"id": "some-model", "object": "model", "created": 1, "owned_by": "mock"}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A request as it arrived."""

    method: str
    target: str
    headers: list[tuple[bytes, bytes]]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        found = [value.decode("latin-1") for key, value in self.headers if key.decode("latin-1") == name]
        return ", ".join(found) if found else None


@dataclass
class MockProviders:
    """An ASGI application; ``refused`` tells what was wrong with requests that got a 400. ``model`` says what it
    answers, where there is one; any request that asks no model is answered with ``status``."""

    received: list[Received] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    answers: set[str] = field(default_factory=set)
    stored: dict[str, list[Any]] = field(default_factory=dict)
    """The items of conversations, by the id of a stored answer of a scripted model."""
    model: Model | None = None
    status: int = 200

    @property
    def last(self) -> Received:
        return self.received[-1]

    def forget(self) -> None:
        """What came so far."""
        self.received.clear()
        self.refused.clear()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await body_of(receive)
        raw = scope["raw_path"].partition(b"?")[0] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        self.received.append(
            Received(method=scope["method"], target=raw.decode(), headers=list(scope["headers"]), body=body)
        )
        codec = codec_for(scope["path"]) if scope["method"] == "POST" else None
        reply = Reply(document=MODELS, status=self.status) if codec is None else self._answer(codec.name, scope, body)
        await reply.send(send)

    def _answer(self, format_: str, scope: Scope, body: bytes) -> Reply:
        provider = PROVIDERS[format_]
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError) as error:
            return self._refuse(provider, [f"the body is no JSON: {error}"])
        if isinstance(asked, dict) and "generateContentRequest" in asked:  # to be counted
            asked = {name: value for name, value in asked["generateContentRequest"].items() if name != "model"}
        problems = PROBLEMS[format_](asked)
        asked = self._whole(asked)
        problems += CONVERSATIONS[format_](asked) if self.model is not None else []
        signs = self.model is not None and SIGNING in f"{scope['path']} {asked.get('model', '')}"
        problems += unsigned(format_, asked) if signs else []
        earlier = asked.get("previous_response_id")
        if earlier is not None and earlier not in self.answers:
            problems.append(f"previous_response_id: {earlier!r} is not known")
        if problems:
            return self._refuse(provider, problems)
        id_ = f"answer_{len(self.answers)}"
        self.answers.add(id_)
        if self.model is not None:
            reply = SCRIPTED[format_](self.model, asked | {STREAMS: "stream" in scope["path"], SIGNS: signs}, id_)
            if format_ == "openai_responses" and asked.get("store") is not False:
                answer = reply.events[-1][1]["response"] if reply.events else reply.document
                self.stored[id_] = [*asked["input"], *answer["output"]]
            return reply
        return provider.answer(asked, id_, scope["path"])

    def _whole(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The request with the stored items that it continues or refers to."""
        said = asked.get("input")
        if said is None or self.model is None:
            return asked
        items = said if isinstance(said, list) else [{"role": "user", "content": said}]
        known = {each["id"]: each for answer in self.stored.values() for each in answer if "id" in each}
        items = [known[each["id"]] if {*each} <= {"type", "id"} else each for each in items]
        return asked | {"input": [*self.stored.get(asked.get("previous_response_id", ""), ()), *items]}

    def _refuse(self, provider: Provider, problems: list[str]) -> Reply:
        self.refused += problems
        return Reply(document=provider.error("; ".join(problems)), status=400)


async def body_of(receive: Receive) -> bytes:
    return b"".join([piece async for piece in _pieces(receive)])


async def _pieces(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        yield message.get("body", b"")
        more = message.get("more_body", False)
