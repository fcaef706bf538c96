"""Gateways in the shadow before mocks of every provider, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from model_bodies import SIZED, asking
from model_doors import Gateway, gateway
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder

PATHS = {
    "openai_chat": "/openai/v1/chat/completions",
    "openai_responses": "/openai/v1/responses",
    "anthropic": "/anthropic/v1/messages",
    "gemini": "/gemini/v1beta/models/some-model:generateContent",
}
CHAT = PATHS["openai_chat"]
SHADOW = {"profile": "semantic", "k": 1, "shadow": True}


@asynccontextmanager
async def shadowing(**llm: Any) -> AsyncIterator[tuple[Gateway, httpx2.AsyncClient]]:
    parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    async with (
        gateway(parts=parts, **{"policy": SHADOW} | llm) as found,
        httpx2.AsyncClient(base_url=found.url, trust_env=False) as http,
    ):
        yield found, http


async def one(http: httpx2.AsyncClient, format_: str = "openai_chat", /, **headers: str) -> httpx2.Response:
    """A request whose model calls what its user wants, and another tool."""
    tools = ["renew_loan", "book_flight", "tune_piano"]
    body = asking(format_, "renew the loan", tools, schema=SIZED, model="some-model")
    return await http.post(
        PATHS[format_], json=body, headers={name.replace("_", "-"): headers[name] for name in headers}
    )
