"""What the drivers beside this one share. Nothing but the standard library: each driver has packages of its own.

A job, on standard input: {"transport": "stdio"|"http", "mode": "auto"|"legacy", "command", "args", "env", "cwd" |
"url", "headers", "steps"}; a step: ["list"], ["call", NAME, ARGUMENTS] or ["await", NOTIFICATION], which has to come
after the last call began. On standard output: what the client was given.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

PATIENCE = 30


class Asking(Protocol):
    """A client, as its driver shows it: everything as it was on the wire."""

    async def tools(self) -> list[Any]: ...

    async def call(self, name: str, arguments: dict[str, Any]) -> Any: ...


class Heard:
    """The notifications a client was sent."""

    def __init__(self) -> None:
        self.methods: list[str] = []
        self._before = 0
        self._told = asyncio.Condition()

    async def note(self, message: Any) -> None:
        """A message of either SDK; what is no notification is left out."""
        method = getattr(getattr(message, "root", message), "method", None)
        if method is not None:
            self.methods.append(method)
            async with self._told:
                self._told.notify_all()

    async def step(self, client: Asking, kind: str, *rest: Any) -> Any:
        if kind == "list":
            return await client.tools()
        if kind == "call":
            self._before = len(self.methods)
            return await client.call(*rest)
        async with asyncio.timeout(PATIENCE), self._told:
            await self._told.wait_for(lambda: rest[0] in self.methods[self._before :])
        return self.methods[self._before :]

    async def done(self, client: Asking, protocol: object, steps: list[list[Any]]) -> dict[str, Any]:
        results = [await self.step(client, *each) for each in steps]
        return {"protocol": str(protocol), "results": results, "notified": self.methods}


def wire(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def main(run: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> None:
    async def once() -> dict[str, Any]:
        return await run(json.load(sys.stdin))

    print(json.dumps(asyncio.run(once())))
