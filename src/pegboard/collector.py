"""Python's garbage collector while a program starts and ends: it would look again and again for what is not there."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """Without the collector while modules are imported: what they define stays. It is as before afterwards."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def stop_collecting() -> None:
    """Disable the collector before the process ends: with thousands of ending sessions it would scan everything
    repeatedly, and with every module's objects once more at the very end."""
    gc.disable()
    gc.freeze()
