"""Pairs of a request and a tool that serves it, to tune the encoder on."""

from __future__ import annotations

import gzip
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuning.cleaning import HUMPS, NearDuplicates, Tool, clean_tools, tool_text

LABELLED = ("seal_tools", "stabletoolbench")
"""Sets whose queries take part. toolalpaca and nestful are kept for fitting the fusion on vectors not tuned on them."""
CATALOGS = ("catalog_toolsdk", "catalog_klavis", "catalog_docker")
SCORED = (
    "livemcp_tasks",
    "livemcp_steps",
    "livemcp_routes",
    "mcpverse",
    "graphtoolcall",
    "metatool",
    "mcpproxy_golden",
)
SCORED_CATALOGS = ("livemcp_tasks", "mcpverse", "graphtoolcall", "metatool", "mcpproxy_golden", "real120")
HELD_OUT = 0.3
"""The share of each labelled set's queries that the encoder never sees; fusion is fitted on them."""

Key = tuple[str, str, str]
"""Catalog, server, name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    query: str
    tool: Key
    relevant: frozenset[Key]
    group: str
    """Pairs of one group go into one batch, where each is a hard negative to the others."""


def read(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def key(catalog: str, tool: Tool) -> Key:
    return catalog, tool["server"], tool["name"]


def is_held_out(query_id: str) -> bool:
    """By the id alone, so that tuning and fitting agree without a list of names."""
    return random.Random(query_id).random() < HELD_OUT  # noqa: S311  # a split, no secret


@dataclass(frozen=True, kw_only=True)
class Data:
    """The tools that may be trained on, by key, and what must not be asked."""

    tools: Mapping[Key, Tool]
    scored_queries: NearDuplicates

    @classmethod
    def read(cls, folder: Path) -> Data:
        scored = [tool for name in SCORED_CATALOGS for tool in read(folder / name / "catalog.jsonl.gz")]
        alike = NearDuplicates(map(tool_text, scored))
        tools: dict[Key, Tool] = {}
        for name in LABELLED:
            of_set = read(folder / name / "catalog.jsonl.gz")
            tools |= {key(name, tool): tool for tool in of_set if not alike.has(tool_text(tool))}
        for name in CATALOGS:
            tools |= {key(name, tool): tool for tool in clean_tools(read(folder / name / "catalog.jsonl.gz"), scored)}
        queries = (query["query"] for name in SCORED for query in read(folder / name / "queries.jsonl.gz"))
        return cls(tools=tools, scored_queries=NearDuplicates(queries))

    def pairs(self, folder: Path, written: Sequence[Path]) -> list[Pair]:
        """Labelled queries, requests written for tools of the catalogs, and what those say of themselves."""
        return [*self._labelled(folder), *self._written(written), *self._described()]

    def _labelled(self, folder: Path) -> Iterator[Pair]:
        for name in LABELLED:
            for query in read(folder / name / "queries.jsonl.gz"):
                if not is_held_out(query["id"]):
                    relevant = [(name, server, tool) for server, tool in query["relevant"]]
                    yield from self._asked(query["query"], relevant)

    def _written(self, paths: Sequence[Path]) -> Iterator[Pair]:
        for path in paths:
            for line in read(path):
                catalog_tools = [(tool[0], tool[1], tool[2]) for tool in line["tools"]]
                yield from self._asked(line["query"], catalog_tools)

    def _asked(self, query: str, relevant: Sequence[Key]) -> Iterator[Pair]:
        known = [tool for tool in relevant if tool in self.tools]
        if known and not self.scored_queries.has(query):
            for tool in known:
                yield Pair(query=query[:600], tool=tool, relevant=frozenset(relevant), group="/".join(tool[:2]))

    def _described(self) -> Iterator[Pair]:
        """The first sentence of a description asks for the tool it describes, which then answers without it."""
        for tool_key, tool in self.tools.items():
            sentence = first_sentence(tool["description"] or "")
            if tool_key[0] in CATALOGS and 4 <= len(sentence.split()) <= 40:
                yield Pair(
                    query=sentence, tool=tool_key, relevant=frozenset([tool_key]), group="described " + tool_key[1]
                )


def first_sentence(text: str) -> str:
    """
    >>> first_sentence("Opens an issue. Needs a token.")
    'Opens an issue'
    """
    return " ".join(text.split()).split(". ")[0].rstrip(".")


def parameters(tool: Tool) -> str:
    properties = (tool["input_schema"] or {}).get("properties") or {}
    described = (
        f"{name} {schema.get('description') or ''}" if isinstance(schema, Mapping) else name
        for name, schema in list(properties.items())[:8]
    )
    return "; ".join(text[:60].strip() for text in described)


def spaced(name: str) -> str:
    return HUMPS.sub(" ", name).replace("_", " ").replace("-", " ").replace(".", " ")


def document(tool: Tool, rng: random.Random, *, without: str = "") -> str:
    """A tool as one of the texts it may be embedded as; ``without`` what the query already says."""
    description = " ".join((tool["description"] or "").split())
    if without:
        description = description[len(without) :].lstrip(". ")
    name = tool["name"] if rng.random() < 0.3 else spaced(tool["name"])
    server = f"{tool['server']} " if rng.random() < 0.6 else ""
    given = f" {parameters(tool)}" if rng.random() < 0.3 or (without and not description) else ""
    return f"{server}{name}: {description[:350]}{given}".strip(": ")


def document_of(tool: Tool) -> str:
    """A tool as the one text that it is compared by.

    >>> document_of({"name": "openIssue", "description": "Opens an issue."})
    'open Issue: Opens an issue.'
    """
    return f"{spaced(tool['name'])}: {' '.join((tool['description'] or '').split())}"


def batches(pairs: Sequence[Pair], size: int, rng: random.Random, *, together: int = 4) -> Iterator[list[Pair]]:
    """All pairs once, shuffled, up to ``together`` of one group side by side."""
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in rng.sample(pairs, len(pairs)):
        groups[pair.group].append(pair)
    chunks = [group[at : at + together] for group in groups.values() for at in range(0, len(group), together)]
    rng.shuffle(chunks)
    line = [pair for chunk in chunks for pair in chunk]
    for at in range(0, len(line) - size + 1, size):
        yield line[at : at + size]
