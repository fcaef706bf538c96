"""Log records go to stderr, never to stdout, which belongs to results (and to the protocol in `pegboard mcp`)."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

FORMAT = "pegboard: %(levelname)s: %(message)s"

OURS = logging.getLogger("pegboard")


class OneLine(logging.Formatter):
    """Without tracebacks: those are for developers."""

    def formatException(self, ei: Any) -> str:  # noqa: N802  # the name of the base class
        return ""


@contextmanager
def to_stderr(*, debugging: bool) -> Iterator[None]:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(FORMAT) if debugging else OneLine(FORMAT))
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
