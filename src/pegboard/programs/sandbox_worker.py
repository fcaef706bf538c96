"""Runs one program in the sandbox, as a process that may be killed at any moment.

A program of its own, started as ``python -I sandbox_worker.py SYS_PATH``, which does not import pegboard so that it
starts fast. It reads one task, then the answers to the calls that it asks for, and writes what is printed, the calls,
and how it ended. Whatever the sandboxed code does, values are converted, sizes are judged and errors are read here and
not in the gateway. The sandbox itself is one more process, of pydantic's Monty, with limits of its own.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import threading
import time
from contextlib import suppress
from typing import Any, BinaryIO

LENGTH = 8
SCRIPT = "program.py"
INPUT = "<python-input-0>"
"""What the sandbox calls the program in tracebacks."""
LONGEST_ARGUMENTS = 1_000_000
"""Most characters of the arguments of one call."""
LONGEST_PROBLEM = 2_000
MEMORY = 4 * 1024**3
"""Bytes of address space of this process and of the sandbox's; the sandbox's own limit is far below."""
ROOM, TIMES = 512 * 1024**2, 4
"""What this process may take while a program runs, in bytes and in times of the program's own memory: a value whose
parts are shared in the sandbox has all of them here."""
SHARE, AT_LEAST = 0.5, 0.5
"""Processor time that this process may take while a program runs: a share of the program's own, and so many seconds."""
TOO_LARGE = "A value of the program, the arguments of a call, or its result, take more memory than it may."
LOOKUPS = 1_000
"""Host round trips that are no calls, such as reading an unknown name."""
SLEEP_SECONDS = 30.0
CHECKED = frozenset({"missing-argument", "unknown-argument", "too-many-positional-arguments", "unused-awaitable"})
"""Rules of the type checker that are always right about a call. Others are about code that may run well."""
FOUND = re.compile(r"^\S+?:(\d+):\d+: (?:error|warning)\[([\w-]+)\] (.*)$")
NAMED = re.compile(r"`(\w+)`")
SLEEPS = ("system.sleep", "system.async_sleep")
LIMITS = {
    "TimeoutError: feed time limit": "time",
    "TimeoutError: turn time limit": "time",
    "MemoryError: ": "memory",
    "RuntimeError: suspension limit": "calls",
}


def read(stream: BinaryIO) -> Any:
    """The next message; None at the end of the stream."""
    head = stream.read(LENGTH)
    if len(head) < LENGTH:
        return None
    body = stream.read(int.from_bytes(head, "big"))
    found = json.loads(body)
    return _whole_text(found) if b"\\ud" in body else found


def packed(message: Any, *, nan: bool = False) -> bytes:
    """A message with its length before it. Raises ValueError, TypeError or RecursionError for what is no JSON; with
    ``nan``, NaN and infinity are written as `read` reads them."""
    body = json.dumps(message, allow_nan=nan).encode("ascii")
    return len(body).to_bytes(LENGTH, "big") + body


def _whole_text(value: Any) -> Any:
    """The value with halves of surrogate pairs replaced, which the sandbox does not take."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole_text(each) for each in value]
    return {_whole_text(key): _whole_text(of) for key, of in value.items()} if isinstance(value, dict) else value


class Ended(Exception):  # noqa: N818
    """The program is over: ``outcome`` and the problem."""


class Sandbox:
    """``task`` has the program, the functions that it may call with their declarations, and the limits."""

    def __init__(self, task: dict[str, Any], questions: BinaryIO, answers: BinaryIO) -> None:
        self._task = task
        self._questions, self._answers = questions, answers
        self._lock = threading.Lock()
        self._printed = self._calls = 0
        self._reading = 0.0
        self._sleeps = SLEEP_SECONDS
        self._arrived: dict[int, Any] = {}
        self._source = task["program"].encode("utf-8", "replace")

    def run(self, monty: Any) -> None:
        task = self._task
        limits = {
            "max_feed_duration_secs": task["seconds"],
            "max_memory": task["memory"],
            "max_suspensions": task["calls"] * 3 + LOOKUPS,
            "max_recursion_depth": 200,
        }
        value = ""
        try:
            with (
                monty.Monty(min_processes=1, max_processes=1, request_timeout=task["seconds"] + 10) as pool,
                pool.checkout(
                    script_name=SCRIPT,
                    limits=limits,
                    type_check=True,
                    type_check_stubs=task["declared"],
                    type_check_format="concise",
                ) as session,
            ):
                self._tell({"sandbox": session.worker_pid or 0})
                _limit_itself_to(task["memory"], task["seconds"])
                value = self._checked(monty, session)
            outcome, problem = "ok", ""
        except Ended as error:
            outcome, problem = error.args
        except MemoryError:
            outcome, problem = "memory", TOO_LARGE
        except monty.MontySyntaxError as error:
            outcome, problem = "refused", f"The program is no Python that can run here. {_shown(error)}"
        except monty.MontyCrashedError as error:
            outcome = "time" if error.timed_out else "crashed"
            problem = f"The sandbox ended{' at the time limit' if error.timed_out else ''}: {error}"
        except monty.MontyError as error:
            said = _shown(error)
            last = str(error.display("type-msg")) if hasattr(error, "traceback") else said
            outcome = next((kind for start, kind in LIMITS.items() if last.startswith(start)), "failed")
            problem = f"The program failed. {said}"
        self._tell({"end": outcome, "problem": problem[:LONGEST_PROBLEM], "value": value})

    def _checked(self, monty: Any, session: Any) -> str:
        """Runs the program unless its calls are certainly wrong; the type checker looks before anything runs."""
        try:
            return self._driven(monty, session)
        except monty.MontyTypingError as error:
            wrong = wrong_calls(str(error.display()), self._task["functions"], self._task["program"])
        if wrong:
            raise Ended("refused", "\n".join(["Nothing was run:", *wrong]))
        return self._driven(monty, session, skip_type_check=True)

    def _driven(self, monty: Any, session: Any, **how: Any) -> str:
        """Answers the sandbox until the program is over; the last value as text."""
        snapshot = session.feed_start(self._task["program"], print_callback=self._print, **how)
        while not isinstance(snapshot, monty.MontyComplete):
            if isinstance(snapshot, monty.NameLookupSnapshot):
                name = snapshot.variable_name
                known = name in self._task["functions"]
                snapshot = snapshot.resume(value=_placeholder(name)) if known else snapshot.resume()
            elif isinstance(snapshot, monty.FutureSnapshot):
                snapshot = snapshot.resume(self._settled(snapshot.pending_call_ids))
            elif snapshot.is_os_function and snapshot.function_name in SLEEPS:
                self._sleep(snapshot.args[0])
                snapshot = snapshot.resume({"return_value": None})
            elif snapshot.is_os_function:
                snapshot = snapshot.resume_not_handled()  # nothing of this system is given to it
            elif snapshot.function_name not in self._task["functions"]:
                said = f"name {snapshot.function_name!r} is not defined"
                snapshot = snapshot.resume({"exc_type": "NameError", "message": said})
            else:
                snapshot = snapshot.resume(self._asked(snapshot))
        return self._text_of(snapshot)

    def _sleep(self, seconds: float) -> None:
        """Sleeps here, so long as its share of the time lasts."""
        self._sleeps -= max(0.0, seconds)
        if not self._sleeps >= 0:
            raise Ended("time", f"The program slept for more than {SLEEP_SECONDS:g} seconds.")
        time.sleep(max(0.0, seconds))

    def _asked(self, snapshot: Any) -> dict[str, Any]:
        """Hands a call to the gateway, and promises the sandbox a result."""
        self._calls += 1
        if self._calls > self._task["calls"]:
            raise Ended("calls", f"The program made more than {self._task['calls']} calls, the most that it may.")
        position = snapshot.position
        line = self._source.count(b"\n", 0, position.start) + 1 if position.filename == INPUT else 0
        call = {"function": snapshot.function_name, "args": snapshot.args, "kwargs": snapshot.kwargs, "line": line}
        try:
            message = packed({"call": snapshot.call_id} | call)
        except (ValueError, TypeError, RecursionError) as error:
            return {"exc_type": "TypeError", "message": f"arguments must be JSON: {error}"}
        if len(message) > LONGEST_ARGUMENTS:
            return {"exc_type": "ValueError", "message": f"arguments are longer than {LONGEST_ARGUMENTS} characters"}
        self._write(message)
        return {"future": ...}

    def _settled(self, pending: list[int]) -> dict[int, Any]:
        """The results of at least one of these calls."""
        while not any(each in self._arrived for each in pending):
            began = time.process_time()
            answer = read(self._questions)
            self._given_time(time.process_time() - began)
            if answer is None:
                raise Ended("crashed", "The gateway is gone.")
            failed = "error" in answer
            result = {"exc_type": "RuntimeError", "message": answer["error"]} if failed else None
            self._arrived[answer["id"]] = result or {"return_value": answer["value"]}
        return {each: self._arrived.pop(each) for each in pending if each in self._arrived}

    def _given_time(self, seconds: float) -> None:
        """Processor time in which a result was read is none of the program's."""
        self._reading += seconds
        whole = int(self._reading)
        self._reading -= whole
        if whole:
            _limit_time(whole)

    def _print(self, _stream: str, text: str) -> None:
        room = self._task["characters"] - self._printed
        self._printed += len(text)
        if room > 0:
            self._tell({"printed": text[:room]})
        if self._printed > self._task["characters"]:
            most = self._task["characters"]
            self._tell({"end": "output", "problem": f"The program printed more than {most} characters.", "value": ""})
            os._exit(0)

    def _text_of(self, complete: Any) -> str:
        """The last value: a text as it is, None as nothing, else JSON, or what Python shows of it."""
        try:
            value = complete.output
            text = "" if value is None else value if isinstance(value, str) else _json_or_repr(value)
        except (RecursionError, OverflowError, ValueError) as error:
            text = f"(the last value cannot be shown: {type(error).__name__})"
        return text[: self._task["characters"]]

    def _tell(self, message: Any) -> None:
        self._write(packed(message))

    def _write(self, message: bytes) -> None:
        with self._lock, suppress(BrokenPipeError):
            self._answers.write(message)
            self._answers.flush()


def wrong_calls(found: str, functions: list[str], program: str) -> list[str]:
    """What the type checker found that is certainly wrong: calls of the functions, and of unknown ones."""
    wrong = []
    for line in found.splitlines():
        match = FOUND.match(line)
        if match is None:
            continue
        number, rule, said = match.groups()
        names = NAMED.findall(said)
        ours = any(name in functions for name in names)
        literal = rule == "invalid-argument-type" and ours and "found `Literal[" in said
        unknown = rule == "unresolved-reference" and bool(names) and re.search(rf"\bawait\s+{names[0]}\(", program)
        waits = rule in ("not-subscriptable", "not-iterable", "unresolved-attribute") and "CoroutineType" in said
        if (rule in CHECKED and (ours or rule == "unused-awaitable")) or literal or unknown or waits:
            wrong.append(f"  line {number}: {said.strip()}{' (write `await`)' if waits else ''}")
    return wrong


def _placeholder(name: str) -> Any:
    async def function() -> None: ...

    function.__name__ = function.__qualname__ = name
    return function


def _json_or_repr(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError):
        return repr(value)


def _shown(error: Any) -> str:
    """The error with the lines of the program that led to it."""
    said = str(error.display()).replace(f'File "{INPUT}", ', "").removeprefix("Traceback (most recent call last):\n")
    return said if len(said) <= LONGEST_PROBLEM else f"{said[:500]}\n…\n{said[-1_000:]}"


def _limit_itself() -> None:
    try:
        import resource
    except ImportError:  # not on Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_itself_to(memory: int, seconds: float) -> None:
    """Limits what this process takes from now on, on behalf of a program that has so much memory and time."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as sizes:  # noqa: PTH123 - starts faster
            taken = int(sizes.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):  # not on Linux
        return
    least, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (min(least, taken + ROOM + TIMES * memory), hard))
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit_time(math.ceil(used.ru_utime + used.ru_stime + SHARE * seconds + AT_LEAST), anew=True)


def _limit_time(seconds: int, *, anew: bool = False) -> None:
    """Limits this process to so many seconds of the processor, or gives it so many more than it has."""
    try:
        import resource
    except ImportError:
        return
    least, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if least == resource.RLIM_INFINITY and not anew:
        return
    most = seconds if anew else least + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _main() -> None:
    _limit_itself()
    import pydantic_monty

    task = read(sys.stdin.buffer)
    if task is not None:
        Sandbox(task, sys.stdin.buffer, sys.stdout.buffer).run(pydantic_monty)
    os._exit(0)  # at once: the sandbox's threads may outlive the interpreter and abort it


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[1])
    _main()
