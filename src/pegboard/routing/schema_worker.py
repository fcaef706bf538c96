"""Checks values against JSON schemas, in a separate process that may be killed at any moment.

It is also a program, started as ``python -I -S schema_worker.py SECONDS SYS_PATH``, which does not import pegboard so
that it starts fast. It reads pairs of a schema and a value, and writes what is wrong with each: a list of sentences, or
the name of the exception that prevented the check. A check that takes more processor seconds ends the process by a
signal, which not even a regular expression can delay; so does exceeding the memory limit.
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
"""Maximum characters of a sentence, which quotes the value."""
MEMORY = 384 * 1024 * 1024
"""Bytes of address space; an idle worker has 50 million."""
LENGTH = 8


def problems_of(schema: Mapping[str, Any], value: Any) -> list[str]:
    """What is wrong with a value, in at most `PROBLEMS` sentences.

    Raises whatever jsonschema raises for invalid schemas, and for valid ones that Python cannot process.
    References are resolved within the schema only, never over a network.
    """
    import jsonschema.validators
    from referencing.jsonschema import EMPTY_REGISTRY

    dialect = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    errors: Iterable[Any] = dialect(schema, registry=EMPTY_REGISTRY).iter_errors(value)
    return [_sentence(error) for error, _ in zip(errors, range(PROBLEMS), strict=False)]


def read(stream: BinaryIO) -> bytes:
    """The next message; empty at the end of the stream."""
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
    except Exception as error:  # noqa: BLE001 - the schema is untrusted; the caller reports the error
        return type(error).__name__


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # not on Windows, where only the time is limited
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    least = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (least, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _main(seconds: float) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    import jsonschema.validators  # noqa: F401 - before memory is limited, and before the first check waits for it

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
