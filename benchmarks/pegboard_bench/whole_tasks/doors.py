"""Ways to give an agent its tools. Each says what stands in a request, where it is sent, and who carries out a call."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import aiohttp
import bm25s
import Stemmer
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from pegboard.errors import ConfigError
from pegboard_bench.fleet.gateways import listed
from pegboard_bench.whole_tasks.model import Message, Model
from pegboard_bench.whole_tasks.oracle import spellings
from pegboard_bench.whole_tasks.sent import Body
from pegboard_bench.whole_tasks.task import Task
from pegboard_bench.whole_tasks.toolbox import Function, Toolbox, called

FOUND = 5
"""Tools that a search returns, as Anthropic's tool search and FastMCP's do."""
SEARCH = "tool_search"


class Door(Protocol):
    """One play's view of the tools."""

    instructions: str
    """What the way itself tells the model, after the system prompt."""

    async def functions(self) -> Sequence[Function]:
        """What the next request has."""

    async def ask(self, body: Body) -> Message:
        """The model's answer to it."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """What the model is told of a call."""


@dataclass
class Direct:
    """Definitions in every request: all, or those of ``only`` a task's own tools."""

    box: Toolbox
    model: Model
    only: Task | None = None
    instructions: str = ""

    async def functions(self) -> Sequence[Function]:
        if self.only is None:
            return self.box.functions()
        wanted = {spelt for step in self.only.steps for spelt in spellings(step.tools[0])}
        return [each for each in self.box.functions() if each["function"]["name"] in wanted]

    async def ask(self, body: Body) -> Message:
        return await self.model.answer(body)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return await self.box.call(name, arguments)


@dataclass
class LlmGateway(Direct):
    """All definitions, sent through Pegboard's LLM gateway, which is no client's business."""

    url: str = field(kw_only=True)
    session: aiohttp.ClientSession = field(kw_only=True)

    async def ask(self, body: Body) -> Message:
        async with self.session.post(f"{self.url}/v1/chat/completions", json=body) as response:
            said = await response.json(content_type=None)
        if not response.ok:
            raise ConfigError(f"The LLM gateway answers {response.status}: {said}.", remedy="Look at its log.")
        return dict(said["choices"][0]["message"])


@dataclass
class VendorSearch(Direct):
    """A search tool alone; definitions that it finds stand in its result from then on, as providers expand them."""

    find: Callable[[str], Sequence[Function]] = field(kw_only=True)
    kind: str = field(kw_only=True)
    _found: dict[str, Function] = field(default_factory=dict)

    async def functions(self) -> Sequence[Function]:
        return [search_function(self.kind), *self._found.values()]

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name != SEARCH:
            return await self.box.call(name, arguments)
        found = self.find(str(arguments.get("query", "")))
        self._found |= {each["function"]["name"]: each for each in found}
        self.model.inline[:] = self._found
        return json.dumps([each["function"] for each in found])


@dataclass
class McpServer:
    """What an MCP server lists, asked anew for each request; calls go to it."""

    client: Client
    model: Model
    instructions: str

    async def functions(self) -> Sequence[Function]:
        tools = await listed(self.client)
        return [
            {
                "type": "function",
                "function": {
                    "name": tool["name"],
                    "description": tool.get("description", ""),
                    "parameters": tool["inputSchema"],
                },
            }
            for tool in tools
        ]

    async def ask(self, body: Body) -> Message:
        return await self.model.answer(body)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        return await called(self.client, name, arguments)


@asynccontextmanager
async def mcp_server(url: str, model: Model) -> AsyncIterator[McpServer]:
    """A session of its own with a server over HTTP, in the handshake era, which alone has lists that change."""
    async with Client(streamable_http_client(url), mode="legacy", cache=None) as client:
        yield McpServer(client=client, model=model, instructions=client.instructions or "")


def search_function(kind: str) -> Function:
    """What a provider's search looks like to the model."""
    what = "A regular expression over names and descriptions" if kind == "regex" else "What the tool should do"
    return {
        "type": "function",
        "function": {
            "name": SEARCH,
            "description": "Search for tools. Tools that are found can be called from then on.",
            "parameters": {
                "type": "object",
                "properties": {"query": {"type": "string", "description": what}},
                "required": ["query"],
            },
        },
    }


def by_words(functions: Sequence[Function]) -> Callable[[str], Sequence[Function]]:
    """BM25 over names, descriptions and arguments."""
    logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets DEBUG itself
    stemmer, index = Stemmer.Stemmer("english"), bm25s.BM25()

    def tokens(texts: Sequence[str]) -> list[list[str]]:
        return list(bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False))

    index.index(tokens([_text(each) for each in functions]), show_progress=False)
    known = set(index.vocab_dict)

    def find(query: str) -> Sequence[Function]:
        words = [word for word in tokens([query])[0] if word in known]
        if not words:
            return []
        scores = index.get_scores(words)
        best = sorted(range(len(functions)), key=lambda place: (-scores[place], place))[:FOUND]
        return [functions[place] for place in best if scores[place] > 0]

    return find


def by_pattern(functions: Sequence[Function]) -> Callable[[str], Sequence[Function]]:
    """A regular expression over the same text: those with most distinct matches, in the order of the list.

    Words that are no pattern are taken as a model would write them: any of those with four letters or more.
    """

    def find(query: str) -> Sequence[Function]:
        words = re.findall(r"[a-z]{4,}", query.lower())
        try:
            pattern = re.compile("|".join(words) if " " in query else query, re.IGNORECASE)
        except re.error:
            return []
        hits = [len({hit.lower() for hit in pattern.findall(_text(each)) if hit}) for each in functions]
        best = sorted(range(len(functions)), key=lambda place: (-hits[place], place))[:FOUND]
        return [functions[place] for place in best if hits[place]]

    return find


def _text(each: Function) -> str:
    said = each["function"]
    arguments = " ".join(said["parameters"].get("properties", {}))
    return re.sub(r"[_\-]+", " ", f"{said['name']} {said['description']} {arguments}")
