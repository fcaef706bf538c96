"""Reads each tool object once: some frameworks build a schema anew whenever it is asked for."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pegboard.library.framework_tools import FrameworkTool

Read = Callable[[Any], FrameworkTool | None]
"""Reads a framework's tool; None for a hosted one, which has no schema to rank."""


def remembered(read: Read) -> Read:
    """The same, with a memory as long as the tool lives. A tool must not change its name, description or schema. What
    cannot be referred to weakly, such as a dictionary, is read each time.

    >>> class Tide: ...
    >>> tide, times = Tide(), []
    >>> reading = remembered(lambda tool: times.append(tool))
    >>> reading(tide), reading(tide), len(times)
    (None, None, 1)
    """
    known: dict[int, tuple[weakref.ref[Any], FrameworkTool | None]] = {}

    def reading(tool: Any) -> FrameworkTool | None:
        place = id(tool)
        found = known.get(place)
        if found is not None and found[0]() is tool:
            return found[1]
        fresh = read(tool)
        with suppress(TypeError):
            known[place] = weakref.ref(tool, lambda _: known.pop(place, None)), fresh
        return fresh

    return reading
