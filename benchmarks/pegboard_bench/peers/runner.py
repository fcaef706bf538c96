"""One peer over one catalog, in a process of the peer's own environment (`adapters.protocol`)."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from pegboard.catalog import Catalog
from pegboard.model import ToolId
from pegboard.retrieval import Progress
from pegboard_bench.peers.table import Peer

K = 20
"""Tools asked of each query: enough for every metric at 10 where copies of a tool share a place."""
LIMIT_S = 3600.0
"""A peer that takes longer over one set is stopped."""
ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
OFFLINE = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}
INHERITED = ("PATH", "SYSTEMROOT")
"""Nothing else of the environment: no peer shall find a key for a service, or a cache of an earlier run."""


STDERR = "stderr"


class PeerError(RuntimeError):
    """A peer that stopped, broke the protocol or took too long: one line, for the report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRun:
    """The query's number to what the peer found, best first; seconds to index; median milliseconds a query.

    ``version`` is the package as it was run: `ratel-ai 0.12.0`.
    """

    version: str
    rankings: Mapping[int, tuple[ToolId, ...]]
    build_s: float
    p50_ms: float


async def rank(
    peer: Peer,
    folder: Path,
    catalog: Catalog,
    queries: Mapping[int, str],
    *,
    progress: Progress = lambda _done, _total: None,
    limit_s: float = LIMIT_S,
) -> PeerRun:
    """Every query through one peer, whose environment is in ``folder``. Raises PeerError."""
    named = unique_names(catalog)
    with tempfile.TemporaryDirectory(prefix="pegboard-peer-") as home:
        request = _written(Path(home), catalog, named, list(queries.values()))
        try:
            async with asyncio.timeout(limit_s), _started(peer, folder, request) as process:
                lines = await _lines(process, len(queries), progress)
        except TimeoutError as error:
            raise PeerError(f"{peer.name} was stopped after {limit_s:g} s") from error
        if process.returncode or len(lines) != len(queries) + 1:
            raise PeerError(f"{peer.name} ended after {len(lines)} answers: {_last_words(Path(home))}")
    try:
        return _run(lines, queries, named)
    except (ValueError, TypeError, KeyError) as error:
        raise PeerError(f"{peer.name} gave an answer that is none: {type(error).__name__}: {error}") from error


def unique_names(catalog: Catalog) -> dict[str, ToolId]:
    """A name for each tool that no other has, not even in other case: the tool's own, numbered where it is taken."""
    found: dict[str, ToolId] = {}
    taken: set[str] = set()
    for tool in catalog.tools:
        uid = next(name for name in _numbered(tool.name) if name.casefold() not in taken)
        taken.add(uid.casefold())
        found[uid] = tool.id
    return found


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in count(2))


def _written(home: Path, catalog: Catalog, named: Mapping[str, ToolId], queries: Sequence[str]) -> Path:
    """The request's file."""
    rows = [
        {
            "uid": uid,
            "server": tool.server,
            "name": tool.name,
            "description": tool.description,
            "inputSchema": tool.input_schema or {"type": "object", "properties": {}},
        }
        for uid, tool in zip(named, catalog.tools, strict=True)
    ]
    path = home / "request.json"
    path.write_text(json.dumps({"k": K, "tools": rows, "queries": queries}), "utf-8")
    return path


@asynccontextmanager
async def _started(peer: Peer, folder: Path, request: Path) -> AsyncIterator[Process]:
    """The adapter's process, gone when the block ends. What it says on stderr is kept beside the request."""
    adapters, home = peer.adapter.parent, request.parent
    with (home / STDERR).open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *_command(peer, folder, request),
            stdout=PIPE,
            stderr=stderr,
            cwd=home,
            env=_environment(adapters.parent, home),
        )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _command(peer: Peer, folder: Path, request: Path) -> list[str]:
    module = f"{peer.adapter.parent.name}.{peer.adapter.stem}"
    return [str(peer.python(folder.absolute())), "-m", module, str(request), peer.variant]


def _environment(packages: Path, home: Path) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    own = {"HOME": str(home), "PYTHONPATH": str(packages)}
    return inherited | own | OFFLINE | dict.fromkeys(ONE_THREAD, "1")


async def _lines(process: Process, queries: int, progress: Progress) -> list[bytes]:
    """All that it answered: how it was built, then one line a query."""
    lines: list[bytes] = []
    if process.stdout is not None:
        async for line in process.stdout:
            lines.append(line)
            progress(len(lines) - 1, queries)
    await process.wait()
    return lines


def _last_words(home: Path) -> str:
    said = (home / STDERR).read_text("utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(said) if line.strip()), "it said nothing")


def _run(lines: Sequence[bytes], queries: Iterable[int], named: Mapping[str, ToolId]) -> PeerRun:
    built, *answers = map(json.loads, lines)
    return PeerRun(
        version=built["version"],
        rankings={
            number: tuple(named[uid] for uid in answer["ranking"])
            for number, answer in zip(queries, answers, strict=True)
        },
        build_s=built["build_s"],
        p50_ms=statistics.median(answer["ms"] for answer in answers),
    )
