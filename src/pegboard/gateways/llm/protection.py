"""The tools of a request that are protected (`pegboard.protected`), marked before anything is picked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import msgspec

from pegboard.gateways.llm.codec import Offered, Request
from pegboard.gateways.llm.selection import Policy, any_fits
from pegboard.protected import EXITS, Signs, protected_tools


def shielded(request: Request, client: Mapping[str, str], policy: Policy) -> Request:
    """The request with its protected tools marked; ``client`` are the headers by which agents are told.

    A tool that the policy `never` keeps is not protected, and none is where it does not `protect`. Where a call is
    required and none is known to end the run, none may go.
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


def _may_be(tool: Offered) -> bool:
    """Others stay as they are without it."""
    return not tool.hosted and not tool.deferred
