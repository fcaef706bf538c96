"""Conversations on the disk: a run that was broken off goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from pegboard.bench.coding_agents.sessions import Session


@dataclass(frozen=True, slots=True)
class Kept:
    """``folder``: where each conversation is a file; None: nothing is kept. ``resume``: what is there is not held
    again."""

    folder: Path | None = None
    resume: bool = False

    def held(self, name: str, hold: Callable[[], Session]) -> Session:
        if self.folder is None:
            return hold()
        path = self.folder / f"{name}.json"
        if self.resume and path.exists():
            return Session(**json.loads(path.read_text("utf-8")))
        found = hold()
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(found), ensure_ascii=False), "utf-8")
        return found
