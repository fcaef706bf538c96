"""One fleet of servers behind several endpoints: the whole board, and each toolset."""

from __future__ import annotations

import asyncio
import glob
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial

import mcp_types as types

from pegboard.call_charges import CallCharges
from pegboard.caller_limits import RateLimiter
from pegboard.catalog import Catalog
from pegboard.compose import Parts, build_routing, opened_parts
from pegboard.errors import ConfigError, PegboardError
from pegboard.gateways.key_expiry import warn_of_expiry
from pegboard.gateways.lasting_work import kept_up
from pegboard.gateways.mcp.gateway.clients import client_rows
from pegboard.gateways.mcp.gateway.gateway import Gateway, all_hear
from pegboard.gateways.mcp.gateway.search_queue import SearchQueue
from pegboard.gateways.mcp.gateway.server_finder import ServerFinder
from pegboard.gateways.mcp.gateway.session_changes import SessionBook
from pegboard.gateways.mcp.gateway.toolset_view import ToolsetView
from pegboard.gateways.mcp.gateway.user_boards import UserBoards
from pegboard.gateways.mcp.resources.content_search import ContentSearch
from pegboard.gateways.mcp.tasks.task_ids import TaskIds
from pegboard.gateways.mcp.transport.auth import Access, Holder
from pegboard.gateways.mcp.transport.signed_ids import Signing
from pegboard.gateways.mcp.trust.first_servers import FirstServers
from pegboard.gateways.mcp.trust.server_approvals import ServerApprovals
from pegboard.gateways.mcp.trust.user_approvals import ApprovedTools
from pegboard.library.item_search import ItemStamps, item_search
from pegboard.model import Outcome, ServerName
from pegboard.programs.runner import ProgramRunner, require_sandbox
from pegboard.results.result_shaper import ResultShaper
from pegboard.routing_board import RoutingBoard
from pegboard.settings import Settings
from pegboard.shared_indexes import SharedIndexes
from pegboard.stores import MemorySessions, MemorySigningKeys
from pegboard.trust.pin_reads import ApprovalWatch, GatheredPins
from pegboard.trust.switches import Switches
from pegboard.upstreams import Changes, Fleet, UpstreamLimits
from pegboard.upstreams.extension_requests import AnyNotification
from pegboard.upstreams.oauth.sign_ins import SignIns
from pegboard.upstreams.user_servers import UserServers
from pegboard.usage import Usage

SAVE_SECONDS = 2.0


class NoToolset(ConfigError):  # noqa: N818
    """The address names a toolset that does not exist."""

    http_status = 404

    def __init__(self, name: str, known: Iterable[str]) -> None:
        super().__init__(
            f"There is no toolset {name!r}.",
            remedy=f"Configured toolsets: {', '.join(known) or 'none'}.",
        )


class Host:
    """The servers, started once, and the gateways in front of them. Use it as a context manager."""

    def __init__(self, settings: Settings, parts: Parts) -> None:
        self.settings = self.started_with = settings
        self.configured = settings
        """As the files have them; ``settings`` are those in force."""
        self._by_user = settings.has_users
        _ = settings.audit_log.key  # raises if it is not set
        self.access = Access(settings, clock=parts.clock)
        self.signing = Signing(parts.signing_keys, parts.clock, lasting=settings.session_ttl)
        self.switches = Switches(parts.archive, parts.clock, self._renew_views)
        first = FirstServers(GatheredPins(parts.pins), lambda: self.settings)
        parts = replace(parts, pins=first)
        self._approvals = ServerApprovals(
            first,
            settings.pin_policy,
            settings.scan,
            contents=settings.content_pin_policy,
            events=parts.events,
            clock=parts.clock,
            changed=self._renew_views,
            exempt=lambda tool: self.fleet.is_placeholder(tool),
            switches=self.switches,
            doubts=first.doubts,
        )
        self.approval_watch = ApprovalWatch(first, self._wake_approvals, is_strict=lambda: self._approvals.is_strict)
        self.sign_ins = SignIns(settings, parts.clock, local=settings.is_for_one_person)
        self.fleet = Fleet(
            settings.enabled_servers,
            connect_timeout=settings.connect_timeout,
            call_timeout=settings.call_timeout,
            events=parts.events,
            clock=parts.clock,
            on_change=self._on_change,
            on_news=self._on_notification,
            definitions=parts.definitions,
            lazy=settings.lazy,
            idle_stop=settings.idle_stop,
            limits=UpstreamLimits(
                result=settings.result_limit, entries=settings.list_limit, list_bytes=settings.list_bytes
            ),
            health_timeout=settings.health_timeout,
            admit=self._approvals.admit,
            tracer=parts.tracer,
            sign_ins=self.sign_ins,
        )
        self.parts = parts
        self._usage = Usage(parts.statistics, parts.knowledge.observe, parts.resting.observe)
        self._reported = Usage(parts.statistics, parts.knowledge.observe)
        self._charges = CallCharges(parts.spend, settings.spend, parts.clock)
        self.rates = RateLimiter(parts.rates, settings.rates, parts.clock)
        self.indexes = SharedIndexes()
        self.searches = SearchQueue(settings)
        counter = Catalog.build([]).counter
        self._results = ResultShaper(settings.results, parts.results, counter, events=parts.events, clock=parts.clock)
        self._programs = ProgramRunner(settings.programs)
        self._items = item_search(settings.items)
        self._finder = ServerFinder(lambda: self.settings, parts, counter)
        self._often: tuple[str, ...] = ()
        self._copies: dict[str, tuple[Settings, Settings]] = {}
        """By toolset: the settings, and how the toolset changes them. All users share them."""
        self._gateways: dict[str, Gateway] = {}
        self.users = UserBoards(
            self.fleet,
            parts,
            self._approvals,
            self.switches,
            lambda: self.settings,
            self._new_gateway,
            self.sign_ins.forget,
            self.indexes,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Host]:
        often = await self._usage.most_called(self.settings.often_used, self.settings.enabled_servers)
        self._often = tuple(glob.escape(str(tool)) for tool in often)
        self._check()
        await self.switches.follow()
        await self.signing.renew()
        self.gateway()
        async with self.fleet:
            background = [
                asyncio.create_task(kept_up(work, self.parts.clock, failure)) for work, failure in self._lasting_work()
            ]
            try:
                yield self
            finally:
                for task in background:
                    task.cancel()
                await asyncio.wait(background)
                self.users.close()
                for gateway in self._gateways.values():
                    gateway.close()
                await self._usage.flush()
                await self._reported.flush()
                if self.parts.learner is not None:
                    await self.parts.learner.book.flush()
                await self._charges.close()

    def _lasting_work(self) -> Iterator[tuple[Callable[[], Awaitable[None]], str]]:
        """What runs beside the requests, and what its failure prevents."""
        yield self._usage.run, "Calls could not be counted"
        yield self._reported.run, "Calls of clients could not be counted"
        yield self._charges.run, "Charges for calls could not be settled"
        yield self._approvals.run, "Definitions that servers list could not be recorded"
        yield self.approval_watch.run, "Approvals of other processes could not be read"
        yield self.switches.run, "What is switched off could not be read"
        if self.parts.learner is not None:
            yield self.parts.learner.book.run, "Habits could not be synchronized"
        yield self.parts.retirement.run, "Old records could not be deleted"
        yield self._save_sessions, "Sessions could not be stored"
        yield self.signing.run, "The secrets of session ids could not be renewed"
        yield partial(warn_of_expiry, lambda: self.settings, self.parts.clock), "Keys could not be looked through"
        yield self.users.run, "Connections of idle users could not be ended"

    def gateway(self, toolset: str = "", user: str = "") -> Gateway:
        """The gateway of a toolset; without a name, that of the whole board. Raises NoToolset.

        With a ``user``, as `user_of` says, that user's own; raises TooManyUsers if there is no room for another.
        """
        if user:
            return self.users.gateway(user, toolset)
        if toolset not in self._gateways:
            self._gateways[toolset] = self._new_gateway(toolset, self.fleet, self._approvals)
        return self._gateways[toolset]

    def user_of(self, holder: Holder | None) -> str:
        """Whose gateways a caller uses; empty for those that all share, as no server is connected by user."""
        if holder is None or not self._by_user:
            return ""
        self.sign_ins.present(holder.user, holder.name, holder.token)
        return holder.user

    def serves(self, toolset: str, gateway: Gateway, user: str = "") -> bool:
        """Whether this is the toolset's gateway still."""
        known = self.users.gateways(user) if user else self._gateways
        return known.get(toolset) is gateway

    def _new_gateway(
        self, toolset: str, servers: Fleet | UserServers, approvals: ApprovedTools, user: str = ""
    ) -> Gateway:
        """Raises NoToolset."""
        settings, chosen = self._settings_of(toolset)
        made = Gateway(
            settings,
            self._board(settings, toolset, user),
            servers,
            events=self.parts.events,
            clock=self.parts.clock,
            name=_of_user(toolset, user),
            book=SessionBook(self.parts.sessions, _of_user(toolset, user)),
            observe=self._usage.observe,
            toolset=chosen,
            charges=self._charges,
            audit=self.parts.audit,
            rates=self.rates,
            approvals=approvals,
            upstreams=lambda: [each for each in servers.upstreams if not self.switches.is_server_off(each.server.name)],
            reach=servers.reached,
            task_ids=TaskIds(self.signing),
            results=self._results,
            programs=self._programs,
            finder=self._finder,
            items=self._items,
            searches=self.searches,
        )
        made.view.renew()
        return made

    async def reconfigure(self, settings: Settings) -> Changes:
        """Switch to another configuration: unchanged servers keep running, and sessions continue (M27).

        Raises ConfigError, and changes nothing, for an invalid configuration.
        """
        before, self.settings = self.settings, settings
        try:
            access = Access(settings, clock=self.parts.clock, before=self.access)
            self._check()
            items = item_search(settings.items)
            adopted = [
                (*self._settings_of(name), gateway, self._board(self._settings_of(name)[0], name, user))
                for user, name, gateway in self._every_gateway()
                if not name or name in settings.toolsets
            ]
        except PegboardError:
            self.settings = before
            raise
        self.access, self._items = access, items
        self.sign_ins.follow(settings)
        for user, name, _ in self._every_gateway():
            if name and name not in settings.toolsets:
                (self.users.gateways(user) if user else self._gateways).pop(name).close()
        for of_toolset, chosen, gateway, board in adopted:
            gateway.adopt(of_toolset, board, items, chosen)
        self._charges.adopt(settings.spend)
        self.rates.adopt(settings.rates)
        self.parts.knowledge.half_life = settings.economics.half_life
        self.parts.resting.adopt(settings.breakers.policy)
        self._approvals.adopt(settings.pin_policy, settings.scan, settings.content_pin_policy)
        changes = await self.fleet.apply(settings.enabled_servers)
        self._by_user = settings.has_users
        self.users.follow(settings)
        return changes

    @property
    def item_stamps(self) -> ItemStamps:
        """Of the files of skills and agents, from before they were read."""
        return self._items.stamps

    def open_contents(self) -> ContentSearch | None:
        """What servers offer besides tools; None where callers need a token, or no server is configured."""
        return None if self.access.needed or not self.settings.enabled_servers else self.gateway().contents

    async def review(self) -> None:
        """Take in at once what was approved: otherwise that takes some seconds."""
        await self._approvals.ask()
        self.users.review()

    def _wake_approvals(self) -> None:
        self._approvals.wake()
        self.users.review()

    def count(self, outcome: Outcome) -> None:
        """Count a call that a client executed and reported. It opens no breaker: one client's word would hide a server
        from all others."""
        self._reported.observe(outcome)

    def scope_of(self, toolset: str) -> str | None:
        """The scope that a token needs for a toolset, if tokens are required."""
        return self.settings.toolsets[toolset].scope if toolset in self.settings.toolsets else None

    def _check(self) -> None:
        """Raises ConfigError for invalid client rows and toolsets, before they are first used, and for programs without
        their sandbox."""
        if self.settings.programs.mode != "off":
            require_sandbox()
        client_rows(self.settings.clients)
        for toolset in self.settings.toolsets:
            self._settings_of(toolset)

    def _settings_of(self, toolset: str) -> tuple[Settings, ToolsetView | None]:
        """The settings as the toolset changes them, and the toolset. Raises ConfigError for an invalid one."""
        settings, chosen, changes = self.settings, None, {}
        always = settings.always_available
        if toolset:
            if toolset not in settings.toolsets:
                raise NoToolset(toolset, settings.toolsets)
            own = settings.toolsets[toolset]
            chosen = ToolsetView.of(toolset, own)
            always = always if own.always_available is None else own.always_available
            changes = {"exposure": own.exposure} if own.exposure else {}
        known, changed = self._copies.get(toolset, (None, settings))
        if known is not settings:
            changed = settings.model_copy(update=changes | {"always_available": (*always, *self._often)})
            self._copies[toolset] = settings, changed
        return changed, chosen

    def _board(self, settings: Settings, toolset: str, user: str = "") -> RoutingBoard:
        empty, name = Catalog.build([]), _of_user(toolset, user)
        return build_routing(
            settings,
            empty,
            parts=self.parts,
            patient=False,
            name=name,
            connections=self.fleet.connections,
            shared=self.indexes,
        )

    def _every_gateway(self) -> list[tuple[str, str, Gateway]]:
        """With the user and the toolset of each."""
        shared = [("", name, gateway) for name, gateway in self._gateways.items()]
        return shared + self.users.every_gateway()

    async def _save_sessions(self) -> None:
        """Store changes of sessions that could not be stored while the store was down."""
        while True:
            await asyncio.sleep(SAVE_SECONDS)
            for _, _, gateway in self._every_gateway():
                await gateway.book.save_unsaved()

    async def _on_change(self) -> None:
        await self._approvals.see(self.fleet.listed())
        self._renew_views()

    async def _on_notification(self, server: ServerName, message: types.ServerNotification | AnyNotification) -> None:
        await all_hear([gateway for _, _, gateway in self._every_gateway()], server, message)

    def _renew_views(self) -> None:
        for gateway in self._gateways.values():
            gateway.renew()
        self.users.renew()


def _of_user(toolset: str, user: str) -> str:
    """What a gateway calls its sessions and vectors: no user's are another's."""
    return f"{toolset}@{user}" if user else toolset


@asynccontextmanager
async def open_host(settings: Settings, parts: Parts | None = None) -> AsyncIterator[Host]:
    """A host with its servers started; it ends them at exit. Parts that are passed in stay open."""
    async with AsyncExitStack() as stack:
        own = await stack.enter_async_context(opened_parts(settings)) if parts is None else parts
        yield await stack.enter_async_context(Host(settings, own).running())


@asynccontextmanager
async def open_gateway(settings: Settings, parts: Parts | None = None) -> AsyncIterator[Gateway]:
    """A gateway for one client, with its servers started; it ends them, and the session, at exit."""
    async with AsyncExitStack() as stack:
        own = await stack.enter_async_context(opened_parts(settings)) if parts is None else parts
        own = replace(own, sessions=MemorySessions(own.clock), signing_keys=MemorySigningKeys(), replicas=None)
        yield (await stack.enter_async_context(open_host(settings, own))).gateway()
