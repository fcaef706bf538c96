"""What a set is made of: its sources, its conversion, and what is to be said about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

Row = dict[str, Any]

CATALOG = "catalog.jsonl.gz"
QUERIES = "queries.jsonl.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A public git repository on GitHub at one commit. ``date`` is that of the commit, ``licence`` an SPDX name."""

    name: str
    commit: str
    date: str
    licence: str

    @property
    def url(self) -> str:
        return f"https://github.com/{self.name}"


class Files(Protocol):
    """The files of one repository at its commit. A path that is not there raises ConfigError."""

    def read(self, path: str) -> bytes: ...

    def read_all(self, paths: Sequence[str]) -> list[bytes]:
        """Many files by one process of git, in the order of their paths."""

    def paths(self, folder: str) -> list[str]:
        """All files below a folder, sorted."""

    def json(self, path: str) -> Any: ...

    def text(self, path: str) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """Rows by file name, in the order in which they are written, and what was left out and why, one sentence each."""

    files: Mapping[str, Sequence[Row]]
    left_out: Sequence[str] = ()


Sources = Mapping[str, Files]
"""The files of every repository of a recipe, by the recipe's own short names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one set is built: ``convert`` reads the sources and gives all rows.

    ``licence`` is that of the content; ``redistributable`` says whether it allows the built set to be passed on.
    ``about``, ``conversion`` and ``noise`` are paragraphs of its SOURCE.md.
    """

    name: str
    title: str
    sources: Mapping[str, Repository]
    convert: Callable[[Sources], Converted]
    licence: str
    redistributable: bool
    conversion: str
    noise: str
    attribution: Sequence[str] = field(default=())


def tool(server: str, description: str | None, name: str, text: str | None, schema: Any) -> Row:
    """A row of a catalog; texts without white space around them."""
    return {
        "server": server,
        "server_description": (description or "").strip() or None,
        "name": name,
        "description": (text or "").strip(),
        "input_schema": schema,
    }


def query(
    name: str,
    text: str,
    relevant: Sequence[Sequence[str]],
    *,
    kind: str = "user",
    category: str | None = None,
    any_of: Sequence[Sequence[Sequence[str]]] = (),
) -> Row:
    """A labelled query, each label once; ``any_of`` is written only where it is not empty."""
    row: Row = {
        "id": name,
        "query": text,
        "relevant": [list(each) for each in dict.fromkeys(map(tuple, relevant))],
        "kind": kind,
        "category": category,
    }
    if any_of:
        row["any_of"] = [[list(each) for each in group] for group in any_of]
    return row
