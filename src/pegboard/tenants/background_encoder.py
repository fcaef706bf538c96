"""The bundled encoder in a process of its own, of low priority."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache

from pegboard.compose.shard_jobs import follow_parent
from pegboard.errors import EncoderError
from pegboard.model import Floats
from pegboard.operating_system import yield_to_others
from pegboard.retrieval import OnnxEncoder


class BackgroundEncoder:
    """Encodes what somebody imports: searches share neither the interpreter with it nor, where they need it, a core.

    The process starts with the first text and ends with `close`, or with this one. Raises EncoderError if it dies; the
    next text starts another.
    """

    def __init__(self) -> None:
        self._same = OnnxEncoder()
        self._pool: ProcessPoolExecutor | None = None

    @property
    def provider(self) -> str:
        return self._same.provider

    @property
    def model(self) -> str:
        return self._same.model

    @property
    def dimensions(self) -> int:
        return self._same.dimensions

    async def encode(self, texts: Sequence[str]) -> Floats:
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=_begin)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, _encode, list(texts))
        except BrokenProcessPool as error:
            self._pool = None
            raise EncoderError("The process that embeds imports ended.", remedy="Import the tools again.") from error

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)


def _begin() -> None:
    follow_parent()
    yield_to_others()


@lru_cache(maxsize=1)
def _encoder() -> OnnxEncoder:
    return OnnxEncoder(threads=1)


def _encode(texts: Sequence[str]) -> Floats:
    return _encoder().encode_now(texts)
