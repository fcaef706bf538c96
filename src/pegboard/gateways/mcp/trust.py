"""Definitions that were approved, and what is done about others (M28): rights fail closed, a store or no store.

The first definition of a tool that is seen counts as approved. What a call needs to know is in memory: no call waits
for the store.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice

from pegboard.catalog import Catalog, fingerprint
from pegboard.errors import NotApproved, PegboardError
from pegboard.events import DefinitionChanged
from pegboard.gateways.mcp.outage import Outage
from pegboard.model import Fingerprint, JsonObject, Pin, Tool, ToolId
from pegboard.seams import Clock, EventSink, Pins
from pegboard.settings.state import PinPolicy

LOGGER = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
"""Between two tries, while the store has yet to be told what is listed."""
REFRESH_SECONDS = 10.0
"""After which an approval by another process is known at the latest."""
NAMED = 8
"""Tools that a line of the log names."""


class Trust:
    """What is known of the definitions that the servers list. One for all gateways of a process.

    ``changed`` is called where other tools are held back than before; under `quarantine` alone are any.
    """

    def __init__(
        self, store: Pins, policy: PinPolicy, *, events: EventSink, clock: Clock, changed: Callable[[], None]
    ) -> None:
        self._store = store
        self._policy = policy
        self._events = events
        self._clock = clock
        self._changed = changed
        self._catalog = self._taken = Catalog.build([])
        self._listed: dict[ToolId, Fingerprint] = {}
        self._fingerprints: dict[ToolId, tuple[JsonObject, Fingerprint]] = {}
        self._pins: dict[ToolId, Pin] = {}
        self._noted: dict[ToolId, Fingerprint] = {}
        self._said: dict[ToolId, Fingerprint] = {}
        self._held_back: frozenset[ToolId] = frozenset()
        self._refused: frozenset[ToolId] = frozenset()
        self._asking = asyncio.Lock()
        self._wanted = asyncio.Event()
        self._settled = asyncio.Event()
        self._outage = Outage("Approved definitions cannot be asked for")

    def adopt(self, policy: PinPolicy) -> None:
        """Go by this policy from now on."""
        self._policy = policy
        self._said = {}
        self._take()
        self._judge()
        self._say_changed(self._pins)

    def admitted(self, catalog: Catalog) -> Catalog:
        """The catalog without the tools that are held back, in the same order."""
        if self._policy != "quarantine":
            return catalog
        groups = [
            (server, [tool for tool in catalog.of_server(name) if self._fits(tool.id, self._fingerprint(tool))])
            for name, server in catalog.servers.items()
        ]
        return Catalog.build(groups, counter=catalog.counter)

    def check(self, tool: ToolId) -> None:
        """Raises NotApproved for a tool that is held back."""
        if tool in self._held_back:
            raise NotApproved(str(tool), known=tool in self._pins)

    async def see(self, catalog: Catalog) -> None:
        """This is what the servers list now. What is known holds at once; where that matters, the store is asked."""
        self._catalog = catalog
        if self._policy != "quarantine":
            self._wanted.set()
            return
        self._take()
        if self._unnoted:
            self._settled.clear()
        self._judge()
        if self._unnoted:
            await self.ask()

    async def settled(self, timeout: float) -> None:
        """Wait until the store was asked about everything that is listed, or could not be."""
        if self._policy == "quarantine" and self._listed and not self._settled.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), timeout)

    async def run(self) -> None:
        """Tell the store what is listed, and ask it what others approved, until cancelled."""
        while True:
            self._wanted.clear()
            if self._unnoted or self._catalog is not self._taken or self._policy == "quarantine":
                await self.ask()
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_SECONDS if self._unnoted else REFRESH_SECONDS):
                    await self._wanted.wait()  # `wait_for` would miss a cancellation that comes with the event

    async def ask(self) -> None:
        """Note what is new in the store, and go by what it says. Where it fails, by what it said last."""
        async with self._asking:
            await asyncio.to_thread(self._hash, self._catalog)
            self._take()
            try:
                before = await self._store.get(list(self._listed))
                noted = self._unnoted
                now = await self._store.put(noted) if noted else {}
            except PegboardError as error:
                self._outage.began(error)
                before = self._pins
                asked = False
            else:
                self._outage.ended()
                self._noted = {tool: seen for tool, seen in self._noted.items() if tool in self._listed} | noted
                self._pins |= {**before, **now}
                asked = True
            self._judge()
            self._say_changed(before)
            self._say_refused(asked=asked)
            if not asked or not self._unnoted:
                self._settled.set()

    @property
    def _unnoted(self) -> dict[ToolId, Fingerprint]:
        """What is listed and this process has not told the store."""
        return {tool: seen for tool, seen in self._listed.items() if self._noted.get(tool) != seen}

    def _take(self) -> None:
        """What is listed, by fingerprints. Under `quarantine` at once, else when the store is told."""
        if self._catalog is not self._taken:
            self._listed = {tool.id: self._fingerprint(tool) for tool in self._catalog.tools}
            self._fingerprints = {tool: self._fingerprints[tool] for tool in self._listed}
            self._taken = self._catalog

    def _hash(self, catalog: Catalog) -> None:
        """Thousands of definitions take a moment: not on the event loop, where that can be (P25)."""
        for tool in catalog.tools:
            self._fingerprint(tool)

    def _fingerprint(self, tool: Tool) -> Fingerprint:
        """Made once a definition, which stays the same object while its server lists nothing new."""
        known = self._fingerprints.get(tool.id)
        if known is None or known[0] is not tool.definition:
            known = self._fingerprints[tool.id] = tool.definition, fingerprint(tool)
        return known[1]

    def _fits(self, tool: ToolId, seen: Fingerprint) -> bool:
        pin = self._pins.get(tool)
        return pin is not None and pin.approved == seen

    def _judge(self) -> None:
        strict = self._policy == "quarantine"
        held_back = frozenset(tool for tool, seen in self._listed.items() if strict and not self._fits(tool, seen))
        if held_back != self._held_back:
            self._held_back = held_back
            self._changed()

    def _say_changed(self, before: Mapping[ToolId, Pin]) -> None:
        """Once a change: what another process has seen, and so has said, is news only where it is held back."""
        changed = {
            tool: seen for tool, seen in self._listed.items() if tool in self._pins and not self._fits(tool, seen)
        }
        strict = self._policy == "quarantine"
        new = [tool for tool, seen in changed.items() if self._said.get(tool) != seen]
        self._said = changed
        new = [tool for tool in new if strict or tool not in before or before[tool].seen != changed[tool]]
        if self._policy == "allow" or not new:
            return
        for tool in new:
            self._events.emit(
                DefinitionChanged(
                    at=self._clock.time(),
                    tool=str(tool),
                    approved=self._pins[tool].approved,
                    seen=changed[tool],
                    held_back=strict,
                )
            )
        LOGGER.warning(
            "The definitions of these tools are not the ones that were approved; they are %s: %s. `pegboard pins` "
            "lists them, `pegboard pins approve` approves them.",
            "held back" if strict else "used all the same",
            named(new),
        )

    def _say_refused(self, *, asked: bool) -> None:
        """Once a tool and outage: nobody has seen it before, and the store cannot be asked."""
        unknown = frozenset() if asked else self._held_back - self._pins.keys()
        if new := unknown - self._refused:
            LOGGER.warning("Until the store of approved definitions answers, new tools are held back: %s.", named(new))
        self._refused = unknown


def named(tools: Iterable[ToolId]) -> str:
    """The first of them by name, and how many more there are.

    >>> named([ToolId("github", "merge"), ToolId("github", "fork")])
    'github/fork, github/merge'
    """
    names = sorted(map(str, tools))
    more = len(names) - NAMED
    return ", ".join(islice(names, NAMED)) + (f" and {more} more" if more > 0 else "")
