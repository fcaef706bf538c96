"""The input and the findings of rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pegboard.catalog import Catalog, compact_json
from pegboard.model import Tokens, Tool, ToolId

NOTHING = Tokens(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class LintLimits:
    """``description`` and ``schema`` are the most tokens that each should take; ``words`` is the fewest words of a
    description. Findings about tools whose whole definition takes fewer than ``tokens`` are left out.
    """

    description: int = 150
    schema: int = 500
    words: int = 3
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """One defect of one tool.

    ``tokens`` is the size of the tool's definition (as in `Catalog.token_counts`); ``spare`` is the part that fixing
    the defect would save: the tokens beyond a limit, or the whole definition of a duplicate.
    """

    rule: str
    tool: ToolId
    says: str
    remedy: str
    tokens: Tokens
    spare: Tokens = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A tool with the token counts of its whole definition, its description and its input schema."""

    tool: Tool
    tokens: Tokens
    description: Tokens
    schema: Tokens

    def finding(self, rule: str, says: str, remedy: str, spare: int = 0) -> LintFinding:
        return LintFinding(
            rule=rule, tool=self.tool.id, says=says, remedy=remedy, tokens=self.tokens, spare=Tokens(spare)
        )


Check = Callable[[Subject, LintLimits], LintFinding | None]
"""A rule on one tool alone."""


def subjects(catalog: Catalog) -> list[Subject]:
    """All tools of the catalog, in its order."""
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
    """The text on one line, in quotation marks, cut to ``most`` characters."""
    line = " ".join(text.split())
    return repr(line if len(line) <= most else line[: most - 1] + "…")


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names with commas between; of many, the first few and the number of the rest."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")
