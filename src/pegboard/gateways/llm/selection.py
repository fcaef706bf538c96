"""What is asked of a selection, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pegboard.gateways.llm.boards import Stock
from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.obedience import Kept, WhenNone
from pegboard.gateways.llm.one_tool.plan import Prepared
from pegboard.gateways.llm.receipts import Receipt
from pegboard.model import Decision, Tokens
from pegboard.prompt_cache import Verdict
from pegboard.routing import PROFILES, Profile
from pegboard.settings.llm import Format, Way

NO_TOKENS = Tokens(0)
LEAST_OWN = 5
"""Protected tools of a request that make it an agent's, with tools of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How the tools of requests are picked.

    ``always`` and ``never`` are patterns on names: tools that stay, and tools that go, whatever is relevant; the
    request's own word on a tool outweighs both. ``protect`` keeps the tools that no agent can do without. With fewer
    than ``least_tools`` or ``least_tokens`` to pick from nothing is filtered.

    ``sticky``: what a conversation holds stays while that is cheaper, at the prices of ``provider``, where one is
    expected to have so many ``turns``; ``allowed_tools``: it can be told which tools may be called. ``ways`` are those
    that tools may take to the model, of which the cheapest is taken; ``beside`` are those of a request which has
    `LEAST_OWN` tools that stay, or more.
    """

    profile: Profile = PROFILES["hybrid"]
    always: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    protect: bool = True
    least_tools: int = 0
    least_tokens: int = 0
    when_none: WhenNone = "all"
    sticky: bool = True
    turns: float = 1.0
    allowed_tools: bool = False
    provider: Format = "generic"
    ways: tuple[Way, ...] = ("tools",)
    beside: tuple[Way, ...] = ()

    def ways_of(self, request: Request) -> tuple[Way, ...]:
        """Of this request's tools."""
        if not self.beside or self.beside == self.ways:
            return self.ways
        own = sum(1 for tool in request.tools if tool.protected)
        return self.beside if own >= LEAST_OWN else self.ways


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """What stays of a request's tools, and why; ``left_alone`` says why it was not filtered, where it was not.

    ``without`` says what was not there to pick them by, where that is so.

    Tokens are those of the tools as they are sent; zero where they were not counted. The decision is the router's, the
    verdict that of the rule for prompt caches. ``narrowed`` is the body with all tools and a word on which may be
    called, which ``kept`` then are; or the body with the ``deferred`` ones, which the model can search for; None where
    the others are left out. ``way`` is how tools reach the model, ``because`` says why, where the verdict does not.
    ``one_tool`` is what it is told where it calls them through `call_tool`: then ``kept`` are those whose definition it
    has seen by now; ``no_one_tool`` says why it does not, where it was to. ``stock`` has the board that decided, and
    ``barred`` are the places that it was not to pick. With the ``receipt`` the conversation is told what became of it.
    """

    kept: Kept
    left_alone: str = ""
    tokens_before: Tokens = NO_TOKENS
    tokens_after: Tokens = NO_TOKENS
    decision: Decision | None = None
    verdict: Verdict | None = None
    narrowed: bytes | None = None
    without: str = ""
    stock: Stock | None = None
    way: Way = "tools"
    one_tool: Prepared | None = None
    no_one_tool: str = ""
    barred: frozenset[int] = frozenset()
    deferred: frozenset[int] = frozenset()
    because: str = ""
    receipt: Receipt | None = None

    @property
    def reached(self) -> Sequence[int]:
        """The places of the tools that the model can call, at once or once it has searched for them."""
        return sorted({*self.kept.places, *self.deferred})

    def sent(self, offered: int) -> Sequence[int]:
        """The places of the tools that go out, of so many."""
        if self.way == "defer":
            return self.reached
        return self.kept.places if self.narrowed is None else range(offered)


def any_fits(patterns: Iterable[str], name: str) -> bool:
    """Whether one of these patterns is on this name."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
