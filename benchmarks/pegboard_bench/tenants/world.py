"""Tenants with real public servers and private tools made from real ones: ids are the same for all, texts are not."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from pegboard.catalog import Catalog
from pegboard.evaluation.datasets import read_set
from pegboard.model import Floats, Server, ServerName, Tool, ToolId
from pegboard.retrieval import CachedEncoder, OnnxEncoder, Retriever
from pegboard.retrieval.intents import Span
from pegboard.retrieval.tool_texts import full, short
from pegboard.stores import SqliteEmbeddings
from pegboard.stores.sqlite.backend import EMBEDDINGS_FILE
from pegboard_bench.index.vectors import NOISE

SET = "mcp_large"
PRIVATE_SERVERS = ("crm", "billing", "internal")
"""Every tenant calls its own servers so: the same id is another tool for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Real tools with their vectors, shape (n, d), and real requests."""

    catalog: Catalog
    rows: Floats
    requests: Sequence[str]

    @property
    def public(self) -> Sequence[tuple[Server, Sequence[Tool]]]:
        return [(server, self.catalog.of_server(name)) for name, server in self.catalog.servers.items()]

    def used(self, tenant: str, tools: int) -> list[str]:
        """Public servers of a tenant, drawn until no other fits into so many tools."""
        draw, names, left = _draw(tenant, "uses"), list(self.catalog.servers), tools
        draw.shuffle(names)
        chosen = []
        for name in names:
            size = len(self.catalog.of_server(name))
            if size <= left:
                chosen.append(name)
                left -= size
        return chosen

    def private(self, tenant: str, server: str, tools: int) -> list[tuple[Tool, int]]:
        """Private tools of a tenant on one server, each with the place of the real tool that it was made from."""
        places = _draw(tenant, server).sample(range(len(self.catalog)), min(tools, len(self.catalog)))
        more = [places[number % len(places)] for number in range(tools)]
        return [(made_from(self.catalog.tools[at], tenant, server, number), at) for number, at in enumerate(more)]


def made_from(model: Tool, tenant: str, server: str, number: int) -> Tool:
    """A tool that says in each of its texts whose it is."""
    name = f"{model.name}_{number}"
    description = f"For {tenant}, {number}: {model.description}"
    definition = json.loads(json.dumps(model.definition)) | {"name": name, "description": description}
    return replace(
        model,
        id=ToolId(server, name),
        description=description,
        summary=f"{name}: for {tenant}, {number}, {model.summary.partition(': ')[2]}",
        definition=definition,
        input_schema=definition.get("inputSchema"),
    )


def _draw(*of: object) -> random.Random:
    return random.Random("/".join(map(str, of)))  # noqa: S311 - the same world each time, no secret


async def read_world(folder: Path, cache: Path) -> World:
    found = read_set(folder / SET)
    encoder = CachedEncoder(OnnxEncoder(threads=1), SqliteEmbeddings(cache / EMBEDDINGS_FILE))
    catalog = found.catalog
    rows = await Retriever(catalog.tools, catalog.servers, documents=encoder, queries=encoder).vectors()
    return World(catalog=catalog, rows=rows, requests=[query.text for query in found.queries])


@dataclass(slots=True)
class KnownEncoder:
    """The bundled encoder, which is told the vectors of tools' texts: hundreds of thousands are not embedded again.

    A private tool's vector is that of the real tool that it was made from, moved off it at random.
    """

    world: World
    seed: int
    own: OnnxEncoder = field(default_factory=lambda: OnnxEncoder(threads=1))
    known: dict[str, Floats] = field(default_factory=dict)
    others: dict[str, Floats] = field(default_factory=dict)

    @property
    def provider(self) -> str:
        return self.own.provider

    @property
    def model(self) -> str:
        return self.own.model

    @property
    def dimensions(self) -> int:
        return self.own.dimensions

    def tell(self, tools: Sequence[tuple[Tool, int]], *, moved: bool) -> None:
        """The next tools that are embedded, in place of those told before."""
        rows = self.world.rows[[place for _, place in tools]].copy()
        if moved:
            draw = np.random.default_rng(
                [self.seed, int(hashlib.sha256(str(tools[0][0]).encode()).hexdigest()[:8], 16)]
            )
            off = draw.standard_normal(rows.shape, np.float32)
            rows += off * (NOISE / np.linalg.norm(off, axis=1, keepdims=True))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        self.known = {
            text: row for (tool, _), row in zip(tools, rows, strict=True) for text in (short(tool), full(tool))
        }

    async def encode(self, texts: Sequence[str]) -> Floats:
        if all(text in self.known for text in texts):
            return np.stack([self.known[text] for text in texts])
        if len(texts) == 1:
            if texts[0] not in self.others:
                self.others[texts[0]] = (await self.own.encode(texts))[0]
            return self.others[texts[0]][None]
        return await self.own.encode(texts)

    async def encode_clauses(self, text: str, spans: Sequence[Span]) -> Floats:
        return await self.own.encode_clauses(text, spans)


class NoEmbeddings:
    """A store that keeps nothing: what is measured is not a cache."""

    async def get(self, keys: Sequence[str]) -> Mapping[str, Floats]:
        return {}

    async def put(self, vectors: Mapping[str, Floats]) -> None: ...


def private_server(name: str) -> Server:
    return Server(name=ServerName(name), description=f"The {name} of this company")
