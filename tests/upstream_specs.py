"""Specs of servers for tests: a scripted one, and lines of Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemoryEvents
from pegboard.testing import FakeClock
from pegboard.upstreams import Fleet

SCRIPTED = str(Path(__file__).parent / "servers" / "scripted.py")


def scripted(name: str = "scripted", **fields: Any) -> ServerSpec:
    return ServerSpec(name=name, command=sys.executable, args=(SCRIPTED,), **fields)


def python(name: str, code: str, **fields: Any) -> ServerSpec:
    """A server that is a line of Python."""
    return ServerSpec(name=name, command=sys.executable, args=("-c", code), **fields)


@pytest.fixture
def fleet_of(events: MemoryEvents, clock: FakeClock) -> Callable[..., Fleet]:
    """A fleet of these servers, with times short enough for a test and long enough for a busy machine."""

    def make(*specs: ServerSpec, **options: Any) -> Fleet:
        defaults: dict[str, Any] = {"connect_timeout": 60.0, "call_timeout": 60.0, "events": events, "clock": clock}
        return Fleet({spec.name: spec for spec in specs}, **(defaults | options))

    return make
