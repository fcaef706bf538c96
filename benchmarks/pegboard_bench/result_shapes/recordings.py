"""The recorded results."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.model import JsonObject

FILE = Path(__file__).parent / "recordings.jsonl.gz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """One result: ``number`` is its place among the calls of its server."""

    server: str
    tool: str
    number: int
    result: dict[str, Any]
    schema: JsonObject | None
    arguments: JsonObject

    @property
    def name(self) -> str:
        return f"{self.server}/{self.tool}"


def recordings(path: Path = FILE) -> list[Recording]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [
        Recording(
            server=row["server"],
            tool=row["tool"],
            number=row["number"],
            result=row["result"],
            schema=row["outputSchema"],
            arguments=row["arguments"],
        )
        for row in rows
    ]
