"""Log records go to stderr, never to stdout, which belongs to results (and to the protocol in `pegboard mcp`)."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Literal

from pegboard.terminal import printable

FORMAT = "pegboard: %(levelname)s: %(message)s"

OURS = logging.getLogger("pegboard")


class Text(logging.Formatter):
    """For a terminal, which obeys nobody: a record may quote what a server said."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class OneLine(Text):
    """Without tracebacks: those are for developers."""

    def formatException(self, ei: Any) -> str:  # noqa: N802  # the name of the base class
        return ""


class JsonLines(logging.Formatter):
    """One object a line, with what a record brings in ``fields`` beside its message. Of an exception its kind is said:
    its text may quote anything, and it and the traceback are for developers."""

    def __init__(self, *, tracebacks: bool) -> None:
        super().__init__()
        self._tracebacks = tracebacks
        self._encode = json.JSONEncoder(default=str).encode

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        said |= {name: value for name, value in getattr(record, "fields", {}).items() if name not in said}
        if record.exc_info and record.exc_info[0]:
            said["exception"] = record.exc_info[0].__name__
            if self._tracebacks:
                said["traceback"] = self.formatException(record.exc_info)
        return self._encode(said)


class Stderr(logging.StreamHandler[Any]):
    """The program's own handler, in either form."""

    def __init__(self, *, debugging: bool) -> None:
        super().__init__(sys.stderr)
        self._debugging = debugging
        self.speak("text")

    def speak(self, form: Literal["text", "json"]) -> None:
        if form == "json":
            self.setFormatter(JsonLines(tracebacks=self._debugging))
        else:
            self.setFormatter(Text(FORMAT) if self._debugging else OneLine(FORMAT))


@contextmanager
def to_stderr(*, debugging: bool) -> Iterator[None]:
    handler = Stderr(debugging=debugging)
    level = OURS.level
    logging.getLogger().addHandler(handler)
    OURS.setLevel(logging.DEBUG if debugging else logging.ERROR)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        OURS.setLevel(level)


def set_level(level: str | None) -> None:
    """How much a program that stays says; without a level warnings too, which others put into their results."""
    OURS.setLevel(level or min(OURS.level, logging.WARNING))


def set_format(form: Literal["text", "json"]) -> None:
    for handler in logging.getLogger().handlers:
        if isinstance(handler, Stderr):
            handler.speak(form)
