"""Approved definitions, and what happens to others (M28). Rights fail closed, with or without a store.

The definitions that a server lists at first count as approved, except for suspicious ones under the policy `quarantine`
for scans (M29). Calls need only what is in memory: no call waits for the store, unless the tool is held back and the
store has yet to answer about what was listed last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from pegboard.catalog import Catalog
from pegboard.empty_sets import EMPTY, frozen
from pegboard.errors import HeldBack, NotApproved, PegboardError, SwitchedOff
from pegboard.flags import Flag
from pegboard.model import NEVER, Fingerprint, Pin, Server, Tool, ToolId
from pegboard.protocols import Clock, EventSink, Pins
from pegboard.settings.storage import PinPolicy, ScanPolicy
from pegboard.store_health import StoreHealth
from pegboard.trust import crowds, only_order
from pegboard.trust.approval_notices import ApprovalNotices
from pegboard.trust.fingerprints import ScannedDefinition, ScannedDefinitions, text_of, texts_of
from pegboard.trust.switches import Switches
from pegboard.trust.tool_keys import KeyedPins, tool_key

RETRY_SECONDS = 1.0
"""Seconds between retries, while the store does not know everything that is listed."""
QUIET_SECONDS = 1.0
"""Seconds without a new list after which all tools are compared with each other."""
FIRST_ANSWER_SECONDS = 10.0
"""Seconds for which a call waits for the store's first answer about a tool, at most."""


class Approvals:
    """The approval state of all definitions that are listed in one place: by the servers of a gateway or of a board, or
    as a board's own tools.

    ``changed`` is called when the set of held-back tools changes. Tools are held back under `quarantine`, and if the
    ``switches`` of operators are off; those that are ``exempt`` are ours. ``pinned_as`` says by which id the pin of a
    tool goes. Under `quarantine`, a server that is seen for the first time is not approved by that if one ``doubts``
    it, by its name.
    """

    def __init__(
        self,
        store: Pins,
        policy: PinPolicy,
        scanning: ScanPolicy = "off",
        *,
        events: EventSink,
        clock: Clock,
        changed: Callable[[], None],
        exempt: Callable[[ToolId], bool] = lambda tool: False,
        switches: Switches | None = None,
        pinned_as: Callable[[ToolId], ToolId] = lambda tool: tool,
        doubts: Callable[[str], bool] = lambda server: False,
    ) -> None:
        self._store = KeyedPins(store)
        self._policy = policy
        self._scanning = scanning
        self._notices = ApprovalNotices(events, clock)
        self._switches = switches
        self._pinned_as = pinned_as
        self._doubts = doubts
        self._changed = changed
        self._exempt = exempt
        self._catalog = self._taken = self._watched = Catalog.build([])
        self._definitions = ScannedDefinitions()
        self._listed: Mapping[ToolId, ScannedDefinition] = {}
        self._pins: dict[ToolId, Pin] = {}
        self._noted: dict[ToolId, Fingerprint] = {}
        self._compared: dict[ToolId, tuple[Fingerprint, Fingerprint, bool]] = {}
        """By tool: the approved and the seen fingerprint, and whether they differ only in the order of listed
        values."""
        self._held_back: frozenset[ToolId] = EMPTY
        self._outdated = True
        """Whether the store may know approvals that are not known here."""
        self._asking = asyncio.Lock()
        self._wanted = Flag()
        self._settled = Flag()
        self._tried = Flag()
        """As `_settled`, but set by a failure only if it was not the first: one is often over when the store is asked
        again."""
        self._health = StoreHealth("Approved definitions cannot be read")

    def adopt(self, policy: PinPolicy, scanning: ScanPolicy = "off") -> None:
        """Use these policies from now on."""
        self._policy, self._scanning = policy, scanning
        self._notices.reset()
        self._take()
        self._judge()
        self._report(self._pins)
        self.wake()

    def admitted(self, catalog: Catalog) -> Catalog:
        """The catalog without held-back tools and without servers' unapproved texts about themselves, in the same
        order."""
        if not self.is_strict:
            return catalog
        groups = [
            (self._introduced(server), [tool for tool in catalog.of_server(name) if self._admits(tool)])
            for name, server in catalog.servers.items()
            if self._switches is None or not self._switches.is_server_off(name)
        ]
        return Catalog.build(groups, counter=catalog.counter)

    def is_new(self, tool: ToolId) -> bool:
        """Whether no definition of the tool was ever approved, as far as is known."""
        pin = self._pins.get(tool)
        return pin is None or pin.new

    def check(self, tool: ToolId) -> None:
        """Raises NotApproved for a tool that is held back, and SwitchedOff."""
        if self.is_off(tool, lambda: self._definition_of(tool)):
            raise SwitchedOff(str(tool))
        if tool in self._held_back:
            raise NotApproved(str(tool), self._why(tool), pin=str(tool_key(tool)))

    async def admit(self, tool: ToolId) -> None:
        """As `check`, but the store's answer is waited for if something was listed a moment ago: the second one, if it
        failed at first."""
        if tool in self._held_back:
            await self._wait(self._tried, FIRST_ANSWER_SECONDS)
        self.check(tool)

    async def see(self, catalog: Catalog) -> None:
        """Take in what the servers list now. Known approvals apply at once; the store is asked if that matters."""
        self._catalog = catalog
        if self._strict:
            self._take()
            if self._unnoted:
                self._settled.clear()
                self._tried.clear()
            self._judge()  # before the first await: a call may be waiting for this very server
        try:
            if self._strict and self._unnoted:
                await self.ask()
        finally:  # also if the server that is listed goes meanwhile, and this with it
            self._wanted.set()

    def wake(self) -> None:
        """Something may have been approved: ask the store in the next moment."""
        self._outdated = True
        self._wanted.set()

    async def settled(self, timeout: float) -> None:
        """Wait until the store has been asked about everything that is listed, or has failed."""
        await self._wait(self._settled, timeout)

    async def _wait(self, flag: Flag, timeout: float) -> None:
        if self._strict and self._listed and not flag.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(flag.wait(), timeout)

    async def run(self) -> None:
        """Record in the store what is listed, and read what it knows whenever that may be more, until cancelled."""
        while True:
            self._wanted.clear()
            if self._is_behind:
                await self.ask()
            try:
                async with asyncio.timeout(self._patience):
                    await self._wanted.wait()  # `wait_for` would miss a cancellation that arrives with the event
            except TimeoutError:
                await self.watch_crowds()

    @property
    def _patience(self) -> float | None:
        """Seconds until there is something to do though nobody wakes: tools are compared with each other once the last
        server has listed its own, not with each server of a fleet that starts."""
        if self._is_behind:
            return RETRY_SECONDS
        return QUIET_SECONDS if self._taken is not self._watched and self._scanning != "off" else None

    async def ask(self) -> None:
        """Record what is new in the store, and apply its answer. If it fails, its last answer stays in effect."""
        async with self._asking:
            if self._catalog is not self._taken:
                await asyncio.to_thread(self._definitions.look, self._catalog)
                self._take()
            try:
                self._outdated = False
                asked_for = frozenset(self._listed)
                before = await self._store.get(list(asked_for))
                self._learn(before)
                self._note_again(before)
                await self._compare()
                await self._scan()
                noted = {
                    tool: seen
                    for tool, seen in self._unnoted.items()
                    if tool in asked_for
                    and not self._is_unscanned(tool)  # definitions that were listed meanwhile come first
                }
                now = await self._note(noted, before)
            except PegboardError as error:
                first = self._health.began(error)
                self._outdated = True
                before = self._pins
                asked = False
            except BaseException:  # whoever is cancelled does not take with it what the others wait for
                self._outdated = True
                self._wanted.set()
                raise
            else:
                first = False
                self._health.ended()
                self._noted = {tool: seen for tool, seen in self._noted.items() if tool in self._listed} | noted
                self._pins |= now
                asked = True
            self._judge()
            self._report(before)
            self._notices.unknown(EMPTY if asked else self._held_back - self._pins.keys())
            if not asked or not self._unnoted:
                self._settled.set()
                if not first:
                    self._tried.set()

    def _learn(self, pins: Mapping[ToolId, Pin]) -> None:
        """What the store knows already holds at once, not only when what is new is recorded as well."""
        if news := {tool: pin for tool, pin in pins.items() if self._pins.get(tool) != pin}:
            self._pins |= news
            self._judge()

    def _note_again(self, pins: Mapping[ToolId, Pin]) -> None:
        """What is held back here is to be recorded anew if another process has recorded another definition since: an
        operator is shown, and approves, the one that was recorded last."""
        self._noted = {
            tool: seen
            for tool, seen in self._noted.items()
            if tool not in self._held_back or tool not in pins or pins[tool].seen == seen
        }

    async def watch_crowds(self) -> None:
        """Compare all tools with each other, if there are new ones."""
        if self._scanning != "off" and self._taken is not self._watched:
            self._watched = self._taken
            self._notices.crowded(await asyncio.to_thread(crowds, self._watched.tools))

    async def _compare(self) -> None:
        """Find the tools that differ from the approved text only in the order of listed values."""
        self._compared = {tool: each for tool, each in self._compared.items() if tool in self._listed}
        changed = [
            tool
            for tool, seen in self._listed.items()
            if tool.name and not self._fits(tool, seen) and self._is_uncompared(tool, seen.fingerprint)
        ]
        if not changed:
            return
        listed, catalog = self._listed, self._taken  # others may be listed meanwhile
        approved = await self._store.wordings(changed)
        for tool in changed:
            said, now = approved[tool].approved if tool in approved else None, text_of(tool, catalog)
            same = said is not None and now is not None and only_order(said, now)
            self._compared[tool] = (self._pins[tool].approved, listed[tool].fingerprint, same)

    def _is_uncompared(self, tool: ToolId, seen: Fingerprint) -> bool:
        pin = self._pins.get(tool)
        return pin is not None and not pin.new and self._compared.get(tool, ())[:2] != (pin.approved, seen)

    async def _note(self, seen: Mapping[ToolId, Fingerprint], before: Mapping[ToolId, Pin]) -> dict[ToolId, Pin]:
        """Record in the store what was seen. A server has a pin of its own, which is written after those of its
        tools."""
        known = {tool.server for tool in (*before, *self._pins) if tool == tool.whole}
        doubted = {
            tool
            for tool in seen.keys() - before.keys()
            if tool in self._pins
            or tool.server in known
            or (self._policy == "quarantine" and self._doubts(tool.server))
            or (self._scanning == "quarantine" and self._suspects(tool))
        }
        texts = await asyncio.to_thread(texts_of, seen, self._taken)
        pins: dict[ToolId, Pin] = {}
        for whole in (False, True):
            some = {tool: each for tool, each in seen.items() if (tool == tool.whole) is whole}
            if some:
                pins |= await self._store.put(some, texts=texts, doubted=doubted)
        return pins

    @property
    def is_strict(self) -> bool:
        """Whether any definition can be held back."""
        return self._strict or (self._switches is not None and bool(self._switches.records))

    @property
    def _strict(self) -> bool:
        return "quarantine" in (self._policy, self._scanning)

    @property
    def _is_behind(self) -> bool:
        """Whether the store is to be asked: about what is listed, or, if that could hold tools back, for approvals."""
        return bool(self._unnoted) or self._catalog is not self._taken or (self._strict and self._outdated)

    @property
    def _unnoted(self) -> dict[ToolId, Fingerprint]:
        """Listed definitions that this process has not recorded in the store."""
        return {
            tool: each.fingerprint for tool, each in self._listed.items() if self._noted.get(tool) != each.fingerprint
        }

    async def _scan(self) -> None:
        """Scan the definitions that are not approved. Those in the store were scanned when they were first seen."""
        unscanned = {tool for tool in self._listed if self._is_unscanned(tool)}
        if unscanned:
            await asyncio.to_thread(self._definitions.scan, self._taken, unscanned)
            self._take()

    def _is_unscanned(self, tool: ToolId) -> bool:
        seen = self._listed[tool]
        return self._scanning != "off" and seen.verdict is None and not self._fits(tool, seen)

    def _take(self) -> None:
        """Use the latest scan results of what is listed."""
        self._listed = self._definitions.taken(self._catalog)
        self._taken = self._catalog

    def _introduced(self, server: Server) -> Server:
        whole, seen = ToolId(server.name, ""), self._definitions.of_server(server)
        if not self._holds(whole, seen) and not self.is_off(whole, lambda: seen.fingerprint):
            return server
        own = server.description == server.title
        return replace(server, instructions="", title="", description="" if own else server.description)

    def _admits(self, tool: Tool) -> bool:
        if self.is_off(tool.id, lambda: self._definitions.of(tool).fingerprint):
            return False
        return not self._strict or self._exempt(tool.id) or not self._holds(tool.id, self._definitions.of(tool))

    def is_off(self, tool: ToolId, definition: Callable[[], Fingerprint]) -> bool:
        """Whether an operator has switched the tool off, for all or as it is pinned."""
        if self._switches is None or not self._switches.records:
            return False
        pin = tool_key(tool)
        return any(self._switches.is_off(name, definition) for name in {tool, pin, self._pinned_as(pin)})

    def is_item_off(self, pin: ToolId, definition: Fingerprint) -> bool:
        """Whether an operator has rejected a prompt, resource or skill, or switched its server off. A switch of the
        same name is that of a tool."""
        switches = self._switches
        return switches is not None and any(
            switches.is_server_off(name.server) or switches.is_rejected(name, definition)
            for name in {pin, self._pinned_as(pin)}
        )

    def _definition_of(self, tool: ToolId) -> Fingerprint:
        return self._definitions.of(self._catalog[tool]).fingerprint if tool in self._catalog else NEVER

    def _holds(self, tool: ToolId, seen: ScannedDefinition) -> bool:
        if self._fits(tool, seen):
            return False
        if self._policy == "quarantine":
            return True
        return self._scanning == "quarantine" and (seen.verdict is None or seen.verdict.suspicious)

    def _fits(self, tool: ToolId, seen: ScannedDefinition) -> bool:
        pin = self._pins.get(tool)
        return pin is not None and (
            pin.approved == seen.fingerprint
            or self._compared.get(tool) == (pin.approved, seen.fingerprint, True)  # it may be approved between the two
        )

    def _suspects(self, tool: ToolId) -> bool:
        verdict = self._listed[tool].verdict if tool in self._listed else None
        return verdict is not None and verdict.suspicious

    def _why(self, tool: ToolId) -> HeldBack:
        pin = self._pins.get(tool)
        if pin is None:
            return "unknown" if self._health.failing else "pending"
        if self._suspects(tool):
            return "suspicious"
        return "new" if pin.new else "changed"

    def _judge(self) -> None:
        held_back = frozen(tool for tool, seen in self._listed.items() if self._holds(tool, seen))
        if held_back != self._held_back:
            self._held_back = held_back
            self._changed()

    def _report(self, before: Mapping[ToolId, Pin]) -> None:
        """Issue the notices. ``before`` are the pins as they were before this process recorded what it saw."""
        unfit = {tool: seen for tool, seen in self._listed.items() if not self._fits(tool, seen)}
        changed = {tool: seen.fingerprint for tool, seen in unfit.items() if tool in self._pins}
        reordered = {tool: now for tool, (_, now, same) in self._compared.items() if same and tool not in unfit}
        self._notices.reordered(reordered, self._pins)
        self._notices.changed(changed, self._pins, before, self._held_back, aloud=self._policy != "allow")
        suspected = unfit if self._scanning == "quarantine" else self._listed
        self._notices.suspected({tool: suspected[tool] for tool in suspected if self._suspects(tool)}, self._held_back)
