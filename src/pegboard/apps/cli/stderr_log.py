"""Logging to stderr. Stdout is reserved for results, and for the protocol in `pegboard mcp`."""

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


class TextFormatter(logging.Formatter):
    """Formats records for a terminal, with control characters escaped: a record may quote a server."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class OneLineFormatter(TextFormatter):
    """Leaves out tracebacks, which are for developers."""

    def formatException(self, ei: Any) -> str:  # noqa: N802  # the name of the base class
        return ""


class JsonFormatter(logging.Formatter):
    """One JSON object per line, including the record's ``fields``. Only the type of an exception is logged, because its
    text may quote anything; tracebacks are for developers."""

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


class StderrHandler(logging.StreamHandler[Any]):
    """The program's own handler, for text or JSON."""

    def __init__(self, *, debugging: bool) -> None:
        super().__init__(sys.stderr)
        self._debugging = debugging
        self.speak("text")

    def speak(self, form: Literal["text", "json"]) -> None:
        if form == "json":
            self.setFormatter(JsonFormatter(tracebacks=self._debugging))
        else:
            self.setFormatter(TextFormatter(FORMAT) if self._debugging else OneLineFormatter(FORMAT))


@contextmanager
def to_stderr(*, debugging: bool) -> Iterator[None]:
    handler = StderrHandler(debugging=debugging)
    level = OURS.level
    logging.getLogger().addHandler(handler)
    OURS.setLevel(logging.DEBUG if debugging else logging.ERROR)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        OURS.setLevel(level)


def set_level(level: str | None) -> None:
    """Set the log level of a long-running command; without a level, warnings are logged too, which other commands
    report in their results."""
    OURS.setLevel(level or min(OURS.level, logging.WARNING))


def set_format(form: Literal["text", "json"]) -> None:
    for handler in logging.getLogger().handlers:
        if isinstance(handler, StderrHandler):
            handler.speak(form)
