"""What a peer's adapter and the benchmark say to each other. Needs the standard library alone.

`python -m adapters.NAME REQUEST [VARIANT]`, where the file REQUEST is `{"k": …, "tools": [{"uid", "server", "name",
"description", "inputSchema"}, …], "queries": [text, …]}`. The answer is lines of JSON on stdout: `{"build_s": …,
"version": …}` once the tools are indexed, then `{"ranking": [uid, …], "ms": …}` for each query, best first.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TextIO

WARM_UPS = 3
"""Queries that are asked once before time is taken: the first ones load what is loaded late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerTool:
    """``uid`` is the name, with a number where an earlier tool has it: for peers that take every name once."""

    uid: str
    server: str
    name: str
    description: str
    schema: dict[str, Any]

    def definition(self) -> dict[str, Any]:
        """As MCP lists it, under the name that no other tool has."""
        return {"name": self.uid, "description": self.description, "inputSchema": self.schema}

    def parameters(self) -> dict[str, str]:
        """Name to description."""
        properties = self.schema.get("properties") or {}
        return {
            name: str(each.get("description") or "") if isinstance(each, dict) else ""
            for name, each in properties.items()
        }


Search = Callable[[str], Sequence[str]]
"""The uids of the best tools for a text, best first."""

Build = Callable[[Sequence[PeerTool], int, str], Search]
"""Indexes the tools; given how many a search shall find, and the variant."""


def serve(package: str, build: Build) -> None:
    """The adapter's whole job, from the request to the last answer. ``package`` is what the peer is called on PyPI."""
    answers = _answers()
    request = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    tools = [_tool(row) for row in request["tools"]]
    started = time.perf_counter()
    search = build(tools, request["k"], "".join(sys.argv[2:]))
    _answer(answers, build_s=time.perf_counter() - started, version=f"{package} {version(package)}")
    for text in request["queries"][:WARM_UPS]:
        search(text)
    for text in request["queries"]:
        started = time.perf_counter()
        found = search(text)
        took = time.perf_counter() - started
        _answer(answers, ranking=list(dict.fromkeys(found)), ms=took * 1000)


def _tool(row: dict[str, Any]) -> PeerTool:
    return PeerTool(
        uid=row["uid"],
        server=row["server"],
        name=row["name"],
        description=row["description"],
        schema=row["inputSchema"],
    )


def _answers() -> TextIO:
    """Stdout, for answers alone: what a peer prints itself goes to stderr from now on."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def _answer(answers: TextIO, **values: object) -> None:
    answers.write(json.dumps(values) + "\n")
    answers.flush()
