"""Servers that write down each start and each request: what was not asked of them can be shown."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.settings.server_spec import ServerSpec

PLAIN = str(Path(__file__).parent / "servers" / "plain.py")


@dataclass(frozen=True, slots=True)
class Journal:
    """What the server ``name`` wrote down, in a file in ``folder``."""

    name: str
    folder: Path

    def spec(self, *tools: str, **fields: Any) -> ServerSpec:
        return ServerSpec(name=self.name, command=sys.executable, args=(PLAIN, str(self._file), *tools), **fields)

    @property
    def starts(self) -> list[int]:
        """The process ids of all its starts."""
        return [int(line.removeprefix("start ")) for line in self._lines if line.startswith("start ")]

    @property
    def methods(self) -> list[str]:
        """What it was asked, in order, over all its starts."""
        return [line for line in self._lines if not line.startswith("start ")]

    @property
    def _lines(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []

    @property
    def _file(self) -> Path:
        return self.folder / f"{self.name}.journal"
