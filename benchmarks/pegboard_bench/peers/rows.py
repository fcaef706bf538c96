"""Every peer that is installed, over one set."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pegboard.evaluation.datasets import ToolSet
from pegboard.retrieval import Progress
from pegboard_bench.peers.runner import LIMIT_S, PeerError, PeerRun, rank
from pegboard_bench.peers.table import PEERS, Peer

SAMPLE = 120
"""Queries of a set that slow peers see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRows:
    """By the peer's name: what ran, and why the others did not."""

    runs: Mapping[str, PeerRun]
    missing: Mapping[str, str]


async def peer_rows(
    dataset: ToolSet,
    folder: Path,
    progress: Progress,
    *,
    seed: int,
    peers: Sequence[Peer] = PEERS,
    sample: int = SAMPLE,
    limit_s: float = LIMIT_S,
) -> PeerRows:
    """As many peers at once as there are cores, each on one thread; one that fails is said and left out."""
    runs: dict[str, PeerRun] = {}
    missing: dict[str, str] = {}
    free = asyncio.Semaphore(os.cpu_count() or 1)

    async def run(peer: Peer) -> None:
        numbers = asked(peer, len(dataset.queries), seed, sample)
        queries = {number: dataset.queries[number].text for number in numbers}
        async with free:
            try:
                _check_installed(peer, folder)
                runs[peer.name] = await rank(peer, folder, dataset.catalog, queries, limit_s=limit_s)
            except PeerError as error:
                missing[peer.name] = str(error)
        progress(len(runs) + len(missing), len(peers))

    await asyncio.gather(*map(run, peers))
    return PeerRows(runs=runs, missing=missing)


def _check_installed(peer: Peer, folder: Path) -> None:
    if not peer.python(folder).exists():
        raise PeerError(f"{peer.name} is not installed: run scripts/install_peers.py {folder}")


def asked(peer: Peer, count: int, seed: int, sample: int = SAMPLE) -> list[int]:
    """The numbers of a set's queries that a peer sees, ascending: all, or the one sample that slow peers share."""
    if not peer.slow or count <= sample:
        return list(range(count))
    return sorted(random.Random(seed).sample(range(count), sample))  # noqa: S311  # a sample, no secret
