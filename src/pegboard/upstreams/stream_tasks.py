"""Streams of notifications on one connection, each in a task of its own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup

Stream = Callable[[], Coroutine[Any, Any, None]]


class StreamTasks:
    """By what each stream is about. A server can be called a moment before its connection serves: a stream that is
    opened then begins with that."""

    def __init__(self) -> None:
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._waiting: list[Stream] = []
        self._tasks: TaskGroup | None = None

    @contextmanager
    def running(self, tasks: TaskGroup) -> Iterator[None]:
        """Within it, streams run in ``tasks``, which ends them."""
        self._tasks = tasks
        while self._waiting:
            tasks.start_soon(self._waiting.pop(0))
        try:
            yield
        finally:
            self._tasks = None

    @property
    def are_running(self) -> bool:
        """Whether a stream that is opened begins at once: who waits for it before keeps the connection from serving."""
        return self._tasks is not None

    def open(self, about: str, stream: Stream) -> bool:
        """Await ``stream`` in a task, unless there is one about this. Whether there was none."""
        if about in self._scopes:
            return False
        scope = self._scopes[about] = anyio.CancelScope()

        async def run() -> None:
            with scope:
                await stream()
            if self._scopes.get(about) is scope:
                del self._scopes[about]

        if self._tasks is None:
            self._waiting.append(run)
        else:
            self._tasks.start_soon(run)
        return True

    def close(self, about: str) -> None:
        if (scope := self._scopes.pop(about, None)) is not None:
            scope.cancel()
