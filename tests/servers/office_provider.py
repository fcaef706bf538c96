"""A provider of models for agents of frameworks, as a process: every request checked, a scripted model.

The argument is the port. `GET /noted` tells what has come since it was last asked: of each request the agent that it is
of (a hash of its instructions), the names of its tools and whether a call was required; and what was wrong.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send

sys.path.insert(0, __file__.rpartition("/servers/")[0])

from mock_providers import MockProviders
from mock_providers.office import OfficeModel, has_to_call
from mock_providers.wire import Reply


class OfficeProvider:
    def __init__(self) -> None:
        self.providers = MockProviders(model=OfficeModel())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/noted":
            await Reply(document=self.noted()).send(send)
            self.providers.forget()
        elif scope["path"] == "/healthz" or scope["method"] == "HEAD":
            await Reply(document={}).send(send)
        else:
            await self.providers(scope, receive, send)

    def noted(self) -> dict[str, Any]:
        bodies = [received.json for received in self.providers.received if received.method == "POST" and received.body]
        return {
            "requests": [
                {"agent": _agent(body), "tools": list(_names(body)), "required": has_to_call(body)} for body in bodies
            ],
            "refused": self.providers.refused,
        }


def _agent(body: Mapping[str, Any]) -> str:
    """Whose request it is: what its instructions say, which differ from agent to agent."""
    said = [
        body.get("instructions"),
        body.get("systemInstruction") or body.get("system_instruction"),
        [each for each in body.get("messages", ()) if each["role"] in ("system", "developer")],
    ]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:12]


def _names(body: Mapping[str, Any]) -> Iterator[str]:
    for tool in body.get("tools", ()):
        for each in tool.get("functionDeclarations", [tool]):
            yield str(each.get("function", each).get("name", each.get("type")))


async def serve(port: int) -> None:
    quiet: dict[str, Any] = {"lifespan": "off", "log_level": "error", "ws": "none", "timeout_graceful_shutdown": 1}
    await uvicorn.Server(uvicorn.Config(OfficeProvider(), port=port, **quiet)).serve()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
