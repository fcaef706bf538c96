"""The page of definitions that are not the approved ones: what has changed in each, and what the scanner finds."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from pegboard.gateways.dashboard.forms import definition_field
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.model import Pin, ToolId, Wording
from pegboard.trust import ScanResult, scan_content
from pegboard.trust.definition_changes import Part, changes
from pegboard.trust.every_user import of_every_user

MOST_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class UnapprovedDefinition:
    """``changes`` are places with the parts of what changed there, or None if a text is missing; ``value`` is what a
    form calls exactly this definition."""

    tool: ToolId
    new: bool
    rejected: bool
    changes: list[tuple[str, list[Part]]] | None
    findings: ScanResult
    value: str


class ApprovalPages:
    """The page as the values of its template."""

    def __init__(self, host: Host) -> None:
        self._host = host

    async def approvals(self, request: Request) -> dict[str, Any]:
        """All of them, or those of the ``server`` that the address names."""
        wanted, store = request.query_params.get("server", ""), self._host.parts.pins
        pins = {tool: pin for tool, pin in (await store.get()).items() if pin.changed}
        chosen = sorted(tool for tool in pins if wanted in ("", tool.server))
        wordings = await store.wordings(chosen[:MOST_SHOWN])
        is_rejected, servers = self._host.switches.is_rejected, self._host.settings.servers
        rejected = {
            tool
            for tool in chosen
            if any(is_rejected(each, pins[tool].seen) for each in (tool, of_every_user(tool, servers)))
        }
        return {
            "server": wanted,
            "servers": sorted({tool.server for tool in pins}),
            "pins": self._host.settings.pin_policy,
            "scan": self._host.settings.scan,
            "definitions": await asyncio.to_thread(
                lambda: [
                    shown(tool, pins[tool], wordings.get(tool, Wording()), rejected=tool in rejected)
                    for tool in chosen[:MOST_SHOWN]
                ]
            ),
            "more": max(0, len(chosen) - MOST_SHOWN),
        }


def shown(tool: ToolId, pin: Pin, wording: Wording, *, rejected: bool) -> UnapprovedDefinition:
    """A definition as the page shows it. Run it on a thread: long texts take a while."""
    known = wording.seen is not None and (wording.approved is not None or pin.new)
    found = changes(wording.approved, wording.seen) if known and wording.seen is not None else None
    return UnapprovedDefinition(
        tool=tool,
        new=pin.new,
        rejected=rejected,
        changes=None if found is None else [(each.place, each.parts) for each in found],
        findings=ScanResult() if wording.seen is None else scan_content(json.loads(wording.seen)),
        value=definition_field(tool, pin.seen),
    )
