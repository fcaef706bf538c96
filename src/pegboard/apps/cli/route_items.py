"""What `pegboard route` shows of skills and agents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from pegboard.apps.cli.output import cells, stdout, table
from pegboard.board_items import BoardItem, BoardKind
from pegboard.errors import ConfigError

SHORT = 100
"""Characters of a description in the table."""
KINDS: tuple[BoardKind, ...] = ("tool", "skill", "agent")
Skills = Annotated[
    list[Path] | None,
    typer.Option("--skills", metavar="DIR", help="A folder of SKILL.md files. Can be given more than once."),
]
Agents = Annotated[
    list[Path] | None,
    typer.Option("--agents", metavar="FILE", help="An A2A agent card as JSON. Can be given more than once."),
]
KindsAsked = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        help="Show this kind alone: tool, skill or agent. Without tool, no tools are read. Can be given repeatedly.",
    ),
]


def items_for(
    query: str, skills: Sequence[Path], agents: Sequence[Path], kinds: Sequence[str]
) -> tuple[BoardItem, ...]:
    """The skills and agents that match a query. Raises CatalogError, and ConfigError for a kind without any to read."""
    from pegboard.library.given_items import given_items
    from pegboard.library.item_search import ItemSearch

    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError(f"There is no kind {kind!r}.", remedy=f"Kinds are {', '.join(KINDS)}.")
    for kind, option, given in (("skill", "--skills DIR", skills), ("agent", "--agents FILE", agents)):
        if kind in kinds and not given:
            raise ConfigError(f"--kind {kind} was given without {kind}s.", remedy=f"Give {option}.")
    asked = [kind for kind in KINDS if kind in kinds or not kinds]
    return ItemSearch(given_items(skills=skills, agents=agents)).found(query, asked)


def show_items(items: Sequence[BoardItem]) -> None:
    made = table("Skills and agents, by words", "kind", "name", ">bm25", "description", "address")
    for each in items:
        description = " ".join(each.description.split())
        short = description if len(description) <= SHORT else f"{description[:SHORT]}…"
        made.add_row(*cells(each.kind, each.name, f"{each.score:.3f}", short, each.address))
    stdout().print(made if items else "No skill or agent matches.")


def items_payload(items: Sequence[BoardItem]) -> list[dict[str, Any]]:
    return [{"kind": each.kind, **each.to_dict(), "score": round(each.score, 6)} for each in items]
