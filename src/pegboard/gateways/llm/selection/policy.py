"""The input and the result of a selection, and the marking of protected tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import msgspec

from pegboard.gateways.llm.call_tool.plan import CallToolPlan
from pegboard.gateways.llm.conversation.store import Receipt
from pegboard.gateways.llm.formats.protocol import LlmRequest, OfferedTool
from pegboard.gateways.llm.formats.tool_choice import KeptTools, WhenNone
from pegboard.gateways.llm.selection.board_cache import ToolBoard
from pegboard.gateways.llm.selection.deferral import DeferralPlan
from pegboard.model import Decision, Tokens
from pegboard.prompt_cache import CacheDecision
from pegboard.protection import EXITS, Signs, protected_tools
from pegboard.routing import PROFILES, Profile
from pegboard.settings.llm import Format, Way

NO_TOKENS = Tokens(0)
LEAST_OWN = 5
"""From this many protected tools on, a request comes from an agent with its own tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How the tools of requests are selected.

    ``always`` and ``never`` are name patterns of tools that stay or go whatever is relevant; the request's own choice
    of a tool outweighs both. ``protect`` keeps the tools that agents cannot work without. With fewer than
    ``least_tools`` or ``least_tokens`` to select from nothing is filtered.

    ``sticky``: tools that a conversation holds stay while that is cheaper, at the prices of ``provider``, for an
    expected number of ``turns``; ``allowed_tools``: the provider accepts a list of allowed tools. ``ways`` are the ways
    in which tools may reach the model, of which the cheapest is taken; ``beside`` replaces them for requests with at
    least `LEAST_OWN` tools that stay. ``search_tokens`` is the budget for the summary of tools that the model can
    search for: deferred ones, or with ``way_back`` those that were left out.
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
    search_tokens: int = 600
    way_back: bool = False

    def ways_of(self, request: LlmRequest) -> tuple[Way, ...]:
        """The ways for this request."""
        if not self.beside or self.beside == self.ways:
            return self.ways
        own = sum(1 for tool in request.tools if tool.protected)
        return self.beside if own >= LEAST_OWN else self.ways


@dataclass(frozen=True, slots=True, kw_only=True)
class Filtered:
    """The tools of a request that stay, with the reasons; ``left_alone`` says why it was not filtered, if so.

    ``without`` says what was missing for the selection, if anything. Tokens are those of the tools as sent; zero if not
    counted. ``decision`` is the router's, ``verdict`` that of the prompt cache rule. ``narrowed`` is a body with all
    tools and a list of the allowed ones, which then are ``kept``; None if the other tools are left out. ``way`` is how
    tools reach the model; ``because`` says why, if the verdict does not. ``call_tool_plan`` is set if they are called
    by `call_tool`, ``deferral`` if some are deferred: then ``kept`` are those whose definitions the model has seen;
    ``no_call_tool`` says why `call_tool` was not possible, ``instead`` why the way stands in for deferral, if it does.
    ``board`` is the one that decided, ``barred`` the places
    that it could not select. ``receipt`` lets the conversation record the answer.
    ``tail`` are the places of the tools that searches found in the conversation, in that order: they come after the
    others.
    """

    kept: KeptTools
    left_alone: str = ""
    tokens_before: Tokens = NO_TOKENS
    tokens_after: Tokens = NO_TOKENS
    decision: Decision | None = None
    verdict: CacheDecision | None = None
    narrowed: bytes | None = None
    without: str = ""
    board: ToolBoard | None = None
    way: Way = "tools"
    call_tool_plan: CallToolPlan | None = None
    deferral: DeferralPlan | None = None
    no_call_tool: str = ""
    instead: str = ""
    barred: frozenset[int] = frozenset()
    because: str = ""
    receipt: Receipt | None = None
    tail: tuple[int, ...] = ()

    @property
    def reached(self) -> Sequence[int]:
        """The places of the tools that the model can call, directly or after a search."""
        return sorted({*self.kept.places, *(self.deferral.waiting if self.deferral else ())})

    def sent(self, offered: int) -> Sequence[int]:
        """The places of the tools that are sent, out of ``offered``; of deferred ones, those that the model sees."""
        return self.kept.places if self.narrowed is None else range(offered)


def any_fits(patterns: Iterable[str], name: str) -> bool:
    """Whether one of these patterns matches the name."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def mark_protected(request: LlmRequest, client: Mapping[str, str], policy: Policy) -> LlmRequest:
    """The request with its protected tools marked; ``client`` are the headers that identify agents.

    Tools that the policy's `never` matches are not protected; without `protect` none are. If a call is required and no
    tool is known to end the run, no tool may be dropped.
    """
    if not policy.protect or not request.tools:
        return request
    signs = Signs(
        headers=client,
        instructions=tuple(
            part.text for message in request.turn.messages if message.role == "system" for part in message.parts
        ),
        definitions=tuple(tool.definition for tool in request.tools),
    )
    found = protected_tools([tool.name for tool in request.tools], signs)
    why = {
        place: reason
        for place, reason in found.items()
        if _may_be(request.tools[place]) and not any_fits(policy.never, request.tools[place].name)
    }
    if request.choice.mode == "required" and request.choice.names is None and EXITS.isdisjoint(found.values()):
        request = replace(request, may_lose_some=False)
    marked = tuple(
        msgspec.structs.replace(tool, protected=why[place]) if place in why else tool
        for place, tool in enumerate(request.tools)
    )
    return replace(request, tools=marked)


def _may_be(tool: OfferedTool) -> bool:
    """Hosted and deferred tools stay anyway."""
    return not tool.hosted and not tool.deferred
