"""What a caller may use: scopes and preconditions, facts that no text can change (Tool Attention §5.4)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pegboard.errors import ConfigError
from pegboard.model import AgentState, Mask, Tool, Turn
from pegboard.protocols import Filter
from pegboard.routing.server_breakers import ServerBreakers
from pegboard.sequence_change import carried_over

LOGGER = logging.getLogger(__name__)

Precondition = Callable[[AgentState], bool]

MOST = 64
"""Number of pattern sets whose masks are cached."""


def is_authenticated(scope: str) -> Precondition:
    """Holds if the agent has this scope."""
    return lambda state: scope in state.auth


def has_prior_tool_output(prefix: str) -> Precondition:
    """Holds if a tool whose name has this prefix has answered before."""
    return lambda state: any(name.startswith(prefix) for name in state.tool_outputs)


def milestone_reached(name: str) -> Precondition:
    """Holds if the workflow has reached this milestone."""
    return lambda state: name in state.milestones


PREDICATES: dict[str, Callable[[str], Precondition]] = {
    "is_authenticated": is_authenticated,
    "has_prior_tool_output": has_prior_tool_output,
    "milestone_reached": milestone_reached,
}


def parse_precondition(text: str) -> Precondition:
    """A precondition as written in the configuration: the predicate's name, a colon, its argument.

    >>> parse_precondition("is_authenticated:github:write")(AgentState(auth=frozenset({"github:write"})))
    True
    """
    name, _, argument = text.partition(":")
    if name not in PREDICATES or not argument:
        raise ConfigError(
            f"Precondition {text!r} cannot be read.",
            remedy=f"Write NAME:ARGUMENT with one of {', '.join(PREDICATES)}.",
        )
    return PREDICATES[name](argument)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Tools that match ``pattern``, on ``server/name`` or the name alone, need this precondition or this scope."""

    pattern: str
    precondition: Precondition | None = None
    scope: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Eligible:
    """Masks of shape (n,): tools the caller has a right to, those the state allows now, and those that are offered.

    Tools of a server with an open circuit breaker are not offered, unless there are no others.
    """

    permitted: Mask
    allowed: Mask
    offered: Mask

    @property
    def withheld(self) -> Mask:
        return self.allowed & ~self.offered

    @property
    def gated_out_by_state(self) -> Mask:
        return self.permitted & ~self.allowed


class Eligibility:
    """The right factor of Tool Attention eq. 6, 1[state ⊨ pre_i], and the caller's rights, over one catalog."""

    def __init__(
        self,
        tools: Sequence[Tool],
        rules: Sequence[Rule] = (),
        resting: ServerBreakers | None = None,
        before: Eligibility | None = None,
    ) -> None:
        """``before`` is that of an earlier catalog: only tools that came since are compared with its patterns."""
        self._tools = tuple(tools)
        self._resting = resting
        self._size = len(tools)
        self._before: tuple[tuple[Tool, ...], Mapping[str, tuple[bool, ...]]] = ((), {})
        if before is not None:
            self._before = before._tools, before._fits
        self._fits: dict[str, tuple[bool, ...]] = {}
        """Whether each tool fits a pattern."""
        self._rules = [(rule, self._matches(rule.pattern)) for rule in rules]
        self._meant = lru_cache(maxsize=MOST)(self._by_patterns)

    def of(self, turn: Turn, where: Filter | None = None) -> Eligible:
        permitted = np.ones(self._size, np.bool_) if turn.only is None else self._meant(turn.only).copy()
        allowed = np.ones(self._size, np.bool_)
        for rule, matched in self._rules:
            if rule.scope is not None and rule.scope not in (turn.scopes or ()):
                permitted &= ~matched
            if rule.precondition is not None and not _holds(rule.precondition, turn.state):
                allowed &= ~matched
        if where is not None:
            permitted &= np.fromiter((where.passes(tool.id) for tool in self._tools), np.bool_, self._size)
        allowed &= permitted
        return Eligible(permitted=permitted, allowed=allowed, offered=self._offered(allowed))

    def _by_patterns(self, patterns: tuple[str, ...]) -> Mask:
        meant = np.zeros(self._size, np.bool_)
        for each in patterns:
            meant |= self._matches(each)
        return meant

    def _matches(self, pattern: str) -> Mask:
        if pattern not in self._fits:
            tools, known = self._before
            before = (tools, known[pattern]) if pattern in known else ((), ())
            self._fits[pattern] = carried_over(
                *before, self._tools, lambda new: [tool.id.fits(pattern) for tool in new]
            )
        return np.array(self._fits[pattern], np.bool_).reshape(self._size)

    def _offered(self, allowed: Mask) -> Mask:
        resting = frozenset() if self._resting is None else self._resting.resting()
        if not resting:
            return allowed
        offered = allowed & np.fromiter((tool.server not in resting for tool in self._tools), np.bool_, self._size)
        return offered if offered.any() else allowed


def _holds(precondition: Precondition, state: AgentState) -> bool:
    """Rights fail closed: a precondition that raises does not hold."""
    try:
        return bool(precondition(state))
    except Exception:  # a user's predicate may raise anything
        LOGGER.exception("A precondition raised; its tools are withheld")
        return False
