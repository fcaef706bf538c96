"""What a rule looks at, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pegboard.catalog import Catalog, compact_json
from pegboard.model import Tokens, Tool, ToolId

NOTHING = Tokens(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """``description`` and ``schema`` are the most tokens each should take, ``words`` the fewest of a description.

    Findings of tools whose whole definition takes fewer than ``tokens`` are left out.
    """

    description: int = 150
    schema: int = 500
    words: int = 3
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One defect of one tool.

    ``tokens`` is what the tool's definition costs (as `Catalog.token_counts`), ``spare`` the part of it that mending
    the defect would save: what is beyond a limit, or all of a second tool for the same job.
    """

    rule: str
    tool: ToolId
    says: str
    remedy: str
    tokens: Tokens
    spare: Tokens = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A tool with the tokens of its whole definition, of its description and of its input schema."""

    tool: Tool
    tokens: Tokens
    description: Tokens
    schema: Tokens

    def finding(self, rule: str, says: str, remedy: str, spare: int = 0) -> Finding:
        return Finding(rule=rule, tool=self.tool.id, says=says, remedy=remedy, tokens=self.tokens, spare=Tokens(spare))


Check = Callable[[Subject, Limits], Finding | None]
"""A rule on one tool alone."""


def subjects(catalog: Catalog) -> list[Subject]:
    """Every tool of the catalog, in its order."""
    count = catalog.counter.count
    descriptions = count([tool.description for tool in catalog.tools])
    schemas = count([compact_json(tool.input_schema) if tool.input_schema else "" for tool in catalog.tools])
    return [
        Subject(tool=tool, tokens=Tokens(whole), description=Tokens(description), schema=Tokens(schema))
        for tool, whole, description, schema in zip(
            catalog.tools, catalog.token_counts, descriptions, schemas, strict=True
        )
    ]


def quoted(text: str, most: int = 60) -> str:
    """Text on one line in quotation marks, cut where it is long."""
    line = " ".join(text.split())
    return repr(line if len(line) <= most else line[: most - 1] + "…")


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names with commas; of many the first few and how many more."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
