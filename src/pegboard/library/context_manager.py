"""A context manager, synchronous and asynchronous, that closes its object at the end."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from pegboard.library.portal import in_thread


class ClosedAtTheEnd:
    """Calls ``close`` at the end of a `with` or `async with` block."""

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await in_thread(self.close)
