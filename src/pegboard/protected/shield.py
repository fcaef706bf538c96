"""Which tools of a request are protected, and why: by their names, by the agent that sends them, by their shape."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pegboard.protected.table import Agent, kind_of, known_agents

EXITS = frozenset({"exit", "handoff", "output"})
"""Kinds of tools by which a run in which each answer has to be a call comes to its end."""
SCHEMA = re.compile(r"(?:[A-Z][a-z0-9]+){1,8}")
"""A name as classes have it: among tools with other names, the schema of an answer (LangChain ToolStrategy)."""
SCHEMAS = 0.1
"""Share of the tools up to which names like that are schemas, and not the way in which all of them are written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """What a request shows besides its tools.

    ``headers`` are those that agents are told by, names in small letters; ``instructions`` the parts of its system and
    developer texts.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    instructions: tuple[str, ...] = ()


def protected_tools(names: Sequence[str], signs: Signs) -> dict[int, str]:
    """The places of the tools that stay, whatever a turn is about, and why each does.

    >>> protected_tools(["create_invoice", "get_invoice", "final_result"], Signs())
    {2: 'exit'}
    """
    agent = agent_of(names, signs)
    kinds = [kind_of(name) for name in names]
    why = {place: kind for place, kind in enumerate(kinds) if kind}
    why |= dict.fromkeys(_schemas(names), "output")
    if agent is not None:
        why |= {place: agent.title for place, name in enumerate(names) if place not in why and agent.keeps(name)}
    return dict(sorted(why.items()))


def agent_of(names: Sequence[str], signs: Signs) -> Agent | None:
    """The known agent whose request this is."""
    return next((agent for agent in known_agents() if agent.sent(signs.headers, signs.instructions, names)), None)


def _schemas(names: Sequence[str]) -> list[int]:
    found = [place for place, name in enumerate(names) if SCHEMA.fullmatch(name)]
    return found if len(found) <= SCHEMAS * len(names) else []
