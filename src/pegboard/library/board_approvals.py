"""Approved definitions of a board's tools: those that changed are held back, as in the MCP gateway (M28, M29)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from pegboard.catalog import Catalog
from pegboard.compose import Parts
from pegboard.model import Fingerprint, Pin, Server, Tool, ToolId, Wording
from pegboard.protocols import NO_TEXTS, Pins
from pegboard.settings import Settings
from pegboard.settings.storage import PinPolicy, ScanPolicy

if TYPE_CHECKING:
    from pegboard.trust.approvals import Approvals

Groups = tuple[tuple[Server, tuple[Tool, ...]], ...]
"""Tools by server."""


def server_approvals(
    settings: Settings,
    parts: Parts,
    changed: Callable[[], None],
    exempt: Callable[[ToolId], bool],
    pins_of: Callable[[Pins], Pins] = lambda store: store,
) -> Approvals | None:
    """The approvals of a board's servers; None unless the options or the configuration say ``pins`` or ``scan``.

    ``changed`` is called when other tools are held back.
    """
    pins, scan = _policies(settings)
    if (pins, scan) == ("allow", "off"):
        return None
    from pegboard.trust.approvals import Approvals  # boards without pins need no scanner

    return Approvals(
        pins_of(parts.pins), pins, scan, events=parts.events, clock=parts.clock, changed=changed, exempt=exempt
    )


class ToolPins:
    """Pins of tools, and none of whole servers: a program that gives a board one more tool is no server that lists one
    more, which would have to be approved."""

    def __init__(self, store: Pins) -> None:
        self._store = store

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        pins = await self._store.get(None if tools is None else [tool for tool in tools if tool.name])
        return {tool: pin for tool, pin in pins.items() if tool.name}

    async def put(
        self,
        seen: Mapping[ToolId, Fingerprint],
        *,
        texts: Mapping[ToolId, str] = NO_TEXTS,
        doubted: Collection[ToolId] = (),
    ) -> Mapping[ToolId, Pin]:
        named = {tool: each for tool, each in seen.items() if tool.name}
        return await self._store.put(named, texts=texts, doubted=doubted) if named else {}

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        await self._store.approve(tools)

    async def wordings(self, tools: Sequence[ToolId]) -> Mapping[ToolId, Wording]:
        return await self._store.wordings(tools)

    async def version(self) -> int:
        return await self._store.version()


class OwnApprovals:
    """The approvals of the tools that a board was given itself.

    The store is asked when the tools change, and every ten seconds of use, so that an approval by another process is
    known.
    """

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self._approvals = server_approvals(settings, parts, self._change, lambda tool: False, ToolPins)
        self._clock = parts.clock
        self._asked = self._clock.monotonic()
        self.changes = 0
        """How often other tools were held back than before."""

    @property
    def is_on(self) -> bool:
        return self._approvals is not None

    async def admitted(self, groups: Groups) -> Groups:
        """The board's own tools without those that are held back."""
        if self._approvals is None:
            return groups
        own = Catalog.build(groups)
        await self._approvals.see(own)
        if not self._approvals.is_strict:
            await self._approvals.ask()
        await self._approvals.watch_crowds()
        self._asked = self._clock.monotonic()
        admitted = self._approvals.admitted(own)
        return tuple((server, admitted.of_server(name)) for name, server in admitted.servers.items())

    async def refresh(self) -> None:
        """Ask the store again, if that was a while ago."""
        if self._approvals is None or not self._approvals.is_strict:
            return
        from pegboard.trust.pin_reads import REFRESH_SECONDS

        if self._clock.monotonic() - self._asked >= REFRESH_SECONDS:
            self._asked = self._clock.monotonic()
            await self._approvals.ask()

    def check(self, tool: ToolId) -> None:
        """Raises NotApproved for a tool that is held back."""
        if self._approvals is not None:
            self._approvals.check(tool)

    def _change(self) -> None:
        self.changes += 1


def _policies(settings: Settings) -> tuple[PinPolicy, ScanPolicy]:
    """What was asked for. The gateway's defaults watch servers of others; a program's own functions change with it."""
    return settings.pins or "allow", settings.scan if "scan" in settings.model_fields_set else "off"
