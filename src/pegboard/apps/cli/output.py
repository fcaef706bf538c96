"""Results on stdout: tables for people, JSON for programs."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPED_WIDTH = 160
"""Columns where stdout is no terminal: wide enough that nothing is cut."""


def print_json(payload: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(payload, indent=2) + "\n")


def stdout() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PIPED_WIDTH)


def table(title: str, *columns: str) -> Table:
    """A table whose columns are left-aligned, or right-aligned where the name starts with `>`."""
    made = Table(title=plain(title), title_justify="left", show_edge=False, pad_edge=False)
    for column in columns:
        made.add_column(
            column.removeprefix(">"), justify="right" if column.startswith(">") else "left", overflow="fold"
        )
    return made


def cells(*values: object) -> list[Text]:
    return [plain(str(value)) for value in values]


def plain(text: str) -> Text:
    """Text as it is: what a server wrote is neither markup nor a control sequence of the terminal."""
    return Text("".join("\ufffd" if _unprintable(character) else character for character in text))


def _unprintable(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Cs"} and character != "\n"
