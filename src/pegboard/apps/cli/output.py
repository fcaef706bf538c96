"""Writes results to stdout: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pegboard.errors import ConfigError

PIPED_WIDTH = 160
"""Width in columns if stdout is not a terminal: wide enough that nothing is cut."""


def print_json(payload: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(payload, indent=2) + "\n")


def stdout() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPED_WIDTH)


def table(title: str, *columns: str) -> Table:
    """A table whose columns are left-aligned, or right-aligned if their name starts with `>`."""
    made = Table(title=plain(title), title_justify="left", show_edge=False, pad_edge=False)
    for column in columns:
        made.add_column(
            column.removeprefix(">"), justify="right" if column.startswith(">") else "left", overflow="fold"
        )
    return made


def cells(*values: object) -> list[Text]:
    return [plain(str(value)) for value in values]


def plain(text: str) -> Text:
    """Text without markup and control characters: a server's text must not control the terminal."""
    return Text("".join("\ufffd" if _unprintable(character) else character for character in text))


def _unprintable(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Cs"} and character != "\n"


def unwritable(out: Path, why: str) -> ConfigError:
    return ConfigError(f"Cannot write {str(out)!r}: {why}.", remedy="Name another file with --out.")
