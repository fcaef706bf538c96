"""The bundled encoder in a process of its own, of low priority, on a thread that takes no core from others."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache, partial
from typing import TypeVar

import numpy as np

from pegboard.catalog import BpeCounter, Catalog
from pegboard.catalog.catalog import summarized
from pegboard.compose.shard_jobs import follow_parent
from pegboard.errors import EncoderError
from pegboard.model import Floats, Tool
from pegboard.operating_system import yield_to_others
from pegboard.retrieval import OnnxEncoder
from pegboard.tenants.idle_thread import IdleThread

PIECE = 8
"""Texts that are embedded at a time: what starves starves for no longer."""
Given = TypeVar("Given")
T = TypeVar("T")
Described = tuple[tuple[Tool, ...], tuple[int, ...]]


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
        return await self._run(_encode, list(texts))

    async def described(self, tools: Sequence[Tool]) -> Described:
        """The tools, those without a summary with one, and the tokens of each."""
        return await self._run(_described, tools)

    async def _run(self, work: Callable[[Given], T], given: Given) -> T:
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=_begin)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work, given)
        except BrokenProcessPool as error:
            self._pool = None
            raise EncoderError("The process that embeds imports ended.", remedy="Import the tools again.") from error

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)


def described(tools: Sequence[Tool]) -> Described:
    """The tools, those without a summary with one, and the tokens of each: what takes time besides vectors."""
    ready = summarized(tools, _counter())
    return ready, Catalog(tools=ready, servers={}, counter=_counter()).token_counts


def _described(tools: Sequence[Tool]) -> Described:
    return _idle().run(partial(described, tools))


@lru_cache(maxsize=1)
def _idle() -> IdleThread:
    return IdleThread()


@lru_cache(maxsize=1)
def _counter() -> BpeCounter:
    return BpeCounter()


def _begin() -> None:
    follow_parent()
    yield_to_others()


@lru_cache(maxsize=1)
def _encoder() -> OnnxEncoder:
    return OnnxEncoder(threads=1)


def _encode(texts: Sequence[str]) -> Floats:
    """Texts of like length beside each other, as batches have them."""
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    out = np.zeros((len(texts), _encoder().dimensions), np.float32)
    for start in range(0, len(order), PIECE):
        piece = order[start : start + PIECE]
        out[piece] = _idle().run(partial(_encoder().encode_now, [texts[place] for place in piece]))
    return out
