"""Imported first by servers that import much: no garbage is collected in their short life, which is a quarter less."""

from __future__ import annotations

import atexit
import gc

gc.disable()
atexit.register(gc.freeze)
