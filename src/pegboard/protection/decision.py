"""Which tools of a request are protected, and why: by name, by the agent that sends them, or by shape."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pegboard.protection.table import Agent, kind_of, known_agents
from pegboard.protection.unknown_agents import START, doubtful

EXITS = frozenset({"exit", "handoff", "output"})
"""Kinds of tools that end a run in which every answer must be a call."""
SCHEMA = re.compile(r"(?:[A-Z][a-z0-9]+){1,8}")
"""A class-like name: among tools with other names, the schema of an answer (LangChain ToolStrategy)."""
SCHEMAS = 0.1
"""If more than this share of the tools have such names, it is just this client's naming style."""
IN_DOUBT = "in doubt"
MOST_REMEMBERED = 256 * 1024
"""Results are cached for instructions and names up to this many characters in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What a request reveals besides the names of its tools.

    ``headers`` are those that identify agents, with lowercase names; ``instructions`` are the parts of its system and
    developer texts; ``definitions`` are the tools' definitions, in order, as far as they are known.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    instructions: tuple[str, ...] = ()
    definitions: tuple[bytes, ...] = ()


def protected_tools(names: Sequence[str], signs: Signs) -> Mapping[int, str]:
    """The places of the tools that must stay whatever the turn is about, each with the reason.

    >>> dict(protected_tools(["create_invoice", "get_invoice", "final_result"], Signs()))
    {2: 'exit'}
    """
    length = sum(map(len, signs.instructions)) + sum(map(len, names))
    find = _remembered if length <= MOST_REMEMBERED else _found
    starts = tuple(each[:START] for each in signs.definitions)
    return find(tuple(names), tuple(sorted(signs.headers.items())), signs.instructions, starts)


def agent_of(names: Sequence[str], signs: Signs) -> Agent | None:
    """The known agent that sent this request: the one that its headers or instructions name, else the one with most of
    its own tools there. Agents have tools of the same names: `bash`, `glob`, `task`, `apply_patch`."""
    named = next((agent for agent in known_agents() if agent.says_so(signs.headers, signs.instructions)), None)
    if named is not None:
        return named
    likest = max(known_agents(), key=lambda agent: agent.shared(names))
    return likest if likest.shared(names) else None


def _found(
    names: tuple[str, ...],
    headers: tuple[tuple[str, str], ...],
    instructions: tuple[str, ...],
    definitions: tuple[bytes, ...],
) -> Mapping[int, str]:
    agent = agent_of(names, Signs(headers=dict(headers), instructions=instructions))
    why = {place: kind for place, name in enumerate(names) if (kind := kind_of(name))}
    if agent is not None:
        why |= {place: agent.title for place, name in enumerate(names) if place not in why and agent.keeps(name)}
    else:
        in_doubt = dict.fromkeys(doubtful(names, definitions, instructions), IN_DOUBT)
        why = in_doubt | dict.fromkeys(_schemas(names), "output") | why
    return dict(sorted(why.items()))


_remembered = lru_cache(maxsize=64)(_found)
"""Agents send the same tools and instructions again and again."""


def _schemas(names: Sequence[str]) -> list[int]:
    found = [place for place, name in enumerate(names) if SCHEMA.fullmatch(name)]
    return found if len(found) <= SCHEMAS * len(names) else []
