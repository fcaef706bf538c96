"""What a forked process must not use: its parent's threads, connections and locks are only there as copies."""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Protocol


class Forgets(Protocol):
    def forget(self) -> object:
        """Begin anew; returns all that is the parent's."""
        ...


_living: weakref.WeakSet[Forgets] = weakref.WeakSet()


def forgets_at_fork(owner: Forgets) -> None:
    """In each process that is forked from now on, ``owner`` begins anew before anything else runs there."""
    _living.add(owner)


def _begin_anew() -> None:
    for owner in list(_living):
        _keep_for_ever(owner.forget())


def _keep_for_ever(theirs: object) -> None:
    """Never finalised: the copy of a connection, closed here, would end the parent's server or its transaction."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(theirs))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
