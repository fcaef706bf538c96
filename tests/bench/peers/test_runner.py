from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard import Catalog, Tool
from pegboard.model import Server, ServerName, ToolId
from pegboard_bench.peers.__main__ import QUERIES, six_tools
from pegboard_bench.peers.runner import PeerError, rank, unique_names
from pegboard_bench.peers.table import Peer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="makes an environment of a symbolic link")

CATALOG = six_tools().catalog
TEXTS = dict(enumerate(QUERIES))
Fake = Callable[..., Peer]


def catalog_of(*tools: ToolId) -> Catalog:
    return Catalog.build((Server(name=ServerName(tool.server)), [Tool(id=tool)]) for tool in tools)


async def test_a_peer_ranks_every_query_with_each_tool_once_whatever_it_prints(fake: Fake, folder: Path) -> None:
    reports: list[tuple[int, int]] = []
    found = await rank(fake(), folder, CATALOG, TEXTS, progress=lambda done, total: reports.append((done, total)))

    assert set(found.rankings) == {0, 1, 2}
    for ranking in found.rankings.values():
        assert sorted(ranking) == sorted(tool.id for tool in CATALOG.tools)
    assert [found.rankings[number][0] for number in TEXTS] == list(QUERIES.values())
    assert found.version == "fake-peer 1.0"
    assert found.build_s >= 0
    assert found.p50_ms > 0
    assert reports == [(0, 3), (1, 3), (2, 3), (3, 3)]


async def test_rankings_keep_the_numbers_of_a_sample(fake: Fake, folder: Path) -> None:
    found = await rank(fake(), folder, CATALOG, {17: "send an email", 40: "songs of an artist"})

    assert {number: ranking[0].server for number, ranking in found.rankings.items()} == {17: "mail", 40: "music"}


def test_tools_of_one_name_get_a_name_each_and_none_takes_anothers() -> None:
    tools = ToolId("a", "search"), ToolId("b", "search_2"), ToolId("c", "Search"), ToolId("d", "search")

    assert unique_names(catalog_of(*tools)) == dict(
        zip(("search", "search_2", "Search_3", "search_4"), tools, strict=True)
    )


async def test_a_peer_that_crashes_is_an_error_with_its_last_words(fake: Fake, folder: Path) -> None:
    peer = fake('print("{}", flush=True)\nraise ValueError("Duplicate tool name: search")')

    with pytest.raises(PeerError, match=r"^fake ended after 1 answers: ValueError: Duplicate tool name: search$"):
        await rank(peer, folder, CATALOG, TEXTS)


async def test_a_peer_that_ends_early_without_a_word_is_an_error(fake: Fake, folder: Path) -> None:
    with pytest.raises(PeerError, match="it said nothing"):
        await rank(fake("pass"), folder, CATALOG, TEXTS)


@pytest.mark.parametrize(
    "answer",
    ["no JSON", "[]", '{"build_s": 1}', '{"ranking": ["a_tool_of_nobody"], "ms": 1}'],
)
async def test_a_peer_that_breaks_the_protocol_is_an_error(answer: str, fake: Fake, folder: Path) -> None:
    peer = fake(f"print({answer!r})\n" * 4)

    with pytest.raises(PeerError, match="gave an answer that is none"):
        await rank(peer, folder, CATALOG, TEXTS)


async def test_a_peer_that_takes_too_long_is_stopped(fake: Fake, folder: Path, tmp_path: Path) -> None:
    told = tmp_path / "pid"
    peer = fake(
        f"""
        import os, pathlib, signal
        pathlib.Path({str(told)!r}).write_text(str(os.getpid()))
        signal.pause()
        """
    )

    with pytest.raises(PeerError, match=r"fake was stopped after 4 s"):
        await rank(peer, folder, CATALOG, TEXTS, limit_s=4)
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.read_text()), 0)


async def test_a_peer_gets_one_thread_no_keys_and_a_home_of_its_own(
    fake: Fake, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    peer = fake(
        """
        import os
        raise SystemExit(f"{os.environ.get('OPENAI_API_KEY')} {os.environ['OMP_NUM_THREADS']} {os.environ['HOME']}")
        """
    )

    with pytest.raises(PeerError, match=r": None 1 .*pegboard-peer-"):
        await rank(peer, folder, CATALOG, TEXTS)
