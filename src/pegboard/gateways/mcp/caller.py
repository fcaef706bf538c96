"""Who is at the other end of a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from mcp.shared.dispatcher import ProgressFnT

from pegboard.gateways.mcp.access import Holder
from pegboard.gateways.mcp.clients import ClientKind
from pegboard.model import JsonObject
from pegboard.settings import Exposure

Notify = Callable[[], Awaitable[None]]
"""Tells a client that its list of tools changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A client, as its connection shows it.

    ``session`` is the key of its conversation; without one, nothing is kept from one of its requests to the next.
    ``modern`` is revision 2026-07-28, whose lists may not depend on what was asked before. ``exposure`` is what the
    connection asked for, whatever its client is. ``holder`` is whose token it showed, where tokens are needed.
    """

    session: str | None = None
    kind: ClientKind = field(default_factory=ClientKind)
    modern: bool = False
    exposure: Exposure | None = None
    holder: Holder | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request: who asked, with which `_meta` of its own, and the ways back to it while it lasts."""

    caller: Caller = field(default_factory=Caller)
    meta: JsonObject | None = None
    progress: ProgressFnT | None = None
    notify: Notify | None = None
