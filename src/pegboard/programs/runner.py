"""Runs programs: each in a process of its own, whose calls are made here, and which is killed when its time is over."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import time
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from pegboard.errors import ConfigError, PegboardError
from pegboard.operating_system import group_of_its_own, kill_group, kill_of_group, lower_priority, ran_out_of_time
from pegboard.programs import sandbox_worker
from pegboard.programs.program_run import Outcome, ProgramCall, ProgramRun
from pegboard.programs.result_values import CallFailed
from pegboard.settings.program_settings import ProgramSettings

WORKER = str(Path(sandbox_worker.__file__).resolve())
NEEDED = frozenset({"SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "MONTY_BIN"})
LONGEST_PROGRAM = 20_000
"""Most characters of a program."""
LARGEST = 16_000_000
"""Most bytes of one message of the worker: a call's arguments, or the last value, in escaped characters."""
NICE = 15
"""How much lower the priority of a program's processes is than the gateway's, which does not wait for them."""
CHARACTERS_PER_TOKEN = 10
AT_ONCE = 200_000
"""Characters of a message up to which it is read and written on the event loop; longer ones on a thread."""
TOGETHER = 8
"""Calls of one program that run at the same time."""
STARTING = 30.0
"""Seconds in which a program's sandbox starts."""
ENDING = 2.0
"""Seconds in which the worker ends after its sandbox was killed."""
WORD = re.compile(r"[A-Za-z_]\w*")
Call = Callable[[str, list[Any], dict[str, Any], int], Awaitable[Any]]
"""Makes a call: function, arguments by place and by name, line. Raises CallFailed for what the program should see."""


class ProgramsBusy(PegboardError):  # noqa: N818
    """No place came free for a program."""

    code = "programs_busy"
    http_status = 503

    def __init__(self) -> None:
        super().__init__("Too many programs run now.", remedy="Try again in a moment, or call the tools one by one.")


def require_sandbox() -> None:
    """Raises ConfigError with the install command if the sandbox is not installed."""
    if find_spec("pydantic_monty") is None:
        raise ConfigError(
            "Programs need the sandbox of the package 'pydantic-monty', which is not installed.",
            remedy="Install it with `pip install 'pegboard[programs]'`, or set `programs = \"off\"`.",
        )


def words_of(program: str) -> frozenset[str]:
    """What may be the name of a function in a program.

    >>> sorted(words_of("await find(a=1)"))
    ['a', 'await', 'find']
    """
    return frozenset(WORD.findall(program))


class ProgramRunner:
    """``settings`` may change; they apply to the programs that start afterwards."""

    def __init__(self, settings: ProgramSettings) -> None:
        self.settings = settings
        self._places = asyncio.Semaphore(settings.at_once)

    def adopt(self, settings: ProgramSettings) -> None:
        """The places of programs that run stay taken, unless there are to be more or fewer."""
        if settings.at_once != self.settings.at_once:
            self._places = asyncio.Semaphore(settings.at_once)
        self.settings = settings

    async def run(self, program: str, declared: Mapping[str, str], call: Call) -> ProgramRun:
        """``declared`` are the functions that the program may call, each with its declaration.

        Raises ProgramsBusy, and ConfigError if the sandbox is missing or cannot be started. What is wrong with the
        program is in the run.
        """
        if len(program) > LONGEST_PROGRAM:
            return ProgramRun(outcome="refused", problem=f"The program is longer than {LONGEST_PROGRAM} characters.")
        require_sandbox()
        places = self._places
        try:
            await asyncio.wait_for(places.acquire(), self.settings.wait)
        except TimeoutError:
            raise ProgramsBusy from None
        try:
            return await _Running(self.settings, call).run(self._task(program, declared))
        finally:
            places.release()

    def _task(self, program: str, declared: Mapping[str, str]) -> dict[str, Any]:
        words = words_of(program)
        used = {function: text for function, text in declared.items() if function in words}
        return {
            "program": program.encode("utf-8", "replace").decode("utf-8"),
            "functions": sorted(used),
            "declared": "\n".join(["from typing import Any, Literal", *used.values()]),
            "seconds": self.settings.seconds,
            "memory": self.settings.memory_mb * 1024 * 1024,
            "calls": self.settings.calls,
            "characters": self.settings.output * CHARACTERS_PER_TOKEN,
        }


class _Running:
    """One program while it runs."""

    def __init__(self, settings: ProgramSettings, call: Call) -> None:
        self._settings = settings
        self._call = call
        self._together = asyncio.Semaphore(TOGETHER)
        self._writing = asyncio.Lock()
        self._calls: dict[int, ProgramCall] = {}
        self._printed: list[str] = []
        self._received = 0
        self._sandbox = 0
        self._failure: BaseException | None = None

    async def run(self, task: dict[str, Any]) -> ProgramRun:
        started = time.monotonic()
        process = await self._start()
        answers: dict[asyncio.Task[None], anyio.CancelScope] = {}
        try:
            async with asyncio.timeout(STARTING + self._settings.wait) as limit:
                run = await self._heard(process, task, answers, limit)
        except TimeoutError:
            run = _ended("time", f"The program and its calls took longer than {self._settings.wait:g} seconds.")
        finally:
            for scope in answers.values():
                scope.cancel()
            with anyio.CancelScope(shield=True):
                await self._end(process)
                if answers:
                    await asyncio.wait(answers)
        if self._failure is not None:
            raise self._failure
        if run.outcome == "crashed" and ran_out_of_time(process.returncode):
            seconds = self._settings.seconds
            run = _ended("time", f"Handing on the values of the program took longer than its {seconds:g} seconds.")
        return replace(
            run,
            printed="".join(self._printed),
            calls=tuple(self._calls.values()),
            seconds=time.monotonic() - started,
            received=self._received,
        )

    async def _start(self) -> Process:
        path = json.dumps([each for each in sys.path if each])
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", WORKER, path),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if name in NEEDED},
                **group_of_its_own(),
            )
        except OSError as error:
            raise ConfigError(
                f"The process of a program cannot be started: {error}.", remedy="Call the tools one by one."
            ) from error
        lower_priority(process.pid, NICE)  # before its interpreter has started; its sandbox inherits it
        return process

    async def _end(self, process: Process) -> None:
        """The sandbox is killed at once, and its process waits for it and ends; if it does not, it is killed too."""
        with suppress(ConnectionError):
            cast("StreamWriter", process.stdin).close()
        if process.returncode is None:
            kill_of_group(self._sandbox, process.pid)
        try:
            await asyncio.wait_for(process.wait(), ENDING)
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        kill_group(process.pid)

    async def _heard(
        self,
        process: Process,
        task: dict[str, Any],
        answers: dict[asyncio.Task[None], anyio.CancelScope],
        limit: asyncio.Timeout,
    ) -> ProgramRun:
        """Follows the worker until it says how the program ended, or ends itself. The program's time begins with its
        sandbox: on a busy machine a process of low priority takes long to start."""
        questions, answers_to = cast("StreamReader", process.stdout), cast("StreamWriter", process.stdin)
        await self._write(answers_to, sandbox_worker.packed(task))
        while (message := await _message(questions)) is not None:
            if "printed" in message:
                self._printed.append(message["printed"])
            elif "sandbox" in message:
                self._sandbox = message["sandbox"]
                limit.reschedule(asyncio.get_running_loop().time() + self._settings.wait)
            elif "call" in message:
                self._calls[message["call"]] = ProgramCall(
                    tool=message["function"], line=message["line"], finished=False
                )
                scope = anyio.CancelScope()
                answer = asyncio.create_task(self._answered(answers_to, message, scope))
                answers[answer] = scope
                answer.add_done_callback(answers.pop)
                answer.add_done_callback(partial(self._failed, process))
            else:
                return _ended(message["end"], message["problem"], message["value"])
        return _ended("crashed", "The process of the program ended, probably for want of memory.")

    async def _answered(self, stream: StreamWriter, message: dict[str, Any], scope: anyio.CancelScope) -> None:
        """Makes one call and writes what came of it, unless the ``scope`` ends it."""
        number = message["call"]
        made = self._calls[number]
        with scope:
            await checkpoint_if_cancelled()  # the program may be over before its last call has begun
            try:
                async with self._together:
                    value = await self._call(made.tool, message["args"], message["kwargs"], made.line)
                packed = await self._packed(number, value)
                self._calls[number] = replace(made, finished=True)
            except CallFailed as error:
                problem = f"{made.tool}: {error}"
                packed = sandbox_worker.packed({"id": number, "error": problem})
                self._calls[number] = replace(made, finished=True, problem=str(error))
                self._received += len(problem)
            await self._write(stream, packed)

    def _failed(self, process: Process, answer: asyncio.Task[None]) -> None:
        """A defect of ours ends the program at once; without an answer it would wait until its time is over."""
        if not answer.cancelled() and (error := answer.exception()) is not None:
            self._failure = error
            kill_group(process.pid)

    async def _packed(self, number: int, value: Any) -> bytes:
        """Raises CallFailed for a result that is no JSON. Some servers send NaN and infinity: a program has both."""
        answer = {"id": number, "value": value}
        packed = partial(sandbox_worker.packed, answer, nan=True)
        try:
            found = packed() if isinstance(value, str) and len(value) < AT_ONCE else await asyncio.to_thread(packed)
        except (ValueError, TypeError, RecursionError) as error:
            raise CallFailed(f"its result cannot be handed on: {error}") from None
        self._received += len(found)
        return found

    async def _write(self, stream: StreamWriter, message: bytes) -> None:
        async with self._writing:
            with suppress(ConnectionError):
                stream.write(message)
                await stream.drain()


async def _message(stream: StreamReader) -> dict[str, Any] | None:
    """The worker's next message; None if it has ended, or wrote what it may not."""
    try:
        head = await stream.readexactly(sandbox_worker.LENGTH)
        size = int.from_bytes(head, "big")
        if size > LARGEST:
            return None
        body = await stream.readexactly(size)
        found: dict[str, Any] = json.loads(body) if size < AT_ONCE else await asyncio.to_thread(json.loads, body)
    except (asyncio.IncompleteReadError, ConnectionError, ValueError):
        return None
    return found


def _ended(outcome: Outcome, problem: str, value: str = "") -> ProgramRun:
    return ProgramRun(outcome=outcome, problem=problem, value=value)
