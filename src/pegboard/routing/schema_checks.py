"""Checks values against untrusted schemas in worker processes with a limit on processor time.

A schema comes from a server and may be crafted to take for ever: by definitions that refer twice to the next, or by a
pattern that backtracks. So checks that are not `is_light` run in another process, within a budget of processor time. A
schema that exceeded it is not used again: calls pass unchecked, as with an invalid schema. The check helps the model,
which gets a better error sooner; servers must validate their input themselves. Rights, pins and spend limits do not
depend on schemas and are always checked.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import marshal
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, cast

from pegboard.routing import schema_worker

LOGGER = logging.getLogger(__name__)

BUDGET = 0.25
"""Processor seconds for one check."""
PATIENCE = 5.0
"""Seconds that a call waits for its check on a busy machine before it passes unchecked."""
STARVED = 4
"""Multiple of `PATIENCE` after which a worker is killed even if it has not used its budget."""
WORKERS = 2
MOST_HOPELESS = 1_000
LARGEST = 16_000_000
"""Maximum bytes of a schema and a value together."""
ENDING = 1.0
BUDGET_SPENT = -getattr(signal, "SIGPROF", signal.SIGTERM)
"""Exit status of a worker that used up its budget. On Windows, which has no such signal, this process kills it."""
NEEDED = frozenset({"SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"})
PROGRAM = str(Path(schema_worker.__file__).resolve())
FORMAT = 2
"""Marshal version that gives equal values the same bytes."""


class Unusable(Exception):  # noqa: N818
    """The schema cannot be used: it is invalid, or takes too much time or memory."""


class SchemaChecks:
    """The workers of this process. They start with the first check that needs one and end with the process."""

    def __init__(self, *, budget: float = BUDGET, patience: float = PATIENCE, workers: int = WORKERS) -> None:
        self._budget = budget
        self._patience = patience
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="pegboard schema check")
        self._of_thread = threading.local()
        self._hopeless: OrderedDict[bytes, None] = OrderedDict()
        self._failed = False

    async def problems(self, schema: Mapping[str, Any], value: Any) -> list[str]:
        """What is wrong with a value. Raises Unusable. Does not block the event loop."""
        try:
            return await asyncio.wait_for(asyncio.wrap_future(self._submitted(schema, value)), self._patience)
        except TimeoutError:
            raise Unusable("no time for it") from None

    def problems_now(self, schema: Mapping[str, Any], value: Any) -> list[str]:
        """Like `problems`, for synchronous code."""
        asked = self._submitted(schema, value)
        try:
            return asked.result(self._patience)
        except TimeoutError:
            asked.cancel()
            raise Unusable("no time for it") from None

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def _submitted(self, schema: Mapping[str, Any], value: Any) -> Future[list[str]]:
        try:
            said = _written(schema)
            question = marshal.dumps((said, _written(value)))
        except (ValueError, RecursionError):
            raise Unusable("it is too deep, or no JSON") from None
        if len(question) > LARGEST:
            raise Unusable("the value is too large")
        key = hashlib.sha256(said).digest()
        self._check_hope(key)
        return self._threads.submit(self._ask, question, key)

    def _check_hope(self, key: bytes) -> None:
        if self._failed or key in self._hopeless:
            raise Unusable("no process can be started for it" if self._failed else "it took too long before")

    def _ask(self, question: bytes, key: bytes) -> list[str]:
        self._check_hope(key)
        worker: _Worker | None = getattr(self._of_thread, "worker", None)
        try:
            if worker is None or not worker.lives:
                worker = self._of_thread.worker = _Worker(self._budget, STARVED * self._patience)
        except OSError as error:
            self._failed = True
            raise Unusable(f"no process can be started for it: {error}") from error
        judged = worker.ask(question)
        if judged is None:
            if worker.overran:
                self._hopeless[key] = None
                while len(self._hopeless) > MOST_HOPELESS:
                    self._hopeless.popitem(last=False)
            raise Unusable("it takes too long")
        if isinstance(judged, str):
            raise Unusable(judged)
        return judged


class _Worker:
    """One worker process, used by one thread at a time."""

    def __init__(self, budget: float, longest: float) -> None:
        path = json.dumps([each for each in sys.path if each])
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", PROGRAM, str(budget), path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name in NEEDED},
        )
        self._questions, self._answers = cast("BinaryIO", self._process.stdin), cast("BinaryIO", self._process.stdout)
        self._longest = longest
        self._end = weakref.finalize(self, _end, self._process)
        if not self._read():
            self._end()
            raise OSError(f"{sys.executable} ended with {self._process.returncode}")

    @property
    def lives(self) -> bool:
        return self._end.alive and self._process.poll() is None

    @property
    def overran(self) -> bool:
        """Whether it used up its budget, rather than waiting on a busy machine."""
        return self._process.returncode == BUDGET_SPENT

    def ask(self, question: bytes) -> list[str] | str | None:
        """What is wrong, or why the schema cannot be used; None if the process died during the check."""
        late = threading.Timer(self._longest, self._process.kill)
        late.start()
        try:
            schema_worker.write(self._questions, question)
            answer = self._read()
        except BrokenPipeError:
            answer = b""
        finally:
            late.cancel()
        if not answer:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(ENDING)  # it died of the timer's signal
            self._end()
            return None
        judged: list[str] | str = json.loads(answer)
        return judged

    def _read(self) -> bytes:
        return schema_worker.read(self._answers)


def schema_checks() -> SchemaChecks:
    """The workers of this process, without any caller's state; a forked process gets its own."""
    return _of_process(os.getpid())


@lru_cache(maxsize=1)
def _of_process(_pid: int) -> SchemaChecks:
    return SchemaChecks()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    process.wait()


def _written(value: Any) -> bytes:
    """The value as bytes. Raises ValueError if it is not JSON."""
    try:
        return marshal.dumps(value, FORMAT)
    except ValueError:
        return marshal.dumps(_plain(value), FORMAT)


def _plain(value: Any) -> Any:
    """The value with only dictionaries and lists as containers."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value
