"""The event loop of the gateways."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


def run(work: Coroutine[Any, Any, None]) -> None:
    """Runs it to its end, on uvloop where that is installed (the extra `fast`)."""
    with asyncio.Runner(loop_factory=_fastest_loop()) as runner:
        runner.run(work)


def _fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop
