"""The servers that an operator had chosen before definitions were held back: what they list first is approved."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from pegboard.model import Fingerprint, Pin, ToolId, Wording
from pegboard.protocols import NO_TEXTS, Pins
from pegboard.settings import Settings

LOGGER = logging.getLogger(__name__)

MARK = ToolId("", "")
"""The pin that says that the servers of a store are known; the pin of each has its name, and no server either."""
CONFIGURED = Fingerprint("configured")


class FirstServers:
    """The pins of a store, and the servers that were configured when it was first used under `quarantine`.

    Their names are kept in the store, because a server may list its tools much later, after a sign-in for example.
    Where quarantine is only the default, as the gateway is a team's, what was used until then counts as approved: an
    update of Pegboard takes no tool away. Definitions that `scan` holds back are left as they are.
    """

    def __init__(self, store: Pins, settings: Callable[[], Settings]) -> None:
        self._store = store
        self._settings = settings
        self._names: frozenset[str] | None = None

    def doubts(self, server: str) -> bool:
        """Whether what a server lists first is not approved by that. Known once `get` has answered."""
        return self._settings().new_server_policy == "quarantine" and server not in (self._names or ())

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        if self._names is None and self._settings().pin_policy == "quarantine":
            self._names = await self._first()
        return {tool: pin for tool, pin in (await self._store.get(tools)).items() if tool.server}

    async def put(
        self,
        seen: Mapping[ToolId, Fingerprint],
        *,
        texts: Mapping[ToolId, str] = NO_TEXTS,
        doubted: Collection[ToolId] = (),
    ) -> Mapping[ToolId, Pin]:
        return await self._store.put(seen, texts=texts, doubted=doubted)

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        await self._store.approve(tools)

    async def wordings(self, tools: Sequence[ToolId]) -> Mapping[ToolId, Wording]:
        return await self._store.wordings(tools)

    async def version(self) -> int:
        return await self._store.version()

    async def _first(self) -> frozenset[str]:
        """Raises StoreError; then nothing is known yet."""
        known, settings = await self._store.get(), self._settings()
        if MARK in known:
            return frozenset(tool.name for tool in known if not tool.server and tool != MARK)
        by_default = settings.pins is None
        used = {tool: pin.seen for tool, pin in known.items() if pin.changed}
        if used and by_default and settings.scan != "quarantine":
            await self._store.approve(used)
            LOGGER.warning(
                "Changed definitions are held back from now on, as this gateway is a team's; the %d that had changed "
                'and were used count as approved. `pins = "warn"` in the configuration goes on as before.',
                len(used),
            )
        first = frozenset(settings.enabled_servers) if by_default or not known else frozenset[str]()
        if first:
            await self._store.put({ToolId("", name): CONFIGURED for name in first})
        await self._store.put({MARK: CONFIGURED})  # last: with it the others are known to be complete
        return first
