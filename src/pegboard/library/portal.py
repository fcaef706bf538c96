"""An event loop in a thread of its own, for callers with and without one: scripts, notebooks, servers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import Any, TypeVar

from anyio import to_thread

T = TypeVar("T")


class Portal:
    """Starts with the first work and ends with `close`. Whatever belongs to a loop belongs to this one.

    Both ways in may be used from any thread and any loop, a notebook's and trio's too; from work inside it only `wait`
    may.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def started(self) -> bool:
        return self._loop is not None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work, which the calling thread waits for. Raises RuntimeError inside the portal."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("A board's own work cannot wait for the board: use the async method.")
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work, while the caller's loop goes on. Cancelling the caller cancels the work."""
        loop = self._running()
        if threading.current_thread() is self._thread:
            return await work
        future = asyncio.run_coroutine_threadsafe(work, loop)
        return await (asyncio.wrap_future(future) if _in_asyncio() else _waited(future))

    def close(self) -> None:
        """End the loop and its thread. What is closed may be used again, and starts anew."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_serve, args=(self._loop,), name="pegboard", daemon=True)
                self._thread.start()
            return self._loop


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """What a function returns that blocks, while the caller's loop goes on, be it asyncio's or trio's."""
    if _in_asyncio():
        return await asyncio.to_thread(function, *arguments)
    (given,) = await to_thread.run_sync(lambda: (function(*arguments),), abandon_on_cancel=True)  # trio bars coroutines
    return given


def _in_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _waited(future: Future[T]) -> T:
    """A thread waits for it, as trio cannot; cancelling ends the work, and with it the thread."""
    try:
        return await to_thread.run_sync(future.result, abandon_on_cancel=True)
    finally:
        future.cancel()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """As `asyncio.Runner`, which would start a thread to end the others: a program that ends cannot, from 3.12 on."""
    with closing(loop), ThreadPoolExecutor(thread_name_prefix="pegboard") as executor:
        loop.set_default_executor(executor)
        loop.run_forever()
        loop.run_until_complete(_cancelled(asyncio.all_tasks(loop)))
        loop.run_until_complete(loop.shutdown_asyncgens())


async def _cancelled(tasks: Collection[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
