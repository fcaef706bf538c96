"""The model of a play: the noisy oracle, or any endpoint that speaks OpenAI's Chat Completions."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp

from pegboard.errors import ConfigError
from pegboard_bench.whole_tasks.oracle import NoisyOracle
from pegboard_bench.whole_tasks.sent import Body, Sent

PATIENCE = 1800.0
"""Seconds for an answer: small machines read tens of tokens a second."""
NAME = "gpt-5.4"
"""What requests call the oracle: a model whose prices and prompt cache are known."""

Message = dict[str, Any]
Respond = Callable[[Body], Awaitable[Message]]


class Model:
    """Answers the requests of the play that runs, and notes them. One play at a time."""

    def __init__(self, name: str = NAME) -> None:
        self.name = name
        self.sent = Sent()
        self.inline: list[str] = []
        self._respond: Respond | None = None

    def begin(self, respond: Respond) -> None:
        """A new play: nothing was sent yet."""
        self.sent, self.inline, self._respond = Sent(), [], respond

    async def answer(self, body: Body) -> Message:
        """The assistant's message. Raises ConfigError for an endpoint that does not answer."""
        self.sent.add(body, self.inline)
        if self._respond is None:
            raise RuntimeError("No play has begun")
        return await self._respond(body)


def oracle(noisy: NoisyOracle) -> Respond:
    async def respond(body: Body) -> Message:
        return noisy.respond(body.get("tools") or (), body["messages"])

    return respond


def endpoint(url: str, name: str, session: aiohttp.ClientSession) -> Respond:
    """A model behind an address ending in `/v1`; the key, where one is needed, is in `OPENAI_API_KEY`."""
    key = os.environ.get("OPENAI_API_KEY")
    headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def respond(body: Body) -> Message:
        asked = {name: value for name, value in body.items() if value} | {"model": name, "temperature": 0}
        try:
            async with session.post(f"{url.rstrip('/')}/chat/completions", json=asked, headers=headers) as response:
                said: Mapping[str, Any] = await response.json(content_type=None)
            message = dict(said["choices"][0]["message"])
        except (aiohttp.ClientError, TimeoutError, ValueError, LookupError, TypeError) as error:
            raise ConfigError(
                f"The endpoint {url!r} does not answer: {type(error).__name__}.", remedy="Check --model-url."
            ) from error
        return {"role": "assistant", "content": message.get("content")} | (
            {"tool_calls": message["tool_calls"]} if message.get("tool_calls") else {}
        )

    return respond
