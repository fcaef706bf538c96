"""The table of protected tools, `protected.toml`: each row names its source and the day it was read."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase, translate
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict

from pegboard.cached_property import cached_property

TABLE = "protected.toml"
LONGEST_NAME = 256
"""Characters of a name up to which its kind is cached; clients may send names of any length."""


class SourcedRow(BaseModel):
    """A row of the table: where it was found (``source``) and on which day (``checked``)."""

    model_config = ConfigDict(frozen=True, extra="forbid", ignored_types=(cached_property,))

    source: str
    checked: date


class ToolClass(SourcedRow):
    """Tools of one ``kind`` that stay whichever client sends them, by name patterns."""

    kind: str
    names: tuple[str, ...]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return any_of(self.names)


class Agent(SourcedRow):
    """A known agent: how it is recognized, and which of its tools may be filtered (`protected.toml`)."""

    name: str
    title: str
    headers: Mapping[str, tuple[str, ...]] = {}
    begins: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    least: int = 5
    catalog: tuple[str, ...] = ()

    def says_so(self, headers: Mapping[str, str], instructions: Sequence[str]) -> bool:
        """Whether a request with these headers (lowercase names) or instructions names this agent as its sender."""
        return any(
            fnmatchcase(headers.get(name, "").casefold(), pattern.casefold())
            for name, patterns in self.headers.items()
            for pattern in patterns
        ) or any(part.lstrip().startswith(self.begins) for part in instructions)

    def shared(self, names: Collection[str]) -> int:
        """How many of its own tools are among these names; 0 if they are too few to tell it by them."""
        found = len(frozenset(self.own) & frozenset(names))
        return found if found >= self.least else 0

    @cached_property
    def may_go(self) -> re.Pattern[str]:
        return any_of(self.catalog)

    def keeps(self, name: str) -> bool:
        """Whether the agent needs this tool."""
        return self.may_go.match(name.casefold()) is None if self.catalog else name in self.own


def any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    """Matches lowercase names that fit one of these patterns."""
    return re.compile("|".join(translate(pattern.casefold()) for pattern in patterns) or r"(?!)")


def kind_of(name: str) -> str:
    """The kind of protected tool with this name, whichever client sends it; empty if it is not protected.

    >>> kind_of("transfer_to_billing"), kind_of("mcp__bank__transfer_to_account")
    ('handoff', '')
    """
    return (_known_kind if len(name) <= LONGEST_NAME else _kind)(name)


def _kind(name: str) -> str:
    return next((each.kind for each in known_classes() if each.pattern.match(name.casefold())), "")


_known_kind = lru_cache(maxsize=65536)(_kind)


@cache
def marking_headers() -> frozenset[str]:
    """The headers (lowercase) that identify agents; none of them holds a secret."""
    return frozenset(name for agent in known_agents() for name in agent.headers)


@cache
def known_agents() -> tuple[Agent, ...]:
    """In the table's order."""
    return tuple(Agent.model_validate(each) for each in _document()["agent"])


@cache
def known_classes() -> tuple[ToolClass, ...]:
    return tuple(ToolClass.model_validate(each) for each in _document()["class"])


@cache
def _document() -> Mapping[str, Any]:
    return tomllib.loads(files(__package__).joinpath(TABLE).read_text("utf-8"))
