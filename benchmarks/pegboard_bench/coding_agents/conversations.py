"""Conversations on the disk: a run that was broken off goes on where it was."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path

from pegboard_bench.coding_agents.sessions import Session

PREFIX = "pegboard-agents-"


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
        if self.resume and (before := self.read(name)) is not None:
            return before
        found = hold()
        self.folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(found), ensure_ascii=False), "utf-8")
        return found

    def read(self, name: str) -> Session | None:
        """A conversation of an earlier run; None where it is not kept."""
        path = None if self.folder is None else self.folder / f"{name}.json"
        return Session(**json.loads(path.read_text("utf-8"))) if path is not None and path.exists() else None

    @contextmanager
    def workplace(self) -> Iterator[Path]:
        """An empty folder for the agents to work in, until the end.

        Agents write its path into their prompts. With conversations that are kept it has the same path in every run:
        in a run that was resumed under another one, prompts would differ from those before them in the middle, and a
        cache would be billed for that.
        """
        if self.folder is None:
            with tempfile.TemporaryDirectory(prefix=PREFIX) as drawn:
                yield Path(drawn)
            return
        name = blake2b(str(self.folder.resolve()).encode(), digest_size=4).hexdigest()
        made = Path(tempfile.gettempdir()) / f"{PREFIX}{name}"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(mode=0o700)
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)
