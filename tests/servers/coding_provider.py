"""A provider of models for coding agents, as a process: every wire format, every request checked, a scripted model.

The argument is the port. `PUT /script` says what the model plays: `{"prompt": …, "steps": [{"tool", "arguments"}]}`.
`GET /noted` tells what has come since then: the requests, what was wrong with them, the tools that the model missed,
and what was asked of the issue tracker that is behind `/rest/`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import uvicorn
from starlette.types import Receive, Scope, Send

sys.path.insert(0, __file__.rpartition("/servers/")[0])

from mock_providers import MockProviders, body_of
from mock_providers.coding import CodingModel
from mock_providers.jira import PREFIX, Jira
from mock_providers.wire import Reply


class CodingProvider:
    def __init__(self) -> None:
        self.model = CodingModel()
        self.providers = MockProviders(model=self.model)
        self.jira = Jira()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, method = scope["path"], scope["method"]
        if path == "/script":
            script = json.loads(await body_of(receive))
            self.model.play(script["prompt"], script["steps"])
            self.providers.forget()
            self.jira = Jira()
            await Reply(document={}).send(send)
        elif path == "/noted":
            await Reply(document=self.noted()).send(send)
        elif path == "/healthz" or method == "HEAD":
            await Reply(document={}).send(send)
        elif path.startswith(PREFIX):
            await self.jira.answer(method, path, await body_of(receive)).send(send)
        else:
            await self.providers(scope, receive, send)

    def noted(self) -> dict[str, Any]:
        return {
            "requests": [
                {
                    "target": received.target,
                    "headers": {key.decode("latin-1"): value.decode("latin-1") for key, value in received.headers},
                    "body": received.json,
                    "played": self.model.plays_in(received.json),
                }
                for received in self.providers.received
                if received.method == "POST" and received.body
            ],
            "refused": self.providers.refused,
            "missed": self.model.missed,
            "issues_read": self.jira.read,
            "comments": self.jira.comments,
        }


async def serve(port: int) -> None:
    quiet: dict[str, Any] = {"lifespan": "off", "log_level": "error", "ws": "none", "timeout_graceful_shutdown": 1}
    await uvicorn.Server(uvicorn.Config(CodingProvider(), port=port, **quiet)).serve()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
