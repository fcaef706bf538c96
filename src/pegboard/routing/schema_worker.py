"""Holds values against JSON schemas, in a process of its own that may be killed at any moment.

A program as well, started as ``python -I -S schema_worker.py SECONDS SYS_PATH``: no import of pegboard, because it has
to start fast. It reads pairs of a schema and a value, and writes what is wrong with each: a list of sentences, or the
name of what kept it from judging. A schema that needs more than so many seconds of the processor ends it by a signal,
which no regular expression can keep from arriving; so does more memory than it may have.
"""

from __future__ import annotations

import json
import marshal
import signal
import sys
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

PROBLEMS = 8
LONGEST = 600
"""Characters of a sentence, which quotes the value."""
MEMORY = 384 * 1024 * 1024
"""Bytes of address space; an idle worker has 50 million."""
LENGTH = 8


def problems_of(schema: Mapping[str, Any], value: Any) -> list[str]:
    """What is wrong with a value, in at most `PROBLEMS` sentences.

    Raises whatever jsonschema raises for schemas that are not valid, and for valid ones that Python cannot follow.
    References are resolved within the schema only, never over a network.
    """
    import jsonschema.validators
    from referencing.jsonschema import EMPTY_REGISTRY

    dialect = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    errors: Iterable[Any] = dialect(schema, registry=EMPTY_REGISTRY).iter_errors(value)
    return [_sentence(error) for error, _ in zip(errors, range(PROBLEMS), strict=False)]


def read(stream: BinaryIO) -> bytes:
    """The next message; nothing at the end."""
    head = stream.read(LENGTH)
    return stream.read(int.from_bytes(head, "big")) if len(head) == LENGTH else b""


def write(stream: BinaryIO, message: bytes) -> None:
    stream.write(len(message).to_bytes(LENGTH, "big") + message)
    stream.flush()


def _sentence(error: Any) -> str:
    where = "/".join(str(step) for step in error.absolute_path)
    said = f"{where}: {error.message}" if where else str(error.message)
    half = LONGEST // 2
    return said if len(said) <= LONGEST else f"{said[:half]} … {said[-half:]}"


def _judged(schema: Mapping[str, Any], value: Any) -> list[str] | str:
    try:
        return problems_of(schema, value)
    except Exception as error:  # noqa: BLE001 - a schema of anybody's; whoever asked says what was wrong with it
        return type(error).__name__


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on Windows: there only the time is limited
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    least = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (least, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _main(seconds: float) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import jsonschema.validators  # noqa: F401 - before memory is limited, and before the first question waits for it

    _limit_memory()
    answers, questions = sys.stdout.buffer, sys.stdin.buffer
    write(answers, b"ready")
    timed = hasattr(signal, "setitimer")
    while question := read(questions):
        if timed:
            signal.setitimer(signal.ITIMER_PROF, seconds)
        judged = _judged(*map(marshal.loads, marshal.loads(question)))  # noqa: S302 - from the process that started this one
        if timed:
            signal.setitimer(signal.ITIMER_PROF, 0)
        write(answers, json.dumps(judged).encode())


if __name__ == "__main__":
    sys.path[:] = json.loads(sys.argv[2])
    _main(float(sys.argv[1]))
