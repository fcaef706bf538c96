"""A process that writes the activity of a busy gateway, whose interpreter lock requests need (decision 34).

entries ─► MessagePack in a pipe ─► `python -m pegboard.stores.sqlite.activity_process` ─► the file; a byte comes back
"""

from __future__ import annotations

import struct
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from pegboard import operating_system
from pegboard.activity_entries import ActivityEntry
from pegboard.extras import required

PROGRAM = "pegboard.stores.sqlite.activity_process"
HEADER = struct.Struct(">I")
STORED, REFUSED = b"\1", b"\0"
LONGEST = 60.0
"""Seconds of one batch, after which the process is ended."""
PAUSE = 60.0
"""Seconds without a process after one failed."""
ENDING = 5.0


class ActivityWriter:
    """One process for a file, which starts on first use. Its failure loses nothing: the caller writes by itself then.

    Safe from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._end: weakref.finalize | None = None  # type: ignore[type-arg]
        self._not_before = 0.0

    @property
    def runs(self) -> bool:
        return self._process is not None

    def put(self, entries: Sequence[ActivityEntry], known: Collection[str] = ()) -> bool:
        """Whether the entries are stored now, as `SqliteActivity.put` does."""
        with self._lock:
            if time.monotonic() < self._not_before:
                return False
            try:
                return self._asked(required("msgspec", "mcp").msgpack.encode((entries, list(known)))) == STORED
            except (UnicodeEncodeError, OverflowError):  # the caller finds out which entry it is
                return False
            except OSError:
                self._not_before = time.monotonic() + PAUSE
                self._stop()
                return False

    def close(self) -> None:
        with self._lock:
            self._stop()

    def _asked(self, batch: bytes) -> bytes:
        """What the process answers. Raises OSError if it does not."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", PROGRAM, str(self._path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                **operating_system.apart_from_signals(),
            )
            self._end = weakref.finalize(self, _ended, self._process)
        questions, answers = cast("BinaryIO", self._process.stdin), cast("BinaryIO", self._process.stdout)
        late = threading.Timer(LONGEST, self._process.kill)
        late.start()
        try:
            write(questions, batch)
            answer = answers.read(1)
        finally:
            late.cancel()
        if not answer:
            raise BrokenPipeError
        return answer

    def _stop(self) -> None:
        if self._end is not None:
            self._end()
        self._process = None


def write(stream: BinaryIO, batch: bytes) -> None:
    stream.write(HEADER.pack(len(batch)) + batch)
    stream.flush()


def read(stream: BinaryIO) -> bytes | None:
    """The next batch; None at the end, also within a batch.

    >>> import io
    >>> stream = io.BytesIO()
    >>> write(stream, b"some"), stream.seek(0), read(stream), read(stream)
    (None, 0, b'some', None)
    """
    head = stream.read(HEADER.size)
    if len(head) < HEADER.size:
        return None
    [size] = HEADER.unpack(head)
    batch = stream.read(size)
    return batch if len(batch) == size else None


def _ended(process: subprocess.Popen[bytes]) -> None:
    """End the process, which finishes the batch that it has."""
    try:
        process.communicate(timeout=ENDING)
    except (subprocess.TimeoutExpired, OSError, ValueError):
        process.kill()
        process.communicate()
