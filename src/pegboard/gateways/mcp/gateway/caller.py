"""The client behind a request, and the context of one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from mcp.shared.dispatcher import ProgressFnT

from pegboard.caller_limits import ANYONE, LimitedCaller
from pegboard.gateways.mcp.gateway.clients import ClientKind
from pegboard.gateways.mcp.transport.auth import Holder
from pegboard.habits import habits_of
from pegboard.model import JsonObject
from pegboard.settings import Exposure
from pegboard.settings.result_settings import ResultForm

Notify = Callable[[], Awaitable[None]]
"""Notifies a client that its list of tools changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A client, as its connection identifies it.

    ``session`` is the key of its conversation; without one, nothing is kept between its requests. ``modern`` is
    revision 2026-07-28, whose lists may not depend on earlier requests. ``exposure`` is what the connection asked for;
    it overrides the client's own. ``holder`` is the holder of the token it presented, if tokens are required.
    ``apps`` is whether it shows interfaces of tools (MCP Apps). ``results`` is the form of results that its connection
    asks for.
    """

    session: str | None = None
    kind: ClientKind = field(default_factory=ClientKind)
    modern: bool = False
    exposure: Exposure | None = None
    holder: Holder | None = None
    apps: bool = False
    results: ResultForm | None = None

    @property
    def limited(self) -> LimitedCaller:
        """Who is counted by limits."""
        return ANYONE if self.holder is None else self.holder.limited

    @property
    def name(self) -> str:
        """The name of its token; empty without one."""
        return "" if self.holder is None else self.holder.name

    @property
    def queue(self) -> str:
        """Whose searches wait for each other: those of a tenant, of a token or of a session."""
        return self.limited.tenant or self.limited.name or self.session or ""

    @property
    def habits(self) -> str:
        """Whose use teaches the searches: the token's name, or everybody without one."""
        return habits_of("" if self.holder is None else self.holder.name, "mcp")

    @property
    def conversation(self) -> str:
        """What tells this client's searches from those of others: its session, else its token."""
        return self.session or self.habits


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """One request: the caller, its own `_meta` keys, and the callbacks that reach it while the request is open."""

    caller: Caller = field(default_factory=Caller)
    meta: JsonObject | None = None
    progress: ProgressFnT | None = None
    notify: Notify | None = None
