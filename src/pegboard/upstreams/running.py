"""A server that runs in a task of its own."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import anyio

from pegboard.upstreams.upstream import Upstream


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Running:
    """A server with the scope that ends it, and the news that nothing of it is left."""

    upstream: Upstream
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
