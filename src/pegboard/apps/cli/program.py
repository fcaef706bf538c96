"""Where every command begins and ends: what goes wrong in between is said once, in one line, on stderr."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from pegboard.apps.cli import logs
from pegboard.errors import CatalogError, ConfigError, PegboardError

FAILED = 1
MISUSED = 2
INTERRUPTED = 130


class Program(TyperGroup):
    """The group of all commands. Exit codes: 0 done, 1 failed, 2 wrong use or configuration, 130 interrupted."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        words = list(sys.argv[1:] if args is None else args)
        debugging = _has(words, "--verbose") or bool(os.environ.get("PEGBOARD_DEBUG"))
        with logs.to_stderr(debugging=debugging):
            try:
                code = super().main(words, *rest, **extra | {"standalone_mode": False})
                sys.stdout.flush()
            except (KeyboardInterrupt, typer.Abort):  # the latter where a question was not answered
                code = INTERRUPTED
            except BrokenPipeError:
                code = _reader_gone()
            except Exception as error:  # noqa: BLE001  # the last place that can turn it into a sentence
                if debugging:
                    traceback.print_exc()
                code = _say(_cause(error), as_json=_has(words, "--json"))
        sys.exit(code if isinstance(code, int) else 0)


def _has(words: Sequence[str], flag: str) -> bool:
    """Whether a flag was given; what follows `--` is no flag."""
    return flag in (words[: words.index("--")] if "--" in words else words)


def _cause(error: Exception) -> Exception:
    """What lies in groups of one, as task groups make them."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _say(error: Exception, *, as_json: bool) -> int:
    payload = _payload(error)
    payload.setdefault("remedy", "")
    if as_json:
        sys.stdout.write(json.dumps(payload, indent=2) + "\n")
    else:
        sentence = " ".join(f"{payload['message']} {payload['remedy']}".split())
        sys.stderr.write(f"pegboard: {sentence}\n")
    return MISUSED if isinstance(error, ConfigError | CatalogError | typer.TyperException) else FAILED


def _payload(error: Exception) -> dict[str, Any]:
    if isinstance(error, PegboardError):
        return error.payload()
    if isinstance(error, typer.TyperException):
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "pegboard"
        return {
            "error": "usage_error",
            "message": error.format_message().rstrip(".") + ".",
            "remedy": f"`{command} --help` shows how it is used.",
        }
    return {
        "error": "internal_error",
        "message": f"This is a defect of Pegboard: {type(error).__name__}: {error}.",
        "remedy": "Run it again with --verbose and report what that prints.",
    }


def _reader_gone() -> int:
    """`pegboard … | head`: nothing more can be said, nor may Python's own flush at exit try."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILED
