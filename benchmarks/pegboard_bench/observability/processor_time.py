"""The processor time of a gateway and of the processes that it starts to be observed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

PROC = Path("/proc")
PROGRAMS = {"exporter": b"exporter_process", "writer": b"activity_process"}
"""By what its time is called, a part of the command of a process behind a gateway."""
GATEWAY = "gateway"
GONE = (FileNotFoundError, ProcessLookupError)
"""What Linux raises for a thread or process that ends before or while it is read about."""
NANOSECONDS_A_MS = 1e6


class ProcessorTime:
    """What a process has taken, and what those behind it have. A thread or process that has ended since it was read
    counts as it did then: the sums never become smaller."""

    def __init__(self, process: int, proc: Path = PROC) -> None:
        self._process = process
        self._proc = proc
        self._taken: dict[str, dict[tuple[str, str], float]] = {name: {} for name in (GATEWAY, *PROGRAMS)}

    def read(self) -> Mapping[str, float]:
        """Milliseconds of the gateway, the exporter and the writer of activity since each of them began."""
        self._note(GATEWAY, str(self._process))
        for child in self._children():
            command = _contents(self._proc / child / "cmdline")
            for name, program in PROGRAMS.items():
                if program in command:
                    self._note(name, child)
        return {name: sum(threads.values()) for name, threads in self._taken.items()}

    def _note(self, name: str, process: str) -> None:
        for thread in self._threads(process):
            if found := _contents(self._proc / process / "task" / thread / "schedstat"):
                self._taken[name][process, thread] = int(found.split()[0]) / NANOSECONDS_A_MS

    def _children(self) -> Iterator[str]:
        process = str(self._process)
        for thread in self._threads(process):
            yield from _contents(self._proc / process / "task" / thread / "children").decode().split()

    def _threads(self, process: str) -> list[str]:
        try:
            return [each.name for each in (self._proc / process / "task").iterdir()]
        except GONE:
            return []


def _contents(file: Path) -> bytes:
    """Empty if what it is about is gone."""
    try:
        return file.read_bytes()
    except GONE:
        return b""
