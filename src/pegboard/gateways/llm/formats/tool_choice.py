"""What the request itself decides about its tools, before relevance is considered. Pure, for all formats."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pegboard.gateways.llm.formats.protocol import LlmRequest

WhenNone = Literal["all", "none"]
"""What stays if nothing is relevant: all tools, or only those that must."""
NOTHING_RELEVANT = "nothing is relevant"
"""The reason for keeping tools if none was selected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptTools:
    """The places of the tools that stay, in order (P18), each with the reason."""

    why: Mapping[int, str]

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(self.why)


def left_alone(request: LlmRequest) -> str:
    """Why the request must not be filtered; empty if it may be."""
    if not any(not tool.stays and not tool.deferred for tool in request.tools):
        return "there is no tool to filter"
    if request.untouchable:
        return request.untouchable
    if any(tool.deferred for tool in request.tools) and not any(tool.searches for tool in request.tools):
        return "one of the caller's own tools finds deferred tools, and it is not known which"  # P21
    if request.continues is not None:
        return "the conversation that it continues is not known here"
    return ""


def must_stay(request: LlmRequest) -> dict[int, str]:
    """The places of tools that stay whatever is relevant, each with the reason.

    Hosted tools (P15), deferred ones, which are in no prompt until they are found (P21), protected ones, a forced one
    (P8), those that the conversation called or refers to (P13, P21), and those whose finding the request reports. Of
    tools with the same name, all (P17).
    """
    forced = request.choice.names if request.choice.forced and request.choice.names else frozenset()
    why: dict[int, str] = {}
    for place, tool in enumerate(request.tools):
        if tool.hosted:
            why[place] = "hosted"
        elif tool.deferred:
            why[place] = "deferred"
        elif tool.protected:
            why[place] = f"protected: {tool.protected}"
        elif tool.name in forced:
            why[place] = "forced"
        elif tool.name in request.called:
            why[place] = "called"
        elif tool.name in request.referenced:
            why[place] = "referenced"
        elif tool.name in request.found:
            why[place] = "found"
    return why


def apply_tool_choice(
    request: LlmRequest, wanted: Mapping[int, str], *, barred: Collection[int] = (), when_none: WhenNone = "all"
) -> KeptTools:
    """The tools that stay: those that are wanted and those that must; never fewer than the request needs (P9, P12,
    P14).

    ``wanted`` has the reason for each. ``barred`` tools are not kept for relevance, nor when everything stays for lack
    of it; what the request itself asks for stays anyway.
    """
    must = must_stay(request)
    open_ = request.may_be_picked - frozenset(barred)
    picked = {place: why for place, why in wanted.items() if place in open_}
    if not picked and (when_none == "all" or request.choice.mode == "required") and not request.choice.forced:
        picked = dict.fromkeys(open_, NOTHING_RELEVANT)
    kept = dict(sorted((picked | must).items()))
    return KeptTools(why=kept if is_enough(request, kept) else dict.fromkeys(range(len(request.tools)), "needed"))


def is_enough(request: LlmRequest, kept: Iterable[int]) -> bool:
    """Whether the request is valid with these tools alone."""
    staying = frozenset(kept)
    if not request.may_lose_some and len(staying) < len(request.tools):
        return False
    names = {request.tools[place].name for place in staying}
    choice = request.choice
    if not names:
        return request.may_lose_all and not request.has_tool_history and choice.mode != "required" and not choice.names
    if choice.names is None:
        return True
    needed = choice.names & request.names
    return not needed or bool(needed & names)


def may_be_narrowed(request: LlmRequest, kept: Collection[int]) -> bool:
    """Whether the request can be restricted to these tools: they are functions, and it has no restriction yet."""
    return (
        0 < len(kept) < len(request.tools)
        and request.choice.mode != "none"
        and request.choice.names is None
        and not any(request.tools[place].hosted or request.tools[place].deferred for place in kept)
    )


def moved_breakpoints(request: LlmRequest, kept: Collection[int]) -> dict[int, bytes]:
    """The cache breakpoints of dropped tools, by the preceding kept tool that is to carry each (P20).

    A deferred tool carries none, and a tool with its own breakpoint keeps that. If two fall on the same tool the first
    counts: if lifetimes differ, the longer one has to come first.
    """
    staying, moved = frozenset(kept), dict[int, bytes]()
    last: int | None = None
    for place, tool in enumerate(request.tools):
        if place in staying:
            last = last if tool.deferred else place
        elif tool.breakpoint is not None and last is not None and request.tools[last].breakpoint is None:
            moved.setdefault(last, tool.breakpoint)
    return moved
