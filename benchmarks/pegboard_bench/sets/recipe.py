"""What a set is made of: its sources, its conversion, and what is to be said about it."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

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

    @property
    def origin(self) -> str:
        return f"{self.url}, commit {self.commit} ({self.date})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    """An MCP server in a registry at one version, whose `tools/list` answer is wanted.

    ``program`` starts it with ``arguments``; ``variables`` are environment variables without which it does not start.
    """

    registry: Literal["npm", "pypi"]
    name: str
    version: str
    program: str
    licence: str
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def origin(self) -> str:
        place = {"npm": "https://www.npmjs.com/package/", "pypi": "https://pypi.org/project/"}[self.registry]
        return f"{place}{self.name}, version {self.version}, started here"


Source = Repository | Package

LISTING = "tools/list"
"""The one file of a package: the answer of its server."""


class Files(ABC):
    """The files of one source. ``digests`` has the SHA-256 of every file that was read, by path.

    A path that is not there raises ConfigError.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.digests: dict[str, str] = {}

    @abstractmethod
    def paths(self, folder: str) -> list[str]:
        """All files below a folder, sorted."""

    @abstractmethod
    def contents(self, paths: Sequence[str]) -> list[bytes]:
        """The content of files, in the order of their paths."""

    def read_all(self, paths: Sequence[str]) -> list[bytes]:
        """Many files at once, in the order of their paths."""
        found = self.contents(paths)
        for path, content in zip(paths, found, strict=True):
            self.digests[path] = hashlib.sha256(content).hexdigest()
        return found

    def read(self, path: str) -> bytes:
        return self.read_all([path])[0]

    def text(self, path: str) -> str:
        return self.read(path).decode("utf-8")

    def json(self, path: str) -> Any:
        return json.loads(self.read(path))


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """Rows by file name, in the order in which they are written, and what was left out and why, one sentence each."""

    files: Mapping[str, Sequence[Row]]
    left_out: Sequence[str] = ()


Sources = Mapping[str, Files]
"""The files of every source of a recipe, by the recipe's own short names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one set is built: ``convert`` reads the sources and gives all rows.

    ``licence`` is that of the content; ``redistributable`` says whether it allows the built set to be passed on.
    ``about``, ``conversion`` and ``noise`` are paragraphs of its SOURCE.md.
    """

    name: str
    title: str
    sources: Mapping[str, Source]
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
