"""What an operator does on the dashboard. Each act is in the audit log before it is done."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

from pegboard.audit_entries import AuditEntry, AuditOutcome
from pegboard.gateways.dashboard.dashboard_access import OPERATOR, DashboardRefused, Viewer
from pegboard.gateways.dashboard.forms import Fields, definition_of, last, switch_of, text_of, tool_of
from pegboard.gateways.mcp.gateway.host import Host
from pegboard.gateways.mcp.transport.auth import InsufficientScope
from pegboard.model import Fingerprint, ToolId
from pegboard.telemetry.activity_recorder import ActivityRecorder
from pegboard.trust.every_user import for_every_user, of_every_user

LOGGER = logging.getLogger(__name__)

DONE: Mapping[str, str] = {
    "approved": "Approved.",
    "rejected": "Rejected: the definition is held back, whatever the policy says.",
    "off": "Switched off.",
    "on": "Switched on.",
    "still": "Switched on; a definition that was rejected is held back still.",
    "lifted": "The rejection is lifted; the tool or its server is switched off still.",
    "erased": "Erased.",
    "none": "Nothing was chosen.",
}
"""What a page says after an act, by the value of its parameter ``done``."""


class OperatorActs:
    """The acts by their paths; each returns the page to show next, below `dashboard_app.PATH`."""

    def __init__(self, host: Host, recorder: ActivityRecorder | None) -> None:
        self._host = host
        self._recorder = recorder
        self.paths: Mapping[str, Callable[[Viewer, Fields], Awaitable[str]]] = {
            "approve": self._approve,
            "reject": self._reject,
            "switch-off": self._switch_off,
            "switch-on": self._switch_on,
            "erase": self._erase,
        }

    async def do(self, act: str, viewer: Viewer, fields: Fields) -> str:
        """The path of the page that shows what was done. Raises InsufficientScope for a viewer, DashboardRefused for
        a form that cannot be meant, and StoreError, in which case nothing was done."""
        if not viewer.operates:
            await self._log(viewer, act, outcome="refused", reason=InsufficientScope.code)
            raise InsufficientScope(OPERATOR)
        return await self.paths[act](viewer, fields)

    async def _approve(self, viewer: Viewer, fields: Fields) -> str:
        chosen = await self._chosen(fields)
        for tool, seen in chosen.items():
            await self._log(viewer, "approve", tool, seen)
        if chosen:
            pins = self._host.parts.pins
            await pins.approve(for_every_user(chosen, await pins.get()))
        for tool, seen in chosen.items():
            for each in (tool, self._rejected_as(tool)):
                if self._host.switches.is_rejected(each, seen):
                    await self._host.switches.turn_on(each, seen)
        await self._host.review()
        return f"approvals?done={'approved' if chosen else 'none'}"

    async def _reject(self, viewer: Viewer, fields: Fields) -> str:
        chosen = await self._chosen(fields)
        for tool, seen in chosen.items():
            await self._log(viewer, "reject", tool, seen)
            await self._host.switches.turn_off(self._rejected_as(tool), who=viewer.name, definition=seen)
        return f"approvals?done={'rejected' if chosen else 'none'}"

    def _rejected_as(self, pin: ToolId) -> ToolId:
        return of_every_user(pin, self._host.settings.servers)

    async def _switch_off(self, viewer: Viewer, fields: Fields) -> str:
        tool = tool_of(last(fields, "target"))
        if tool.server not in {status.name for status in self._host.fleet.status()}:
            raise DashboardRefused(f"There is no server {tool.server!r}.", HTTPStatus.NOT_FOUND)
        await self._log(viewer, "switch off", tool)
        await self._host.switches.turn_off(tool, who=viewer.name)
        return "tools?done=off"

    async def _switch_on(self, viewer: Viewer, fields: Fields) -> str:
        tool, definition = switch_of(last(fields, "target"))
        await self._log(viewer, "switch on", tool, definition)
        switches = self._host.switches
        await switches.turn_on(tool, definition)
        if switches.is_off(tool, lambda: Fingerprint("")):
            return "tools?done=lifted"
        return f"tools?done={'still' if switches.is_rejected(tool) else 'on'}"

    async def _erase(self, viewer: Viewer, fields: Fields) -> str:
        mark = text_of(last(fields, "conversation"))
        if not mark or self._recorder is None:
            raise DashboardRefused("The form names no conversation.", HTTPStatus.BAD_REQUEST)
        await self._log(viewer, "erase", session=mark)
        await self._recorder.forget(mark)
        return "conversations?done=erased"

    async def _chosen(self, fields: Fields) -> dict[ToolId, Fingerprint]:
        """The definitions of a form. Raises DashboardRefused if one is not the latest any more: nobody has seen it."""
        chosen = dict(definition_of(text) for text in fields.get("definition", ()))
        pins = await self._host.parts.pins.get(list(chosen))
        for tool, seen in chosen.items():
            if tool not in pins or pins[tool].seen != seen:
                raise DashboardRefused(
                    f"The definition of {tool} has changed again since the page was shown: look at it once more.",
                    HTTPStatus.CONFLICT,
                )
        return chosen

    async def _log(
        self,
        viewer: Viewer,
        act: str,
        tool: ToolId | None = None,
        definition: str = "",
        *,
        session: str = "",
        outcome: AuditOutcome = "ok",
        reason: str = "",
    ) -> None:
        """Raises StoreError: then the act must not be done."""
        server, name = tool or ("", "")
        await self._host.parts.audit.act(
            AuditEntry(
                at=self._host.parts.clock.time(),
                event="act",
                door="ui",
                act=act,
                caller=viewer.name,
                tenant=viewer.tenant,
                session=session,
                server=server,
                tool=name,
                arguments=f"sha256:{definition}" if definition else "",
                outcome=outcome,
                reason=reason,
            )
        )
        said = f"{server}/{name}".rstrip("/") or session
        LOGGER.info("Dashboard: %s by %s: %s (%s)", act, ascii(viewer.name or "this machine"), ascii(said), outcome)
