"""`functools.cached_property`, computed once for each instance, whichever threads ask.

That of Python 3.11 holds one lock for all instances of its class: while a thread reads ten thousand tools into an
index, every other board that needs an index waits, and so does the event loop. That of Python 3.12 has no lock, so that
two threads compute the same value twice.
"""

from __future__ import annotations

import functools
from threading import RLock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property  # checkers of types know this one
else:

    class cached_property(functools.cached_property):  # noqa: N801  # as the one that it replaces
        """
        >>> class Board:
        ...     @cached_property
        ...     def tools(self) -> list[str]:
        ...         return ["read"]
        >>> board = Board()
        >>> board.tools is board.tools
        True
        """

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            known, name = instance.__dict__, self.attrname
            computing = f"{name} is computed"
            with known.setdefault(computing, RLock()):
                if name not in known:
                    known[name] = self.func(instance)
            known.pop(computing, None)
            return known[name]
