"""Python's garbage collector, kept from looking again and again for what is not there."""

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


def keep_loaded() -> None:
    """Leave what has been loaded until now, such as modules, out of later collections. It stays anyway, and a full
    collection holds up every thread while it looks through 200,000 objects: for a tenth of a second."""
    gc.freeze()


def stop_collecting() -> None:
    """Disable the collector before the process ends: with thousands of ending sessions it would scan everything
    repeatedly, and with every module's objects once more at the very end."""
    gc.disable()
    gc.freeze()
