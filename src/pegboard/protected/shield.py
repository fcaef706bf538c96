"""Which tools of a request are protected, and why: by their names, by the agent that sends them, by their shape."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pegboard.protected.doubt import doubtful
from pegboard.protected.table import Agent, kind_of, known_agents
from pegboard.protected.workshop import START

EXITS = frozenset({"exit", "handoff", "output"})
"""Kinds of tools by which a run in which each answer has to be a call comes to its end."""
SCHEMA = re.compile(r"(?:[A-Z][a-z0-9]+){1,8}")
"""A name as classes have it: among tools with other names, the schema of an answer (LangChain ToolStrategy)."""
SCHEMAS = 0.1
"""Share of the tools up to which names like that are schemas, and not the way in which all of them are written."""
IN_DOUBT = "in doubt"
MOST_REMEMBERED = 256 * 1024
"""Characters of instructions up to which what they mean is remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What a request shows besides the names of its tools.

    ``headers`` are those that agents are told by, names in small letters; ``instructions`` the parts of its system and
    developer texts; ``definitions`` those of its tools, in their order, as far as they are known.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    instructions: tuple[str, ...] = ()
    definitions: tuple[bytes, ...] = ()


def protected_tools(names: Sequence[str], signs: Signs) -> Mapping[int, str]:
    """The places of the tools that stay, whatever a turn is about, and why each does.

    >>> dict(protected_tools(["create_invoice", "get_invoice", "final_result"], Signs()))
    {2: 'exit'}
    """
    find = _remembered if sum(map(len, signs.instructions)) <= MOST_REMEMBERED else _found
    starts = tuple(each[:START] for each in signs.definitions)
    return find(tuple(names), tuple(sorted(signs.headers.items())), signs.instructions, starts)


def agent_of(names: Sequence[str], signs: Signs) -> Agent | None:
    """The known agent whose request this is."""
    return next((agent for agent in known_agents() if agent.sent(signs.headers, signs.instructions, names)), None)


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
"""An agent sends the same tools and instructions again and again."""


def _schemas(names: Sequence[str]) -> list[int]:
    found = [place for place, name in enumerate(names) if SCHEMA.fullmatch(name)]
    return found if len(found) <= SCHEMAS * len(names) else []
