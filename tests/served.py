"""A gateway that serves in the test's own process: tests/gateways/conftest.py makes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import httpx2

from pegboard.gateways.drain import DrainableServer


@dataclass
class Gateway:
    """A gateway that serves, and a client of it."""

    server: DrainableServer
    http: httpx2.AsyncClient
    ending: asyncio.Task[None]


OpenGateway = Callable[..., AbstractAsyncContextManager[Gateway]]
