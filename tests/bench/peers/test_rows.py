from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pegboard.evaluation.datasets import Query
from pegboard_bench.peers.__main__ import six_tools, strays
from pegboard_bench.peers.rows import SAMPLE, PeerRows, asked, peer_rows
from pegboard_bench.peers.table import PEERS, Peer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes an environment of a symbolic link")


async def measured(folder: Path, *peers: Peer, queries: int = 3) -> PeerRows:
    dataset = six_tools()
    texts = [dataset.queries[number % 3].text for number in range(queries)]
    many = replace(dataset, queries=tuple(Query(id=str(number), text=text) for number, text in enumerate(texts)))
    return await peer_rows(many, folder, lambda _done, _total: None, seed=7, peers=peers)


async def test_a_peer_that_fails_and_one_that_is_not_installed_are_said_and_the_others_run(
    fake: Callable[..., Peer], folder: Path
) -> None:
    absent = replace(fake(name="absent"), environment="absent")
    found = await measured(folder, fake("raise SystemExit('no such model')", name="broken"), absent, fake(name="good"))

    assert set(found.runs) == {"good"}
    assert found.missing["broken"] == "broken ended after 0 answers: no such model"
    assert "scripts/install_peers.py" in found.missing["absent"]


async def test_slow_peers_share_one_sample_of_a_large_set(fake: Callable[..., Peer], folder: Path) -> None:
    slow, other = fake(name="slow", slow=True), fake(name="other", slow=True)
    found = await measured(folder, slow, other, fake(name="quick"), queries=SAMPLE + 30)

    assert len(found.runs["slow"].rankings) == SAMPLE
    assert list(found.runs["slow"].rankings) == list(found.runs["other"].rankings)
    assert len(found.runs["quick"].rankings) == SAMPLE + 30


def test_a_set_that_is_no_larger_than_the_sample_is_asked_whole() -> None:
    slow = next(peer for peer in PEERS if peer.slow)

    assert asked(slow, SAMPLE, seed=1) == list(range(SAMPLE))
    assert asked(slow, 2000, seed=1) != asked(slow, 2000, seed=2)


async def test_a_peer_that_misses_the_obvious_is_told_from_one_that_works(
    fake: Callable[..., Peer], folder: Path
) -> None:
    backwards = fake(
        """
        import json, sys
        tools = json.load(open(sys.argv[1]))["tools"]
        print('{"build_s": 0, "version": "backwards 1"}')
        for _ in range(3):
            print(json.dumps({"ranking": [tool["uid"] for tool in tools[::-1]], "ms": 1}))
        """,
        name="backwards",
    )
    found = await peer_rows(six_tools(), folder, lambda _done, _total: None, seed=0, peers=(fake(), backwards))

    assert [line.split()[0] for line in strays(found)] == ["backwards"] * 3


def test_every_peer_has_an_adapter_and_a_name_of_its_own() -> None:
    assert all(peer.adapter.is_file() for peer in PEERS)
    assert len({peer.name for peer in PEERS}) == len(PEERS)
