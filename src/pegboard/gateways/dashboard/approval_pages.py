"""The page of definitions that are not the approved ones: what has changed in each, and what the scanner finds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from pegboard.catalog.ingest.mcp import tool_from_mcp
from pegboard.errors import CatalogError
from pegboard.gateways.dashboard.forms import definition_field
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.model import Pin, Server, ServerName, ToolId, Wording
from pegboard.records import SwitchRecord
from pegboard.trust import ScanResult, scan, scan_server
from pegboard.trust.definition_changes import Change, changes

MOST_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class UnapprovedDefinition:
    """``changes`` is None if a text is missing; ``value`` is what a form calls exactly this definition."""

    tool: ToolId
    new: bool
    rejected: bool
    changes: list[Change] | None
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
        off = self._host.switches.off
        return {
            "server": wanted,
            "servers": sorted({tool.server for tool in pins}),
            "pins": self._host.settings.pin_policy,
            "scan": self._host.settings.scan,
            "definitions": [
                shown(tool, pins[tool], wordings.get(tool, Wording()), off) for tool in chosen[:MOST_SHOWN]
            ],
            "more": max(0, len(chosen) - MOST_SHOWN),
        }


def shown(tool: ToolId, pin: Pin, wording: Wording, off: Mapping[ToolId, SwitchRecord]) -> UnapprovedDefinition:
    """A definition as the page shows it."""
    known = wording.seen is not None and (wording.approved is not None or pin.new)
    return UnapprovedDefinition(
        tool=tool,
        new=pin.new,
        rejected=tool in off and off[tool].definition == pin.seen,
        changes=changes(wording.approved, wording.seen) if known and wording.seen is not None else None,
        findings=_scanned(tool, wording.seen),
        value=definition_field(tool, pin.seen),
    )


def _scanned(tool: ToolId, text: str | None) -> ScanResult:
    """What the scanner says of a definition; nothing where its text is not known, or is none of a tool."""
    if text is None or "/" in tool.name:
        return ScanResult()
    said = json.loads(text)
    try:
        if not tool.name:
            return scan_server(Server(name=ServerName(tool.server), **said))
        return scan(tool_from_mcp(ServerName(tool.server), said))
    except (CatalogError, TypeError):
        return ScanResult()
