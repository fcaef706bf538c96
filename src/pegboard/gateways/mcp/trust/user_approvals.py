"""Approved definitions as one user sees them: those of shared servers, and those of the user's own connections."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from pegboard.catalog import Catalog
from pegboard.gateways.mcp.trust.content_pins import ContentPins
from pegboard.gateways.mcp.trust.server_approvals import ServerApprovals
from pegboard.model import Fingerprint, Pin, ToolId, Wording
from pegboard.protocols import NO_TEXTS, Pins
from pegboard.trust.every_user import MARK, own_pin, shared_pin

T = TypeVar("T")


class ApprovedTools(Protocol):
    """What a gateway asks of approvals."""

    @property
    def contents(self) -> ContentPins: ...

    def admitted(self, catalog: Catalog) -> Catalog:
        """The catalog without what is held back."""
        ...

    def is_new(self, tool: ToolId) -> bool: ...

    def check(self, tool: ToolId) -> None:
        """Raises NotApproved for a tool that is held back, and SwitchedOff."""
        ...

    async def admit(self, tool: ToolId) -> None:
        """As `check`, after the store's first answer about the tool."""
        ...

    async def settled(self, timeout: float) -> None: ...


class UserApprovals:
    """``shared`` for all servers but those that are the user's ``own``. A definition that one user is listed is no
    change of the one that another is."""

    def __init__(self, shared: ServerApprovals, own: ServerApprovals, is_own: Callable[[str], bool]) -> None:
        self._shared = shared
        self._own = own
        self._is_own = is_own

    @property
    def contents(self) -> ContentPins:
        return self._own.contents

    def admitted(self, catalog: Catalog) -> Catalog:
        if not self._shared.is_strict:
            return catalog
        parts = {own: self._of(own).admitted(self._part(catalog, own)) for own in (False, True)}
        groups = [
            (parts[self._is_own(name)].servers[name], parts[self._is_own(name)].of_server(name))
            for name in catalog.servers
            if name in parts[self._is_own(name)].servers
        ]
        return Catalog.build(groups, counter=catalog.counter)

    def is_new(self, tool: ToolId) -> bool:
        return self._of(self._is_own(tool.server)).is_new(tool)

    def check(self, tool: ToolId) -> None:
        self._of(self._is_own(tool.server)).check(tool)

    async def admit(self, tool: ToolId) -> None:
        await self._of(self._is_own(tool.server)).admit(tool)

    async def settled(self, timeout: float) -> None:
        await self._shared.settled(timeout)
        await self._own.settled(timeout)

    def _of(self, own: bool) -> ServerApprovals:
        return self._own if own else self._shared

    def _part(self, catalog: Catalog, own: bool) -> Catalog:
        names = [name for name in catalog.servers if self._is_own(name) is own]
        return Catalog.build([(catalog.servers[name], catalog.of_server(name)) for name in names])


class UserPins:
    """Pins in which the user's ``own`` servers have names of their own, `SERVER@USER`. A definition that was approved
    for every user is approved for this one once it is listed to them."""

    def __init__(self, store: Pins, user: str, is_own: Callable[[str], bool]) -> None:
        self._store = store
        self._user = user
        self._is_own = is_own

    async def get(self, tools: Sequence[ToolId] | None = None) -> Mapping[ToolId, Pin]:
        found = await self._store.get(None if tools is None else [self.key(each) for each in tools])
        return await self._approved_for_all(self._named(found, tools or ()))

    async def put(
        self,
        seen: Mapping[ToolId, Fingerprint],
        *,
        texts: Mapping[ToolId, str] = NO_TEXTS,
        doubted: Collection[ToolId] = (),
    ) -> Mapping[ToolId, Pin]:
        found = await self._store.put(
            self._keyed(seen), texts=self._keyed(texts), doubted=[self.key(each) for each in doubted]
        )
        return await self._approved_for_all(self._named(found, seen))

    async def _approved_for_all(self, pins: dict[ToolId, Pin]) -> Mapping[ToolId, Pin]:
        changed = {tool: pin.seen for tool, pin in pins.items() if pin.changed and self._is_own(tool.server)}
        if not changed:
            return pins
        shared = await self._store.get([shared_pin(tool) for tool in changed])
        approved = {
            tool: seen
            for tool, seen in changed.items()
            if shared_pin(tool) in shared and shared[shared_pin(tool)].approved == seen
        }
        if approved:
            await self.approve(approved)
        return pins | {tool: Pin(approved=seen, seen=seen) for tool, seen in approved.items()}

    async def approve(self, tools: Mapping[ToolId, Fingerprint]) -> None:
        await self._store.approve(self._keyed(tools))

    async def wordings(self, tools: Sequence[ToolId]) -> Mapping[ToolId, Wording]:
        return self._named(await self._store.wordings([self.key(each) for each in tools]), tools)

    async def version(self) -> int:
        return await self._store.version()

    def key(self, tool: ToolId) -> ToolId:
        return own_pin(tool, self._user) if self._is_own(tool.server) else tool

    def _keyed(self, by_tool: Mapping[ToolId, T]) -> dict[ToolId, T]:
        return {self.key(tool): each for tool, each in by_tool.items()}

    def _named(self, by_key: Mapping[ToolId, T], tools: Iterable[ToolId]) -> dict[ToolId, T]:
        """By the tools' own names: these ``tools`` themselves, which are in memory anyway."""
        own = {self.key(tool): tool for tool in tools}
        return {
            own.get(key) or ToolId(key.server.removesuffix(f"{MARK}{self._user}"), key.name): each
            for key, each in by_key.items()
            if not self._is_own(key.server)
        }
