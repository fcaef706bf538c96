"""What a client is to do over the fleet: look for a tool, call what it found, and be given its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Way = Literal["direct", "stdio", "http", "grows", "pushes"]
"""Without Pegboard; with it in the place of the fleet, on stdio and over HTTP, as it is by default; on stdio with a
list that grows by what searches find (`exposure = "dynamic"`), and by what the conversation makes likely (`push`)."""
TRANSPORTS: tuple[Way, ...] = ("stdio", "http")
PEGBOARD = "pegboard"
"""The name of its entry in a client."""
SEARCH, INVOKE = "search_tools", "invoke_tool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """``query``: how a model looks for the tool, ``word``: what it matches names and descriptions with where it has
    nothing else; ``answer``: words that stand in its result and nowhere else."""

    query: str
    word: str
    server: str
    tool: str
    arguments: Mapping[str, Any]
    answer: str

    @property
    def search(self) -> dict[str, Any]:
        return {"query": self.query}

    @property
    def invocation(self) -> dict[str, Any]:
        return {"name": self.tool, "arguments": dict(self.arguments)}

    def is_found(self, said: str) -> bool:
        """Whether an answer of the search has the tool's signature."""
        return f"{self.tool}(" in said


def needs(repository: Path) -> Sequence[Need]:
    """Of servers that need no network. ``repository`` as `scripts/install_servers.py` makes it."""
    return (
        Need(
            query="convert a time between timezones",
            word="timezone",
            server="time",
            tool="convert_time",
            arguments={"source_timezone": "UTC", "time": "16:30", "target_timezone": "Asia/Tokyo"},
            answer="+9.0h",
        ),
        Need(
            query="show the commit history of a git repository",
            word="commit",
            server="git",
            tool="git_log",
            arguments={"repo_path": str(repository)},
            answer="Hang up the first hook",
        ),
        Need(
            query="echo a message back",
            word="echo",
            server="everything",
            tool="echo",
            arguments={"message": "a pegboard with three hooks"},
            answer="Echo: a pegboard with three hooks",
        ),
    )
