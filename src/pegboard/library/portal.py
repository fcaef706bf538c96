"""An event loop in its own thread, for callers with and without a loop: scripts, notebooks, servers."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from anyio import to_thread

LOGGER = logging.getLogger(__name__)
MOST_FUNCTIONS = 1000
"""Functions of callers that run at once in threads of a portal, which are made as they are needed."""
T = TypeVar("T")


class Portal:
    """Starts on first use and ends with `close`. Everything that is bound to a loop is bound to this one.

    `run` and `wait` may be called from any thread and any loop, including a notebook's or trio's; code that runs inside
    the portal may only use `wait`.
    """

    def __init__(self, begin: Callable[[], None] = lambda: None) -> None:
        self._begin = begin
        """Makes what is bound to a loop, when one starts."""
        self._closing = threading.Lock()
        self._open = threading.Event()
        """Not set while a thread closes: others wait for it, and start the next loop."""
        self._open.set()
        self._ended = threading.Event()
        self._lock = threading.RLock()  # a garbage collection within `_running` may come to `end`
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._functions: ThreadPoolExecutor | None = None

    @property
    def started(self) -> bool:
        return self._loop is not None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine and block until it is done. Raises RuntimeError inside the portal."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("Code that runs inside the board cannot block on the board: use the async method.")
        future = self._submitted(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine without blocking the caller's loop. Cancelling the caller cancels it."""
        if threading.current_thread() is self._thread:
            return await work
        if not self._open.is_set():
            await in_thread(self._open.wait)
        future = self._submitted(work)
        return await (asyncio.wrap_future(future) if _in_asyncio() else _waited(future))

    async def in_thread(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a caller's blocking function without blocking the current loop. The portal's own work does not need its
        thread: the function may wait for the portal, however many others do."""
        if threading.current_thread() is not self._thread:
            return await in_thread(function, *arguments)
        run = partial(copy_context().run, function, *arguments)
        return await asyncio.get_running_loop().run_in_executor(self._functions, run)

    def close(self, last: Callable[[], Coroutine[Any, Any, None]] | None = None) -> None:
        """Run the last work, then stop the loop and its thread; work beside it is cancelled, and work that comes
        meanwhile waits. A closed portal starts again when it is used. Raises RuntimeError inside the portal."""
        if threading.current_thread() is self._thread:
            raise RuntimeError("Code that runs inside the board cannot close the board.")
        with self._closing:
            with self._lock:
                loop, thread, ended = self._loop, self._thread, self._ended
                if loop is None or thread is None:
                    return
                self._open.clear()
            try:
                if last is not None:
                    asyncio.run_coroutine_threadsafe(last(), loop).result()
            finally:
                loop.call_soon_threadsafe(loop.stop)
                ended.wait()
                with self._lock:
                    self._loop = self._thread = None
                    self._open.set()
        thread.join()

    def end(self, work: Callable[[], Coroutine[Any, Any, None]]) -> threading.Thread | None:
        """Run the last work and stop, waiting for neither; the thread that does so, if there is one.

        The garbage collector may call this in any thread, also in one that holds a lock which the work needs.
        """
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None:
            loop.call_soon_threadsafe(_begin_end, loop, work)
        return thread

    def _submitted(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        while True:
            self._open.wait()
            with self._lock:  # no loop ends between choosing it and giving it the work
                if self._open.is_set():
                    return asyncio.run_coroutine_threadsafe(work, self._running())

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._begin()
            self._loop, self._ended = asyncio.new_event_loop(), threading.Event()
            self._functions = ThreadPoolExecutor(MOST_FUNCTIONS, thread_name_prefix="pegboard-function")
            given = self._loop, self._functions, self._ended
            self._thread = threading.Thread(target=_serve, args=given, name="pegboard", daemon=True)
            self._thread.start()
        return self._loop


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call a blocking function without blocking the caller's loop, asyncio's or trio's."""
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
    """Waits in a thread, as trio cannot await it; cancelling ends the work and thus the thread."""
    try:
        return await to_thread.run_sync(future.result, abandon_on_cancel=True)
    finally:
        future.cancel()


def _begin_end(loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    def stop(done: asyncio.Task[None]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            LOGGER.warning("A board that nobody uses any more was not closed cleanly: %s", error)
        loop.stop()

    loop.create_task(work()).add_done_callback(stop)


def _serve(loop: asyncio.AbstractEventLoop, functions: ThreadPoolExecutor, ended: threading.Event) -> None:
    """Like `asyncio.Runner`, which would start a thread to stop the executor: from Python 3.12 on, an exiting
    interpreter cannot."""
    with closing(loop), functions, ThreadPoolExecutor(thread_name_prefix="pegboard") as executor:
        loop.set_default_executor(executor)
        try:
            loop.run_forever()
            loop.run_until_complete(_cancelled(asyncio.all_tasks(loop)))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            ended.set()  # before its functions end, which may wait for the next loop


async def _cancelled(tasks: Collection[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
