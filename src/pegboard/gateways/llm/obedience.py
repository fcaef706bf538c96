"""What the request itself decides about its tools, before anybody asks what is relevant. Pure, whatever the format."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from pegboard.gateways.llm.codec import Request

WhenNone = Literal["all", "none"]
"""What stays where nothing is relevant: everything, or nothing but what must."""
NOTHING_RELEVANT = "nothing is relevant"
"""Why tools are kept of which none was chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Places of the tools that stay, in their order (P18), and why each does."""

    why: Mapping[int, str]

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(self.why)


def left_alone(request: Request) -> str:
    """Why nothing of the request is to be filtered; empty where it may be."""
    if not any(not tool.stays and not tool.deferred for tool in request.tools):
        return "there is no tool to filter"
    if request.untouchable:
        return request.untouchable
    if any(tool.deferred for tool in request.tools) and not any(tool.searches for tool in request.tools):
        return "deferred tools are found by a tool of the caller's own, which cannot be told from the others"  # P21
    if request.continues is not None:
        return "the conversation it continues is not known here"
    return ""


def must_stay(request: Request) -> dict[int, str]:
    """The places of tools that stay whatever is relevant, and why.

    Hosted ones (P15), those in nobody's prompt until they are searched for (P21), protected ones, the one that has to
    be called (P8), and those that the conversation called or refers to (P13, P21). Of one name twice, both (P17).
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
    return why


def may_be_picked(request: Request) -> frozenset[int]:
    """The places of the tools that relevance may pick: of a list of allowed ones, only those."""
    listed = None if request.choice.forced else request.choice.names
    return frozenset(
        place
        for place, tool in enumerate(request.tools)
        if not tool.stays and not tool.deferred and (listed is None or tool.name in listed)
    )


def obey(
    request: Request, wanted: Mapping[int, str], *, barred: Collection[int] = (), when_none: WhenNone = "all"
) -> Kept:
    """What stays: the wanted tools, and those that must; never fewer than the request needs (P9, P12, P14).

    ``wanted`` says of each why it is. ``barred`` are tools that are not kept for relevance, and not where everything
    stays for want of it; what the request itself asks for stays all the same.
    """
    must = must_stay(request)
    open_ = may_be_picked(request) - frozenset(barred)
    picked = {place: why for place, why in wanted.items() if place in open_}
    if not picked and (when_none == "all" or request.choice.mode == "required") and not request.choice.forced:
        picked = dict.fromkeys(open_, NOTHING_RELEVANT)
    kept = dict(sorted((picked | must).items()))
    return Kept(why=kept if is_enough(request, kept) else dict.fromkeys(range(len(request.tools)), "needed"))


def is_enough(request: Request, kept: Iterable[int]) -> bool:
    """Whether the request makes sense with these tools alone."""
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


def may_be_narrowed(request: Request, kept: Collection[int]) -> bool:
    """Whether a word that just these may be called has a place: they are functions, and there is no such word yet."""
    return (
        0 < len(kept) < len(request.tools)
        and request.choice.mode != "none"
        and request.choice.names is None
        and not any(request.tools[place].hosted or request.tools[place].deferred for place in kept)
    )


def moved_breakpoints(request: Request, kept: Collection[int]) -> dict[int, bytes]:
    """Cache breakpoints of dropped tools, by the kept tool before each that is to carry it (P20).

    A deferred tool carries none, and one that has its own keeps that. Of two that fall together the first counts: where
    their times to live differ, the longer one has to come first.
    """
    staying, moved = frozenset(kept), dict[int, bytes]()
    last: int | None = None
    for place, tool in enumerate(request.tools):
        if place in staying:
            last = last if tool.deferred else place
        elif tool.breakpoint is not None and last is not None and request.tools[last].breakpoint is None:
            moved.setdefault(last, tool.breakpoint)
    return moved
