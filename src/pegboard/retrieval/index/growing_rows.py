"""Rows of vectors that grow at their end without being copied."""

from __future__ import annotations

import numpy as np

from pegboard.model import Floats

SPARE = 16
"""One row of so many is free after a copy; memory that was never written takes none."""


class GrowingRows:
    """The rows of one snapshot, shape (n, d), and room for those that the next ones add. Written rows never change.

    >>> first = GrowingRows(np.zeros((2, 3), np.float32))
    >>> more = first.extended(np.ones((1, 3), np.float32))
    >>> first.rows.shape, more.rows.shape
    ((2, 3), (3, 3))
    """

    def __init__(self, rows: Floats) -> None:
        self.rows = rows
        self._room: _Room = _Room(rows, len(rows))

    def extended(self, more: Floats) -> GrowingRows:
        """These rows and then others; a copy only if there is no room, or others were added to these before."""
        length, total, room = len(self.rows), len(self.rows) + len(more), self._room
        if room.used != length or total > len(room.buffer):
            buffer = np.empty((total + total // SPARE, self.rows.shape[1]), np.float32)
            buffer[:length] = self.rows
            room = _Room(buffer, length)
        room.buffer[length:total] = more
        room.used = total
        other = GrowingRows(room.buffer[:total])
        other._room = room
        return other


class _Room:
    """Memory that snapshots share, and how many rows of it are written."""

    def __init__(self, buffer: Floats, used: int) -> None:
        self.buffer = buffer
        self.used = used
