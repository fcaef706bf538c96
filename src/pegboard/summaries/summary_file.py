"""The summary file: one JSON line per tool, with a digest of the definition that the summary was written for."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pegboard.catalog import Catalog, canonical_text
from pegboard.catalog.catalog import with_labels
from pegboard.catalog.summaries import SUMMARY_TOKENS
from pegboard.empty_sets import EMPTY
from pegboard.errors import ConfigError
from pegboard.model import Server, Tool, ToolId

LOGGER = logging.getLogger(__name__)

RULE = "rule"
NAMED = 5
"""Most stale summaries that the log line names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One line of the file. ``by`` is `rule` or the name of the model that wrote it."""

    server: str
    name: str
    definition: str
    summary: str
    by: str

    @property
    def tool(self) -> ToolId:
        return ToolId(self.server, self.name)

    @classmethod
    def of(cls, tool: Tool, summary: str, by: str) -> Summary:
        return cls(server=tool.server, name=tool.name, definition=digest(tool), summary=summary, by=by)

    def fits(self, tool: Tool) -> bool:
        """Whether the summary was written for the tool's current definition."""
        return self.definition == digest(tool)


def digest(tool: Tool) -> str:
    """SHA-256 of the tool's name, description and input schema, from which a summary is written."""
    return hashlib.sha256(canonical_text(tool).encode("utf-8", "surrogatepass")).hexdigest()


class Summaries:
    """Summaries by tool, applied to a catalog wherever the definition is unchanged."""

    def __init__(self, known: Mapping[ToolId, Summary], source: str = "") -> None:
        self._known = known
        self._source = source
        self._said: frozenset[ToolId] = EMPTY

    def put_on(self, catalog: Catalog) -> Catalog:
        """The catalog with these summaries. A tool keeps its own if the new one is stale or has over 60 tokens."""
        if not self._known:
            return catalog
        lengths = dict(
            zip(self._known, catalog.counter.count([each.summary for each in self._known.values()]), strict=True)
        )
        unusable = {
            tool.id
            for tool in catalog.tools
            if (found := self._known.get(tool.id)) and (lengths[tool.id] > SUMMARY_TOKENS or not found.fits(tool))
        }
        self._say(unusable)
        usable = {tool: each.summary for tool, each in self._known.items() if tool not in unusable}
        groups: list[tuple[Server, list[Tool]]] = [
            (server, [with_labels(tool, summary=usable.get(tool.id, tool.summary)) for tool in catalog.of_server(name)])
            for name, server in catalog.servers.items()
        ]
        return Catalog.build(groups, counter=catalog.counter)

    def _say(self, unusable: Iterable[ToolId]) -> None:
        """Log unusable summaries, once for each tool."""
        new = sorted(set(unusable) - self._said)
        self._said |= frozenset(new)
        if new:
            LOGGER.warning(
                "%s: %d summaries are stale or too long and are not used: %s%s. `pegboard summarize` renews them.",
                self._source,
                len(new),
                ", ".join(map(str, new[:NAMED])),
                " and others" if len(new) > NAMED else "",
            )


def read_summaries(path: Path) -> dict[ToolId, Summary]:
    """The summaries of a file, by tool. Raises ConfigError naming the file and the line."""
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"Cannot read the summaries {str(path)!r}: {error}.", remedy="`pegboard summarize` writes such a file."
        ) from error
    rows = (_row(line, f"{path}, line {number},") for number, line in enumerate(lines, 1) if line.strip())
    return {row.tool: row for row in rows}


def _row(line: str, where: str) -> Summary:
    try:
        row = Summary(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise _no_summary(where, str(error)) from error
    if wrong := [field for field, value in asdict(row).items() if not isinstance(value, str)]:
        raise _no_summary(where, f"{wrong[0]} is not a string")
    return row


def _no_summary(where: str, why: str) -> ConfigError:
    return ConfigError(
        f"{where} is not a summary: {why}.",
        remedy='Expected {"server", "name", "definition", "summary", "by"}; `pegboard summarize` writes such lines.',
    )


def as_lines(rows: Iterable[Summary]) -> str:
    return "".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows)
