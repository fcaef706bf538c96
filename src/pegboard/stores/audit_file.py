"""The audit log as files of JSON lines in one folder, appended to by all processes of this machine.

`audit.jsonl` is written; when it is large or a day old, it is renamed after the number of its last line. The ends of
the chain are beside it, written after the lines: a line that they name was written.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from pegboard import operating_system
from pegboard.audit_entries import AuditEntry, ChainEnds, Link, link_of, moment, sealed, torn_mark
from pegboard.errors import StoreError
from pegboard.extras import required
from pegboard.stores.audit_chain import ends_of, shortened
from pegboard.stores.retention import DAY

ACTIVE, ENDS, LOCK = "audit.jsonl", "audit.ends", "audit.lock"
LOCK_SECONDS = 30.0
FILE_BYTES = 64_000_000
TAIL = 65_536
"""Bytes read at first to find the last line."""
PRIVATE, PRIVATE_FOLDER = 0o600, 0o700
REMEDY = "Give its folder space, and this user the right to write there."


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """The end of a file: its last whole line, the ``unfinished`` ones after it, and whether it ends with a newline."""

    last: Link
    unfinished: Sequence[bytes] = ()
    newline: bool = True


class AuditFile:
    """``file_bytes`` is the size from which a file is renamed. Only their owner can read the files."""

    def __init__(self, folder: Path, *, key: bytes = b"", file_bytes: int = FILE_BYTES) -> None:
        self.folder = folder
        self._key = key
        self._file_bytes = file_bytes

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        await asyncio.to_thread(self._alone, self._append, entries)

    async def read(self) -> AsyncIterator[bytes]:
        """The lines that are not removed. Files are looked for one after another: meanwhile the active one may get its
        number, and old ones may go."""
        read: float = 0
        while opened := await asyncio.to_thread(self._opened, read):
            file, read = opened
            with file:
                while lines := await asyncio.to_thread(file.readlines, TAIL):
                    for line in lines:
                        if whole := line.rstrip(b"\n"):
                            yield whole

    async def ends(self) -> str:
        return await asyncio.to_thread(self._ends)

    async def remove(self, before: float) -> int:
        return int(await asyncio.to_thread(self._alone, self._remove, before)) if self.folder.exists() else 0

    def _alone(self, work: Any, argument: Any) -> Any:
        """The result of ``work`` while no other process changes the log."""
        try:
            self.folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            with required("filelock", "mcp").FileLock(self.folder / LOCK, timeout=LOCK_SECONDS):
                return work(argument)
        except OSError as error:  # a lock that was not free in time is one, too
            why = error.strerror or "another process holds it"
            raise StoreError(
                f"The audit log in {str(self.folder)!r} cannot be changed: {why}.", remedy=REMEDY
            ) from error

    def _append(self, entries: Sequence[AuditEntry]) -> None:
        """Append after the last whole line, also if its writer died before it noted the end."""
        active, ends = self.folder / ACTIVE, ends_of(self._ends())
        tail = _tail(active, ends.last, self._key)
        if self._is_full(active, entries[0].at) and not (done := self._named(tail.last.number)).exists():
            operating_system.replace_file(active, done)
            tail = replace(tail, newline=True)
        if tail.unfinished:
            entries = [replace(entries[0], torn=torn_mark(tail.unfinished)), *entries[1:]]
        lines, last = sealed(entries, tail.last, self._key)
        with _appended(active, (b"" if tail.newline else b"\n") + b"\n".join(lines) + b"\n"):
            self._note(ChainEnds(last=last, removed=ends.removed).text(self._key))

    def _remove(self, before: float) -> int:
        """The ends are noted first: a file that is left by a crash is not read any more, and goes the next time."""
        ends, until = self._ends(), moment(before)
        removed = ends_of(ends).removed
        start = removed.number
        for path in self._done():
            if max(_time_in(path), _time_in(path, last=True)) > until or _has_younger(path, until):
                break
            tail = _tail(path, Link(), self._key)
            removed = tail.last if tail.last.number > removed.number else removed
        if removed.number > start:
            self._note(shortened(ends, removed, self._key))
        for path in self._done():
            if _number(path) <= removed.number:
                path.unlink()
        return removed.number - start

    def _is_full(self, active: Path, now: float) -> bool:
        if not active.exists() or not (size := active.stat().st_size):
            return False
        began = _time_in(active)
        return size >= self._file_bytes or "" < began < moment(now - DAY)

    def _opened(self, read: float) -> tuple[BinaryIO, float] | None:
        """The file with the first lines after number ``read`` that are not removed, and the number of its last line;
        infinity for the active file, after which there is none."""
        if read == math.inf:
            return None
        while True:
            first = max(read, ends_of(self._ends()).removed.number)
            path = next((path for path in self._done() if _number(path) > first), self.folder / ACTIVE)
            number = _number(path) or math.inf
            try:
                file = path.open("rb")
            except FileNotFoundError:
                if number == math.inf and not self._has_more(first):
                    return None
                continue
            if number < math.inf or not self._has_more(first):
                return file, number
            file.close()

    def _has_more(self, than: float) -> bool:
        """Whether there is a file by now that has its number, and lines after ``than``."""
        return any(_number(path) > than for path in self._done())

    def _done(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("audit-*.jsonl") if _number(path))

    def _named(self, last: int) -> Path:
        return self.folder / f"audit-{last:012d}.jsonl"

    def _ends(self) -> str:
        path = self.folder / ENDS
        return path.read_text("utf-8", "replace") if path.exists() else ""

    def _note(self, ends: str) -> None:
        made = self.folder / f"{ENDS}.new"
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE), "w") as file:
            file.write(ends)
        operating_system.replace_file(made, self.folder / ENDS)


def _tail(path: Path, noted: Link, key: bytes) -> Tail:
    """The end of a file, in which ``noted`` is a line from which on to look, if it is there."""
    if not path.exists():
        return Tail(last=noted)
    data, last, unfinished = _after(path, noted), noted, list[bytes]()
    for line in filter(None, data.split(b"\n")):
        links = link_of(line, key)
        if links is None:
            unfinished.append(line)
        else:
            last, unfinished = max(last, links[0], key=lambda link: link.number), []
    return Tail(last=last, unfinished=unfinished, newline=not data or data.endswith(b"\n"))


def _after(path: Path, noted: Link) -> bytes:
    """The bytes after the line ``noted``; all of them if it is not there."""
    size, back = path.stat().st_size, TAIL
    mark = f'"hash":"{noted.hash}"}}'.encode()
    with path.open("rb") as file:
        while True:
            file.seek(max(0, size - back))
            data = file.read()
            place = data.rfind(mark) if noted.hash else -1
            if place >= 0:
                return data[place + len(mark) :]
            if back >= size:
                return data
            back *= 4


def _time_in(path: Path, *, last: bool = False) -> str:
    """The time in the first or the last whole line; empty if there is none."""
    with path.open("rb") as file:
        if last:
            file.seek(max(0, path.stat().st_size - TAIL))
        lines = file.read(TAIL).split(b"\n") if last else [file.readline()]
    return next(filter(None, map(_time_of, reversed(lines))), "")


def _has_younger(path: Path, than: str) -> bool:
    with path.open("rb") as file:
        return any(_time_of(line) > than for line in file)


def _time_of(line: bytes) -> str:
    """The time in a line; empty if it is not whole."""
    try:
        return str(json.loads(line)["at"])
    except (ValueError, TypeError, KeyError):
        return ""


def _number(path: Path) -> int:
    digits = path.stem.partition("-")[2]
    return int(digits) if digits.isdecimal() else 0


@contextmanager
def _appended(path: Path, data: bytes) -> Iterator[None]:
    """Append, and enter the block once it is on the disk. The file is as before if that or the block fails, on a full
    disk: all of it will be written again."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
    size = os.fstat(descriptor).st_size
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
        yield
    except OSError:
        with suppress(OSError):
            os.ftruncate(descriptor, size)
        raise
    finally:
        os.close(descriptor)
