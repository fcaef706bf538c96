"""Summaries for a whole catalog: kept while valid, else written by a model if there is one, else by rule."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pegboard.catalog import Catalog
from pegboard.errors import ConfigError
from pegboard.model import Tool, ToolId
from pegboard.protocols import TokenCounter
from pegboard.retrieval import Progress
from pegboard.summaries.llm_summaries import SYSTEM, Chat, Refused, answered, question, taken
from pegboard.summaries.rules import query_shaped
from pegboard.summaries.summary_file import RULE, Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSummaries:
    """One summary per tool, in catalog order. ``refused`` counts the model's unusable answers by reason."""

    rows: tuple[Summary, ...]
    kept: int = 0
    requests: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def by_rule(self) -> int:
        return sum(row.by == RULE for row in self.rows)


def by_rule(catalog: Catalog) -> dict[ToolId, Summary]:
    return {tool.id: Summary.of(tool, query_shaped(tool, catalog.counter), RULE) for tool in catalog.tools}


def still_good(catalog: Catalog, known: Mapping[ToolId, Summary]) -> dict[ToolId, Summary]:
    """The known summaries that a model or a person wrote for exactly these definitions."""
    found = ((tool, known.get(tool.id)) for tool in catalog.tools)
    return {tool.id: row for tool, row in found if row and row.by != RULE and row.fits(tool)}


def batches(catalog: Catalog, kept: Mapping[ToolId, Summary], size: int) -> list[Sequence[Tool]]:
    """The tools to ask a model about, ``size`` per request."""
    left = [tool for tool in catalog.tools if tool.id not in kept]
    return [left[start : start + size] for start in range(0, len(left), size)]


async def write(
    catalog: Catalog,
    *,
    kept: Mapping[ToolId, Summary],
    model: Chat | None = None,
    batch: int = 10,
    concurrency: int = 4,
    progress: Progress | None = None,
) -> WrittenSummaries:
    """Write all summaries. Raises ConfigError if the model's service cannot be used at all."""
    asked = batches(catalog, kept, batch) if model else []
    refused: Counter[str] = Counter()
    rows = by_rule(catalog) | dict(kept)
    if model:
        asking = _Asking(model, catalog.counter, refused)
        rows |= await asking.all(asked, concurrency, progress)
    ordered = tuple(rows[tool.id] for tool in catalog.tools)
    return WrittenSummaries(rows=ordered, kept=len(kept), requests=len(asked), refused=dict(refused.most_common()))


@dataclass(frozen=True, slots=True)
class _Asking:
    model: Chat
    counter: TokenCounter
    refused: Counter[str]

    async def all(
        self, asked: Sequence[Sequence[Tool]], concurrency: int, progress: Progress | None
    ) -> dict[ToolId, Summary]:
        found: dict[ToolId, Summary] = {}
        hopeless: list[ConfigError | ExceptionGroup[ConfigError]] = []
        done, free = iter(range(1, len(asked) + 1)), asyncio.Semaphore(concurrency)

        async def one(tools: Sequence[Tool]) -> None:
            async with free:
                found.update(await self._summaries(tools))
            if progress is not None:
                progress(next(done), len(asked))

        try:
            async with asyncio.TaskGroup() as group:
                for tools in asked:
                    group.create_task(one(tools))
        except* ConfigError as errors:
            hopeless.extend(errors.exceptions)
        if hopeless:
            raise hopeless[0]
        return found

    async def _summaries(self, tools: Sequence[Tool]) -> dict[ToolId, Summary]:
        """The usable summaries of one request; the others are counted by reason."""
        try:
            answers = answered(await self.model.ask(SYSTEM, question(tools, self.counter)))
        except Refused as why:
            self.refused[str(why)] += len(tools)
            return {}
        found: dict[ToolId, Summary] = {}
        for tool in tools:
            try:
                text = taken(tool, answers.get(str(tool.id)), self.counter)
                found[tool.id] = Summary.of(tool, text, self.model.model)
            except Refused as why:
                self.refused[str(why)] += 1
        if unknown := set(answers) - {str(tool.id) for tool in tools}:
            self.refused["a tool that was not asked about"] += len(unknown)
        return found
