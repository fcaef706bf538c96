from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from chroma_server import needs_chroma
from pegboard.testing import FakeEncoder
from pegboard_bench.index.server import ChromaServer

RunJson = Callable[..., Any]

KILLED = """
import os, signal, sys
from pegboard.apps.cli import app
from pegboard.testing import FakeEncoder

class Killing(FakeEncoder):
    async def encode(self, texts):
        if len(self.encoded) >= 8:
            {end}
        return await super().encode(texts)

app(["index", "--catalog", sys.argv[1], "--batch", "4"], obj={{"encoder": Killing()}})
"""


def test_what_was_embedded_is_not_embedded_again(run_json: RunJson, tools: Path, encoder: FakeEncoder) -> None:
    first = run_json("index", "--catalog", tools)
    embedded = len(encoder.encoded)
    second = run_json("index", "--catalog", tools)

    assert first["tools"] == 12
    assert first["texts_embedded"] == embedded == len(set(encoder.encoded))
    assert (second["texts_embedded"], len(encoder.encoded)) == (0, embedded)


@pytest.mark.requirement("design.index-resumes")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_is_gone_on_with_where_it_stopped(
    run_json: RunJson, tools: Path, encoder: FakeEncoder, by: signal.Signals
) -> None:
    program = KILLED.format(end=f"os.kill(os.getpid(), {int(by)}); import asyncio; await asyncio.sleep(60)")
    killed = subprocess.run([sys.executable, "-c", program, str(tools)], env=dict(os.environ), check=False)
    assert killed.returncode in (-by, 130)

    after = run_json("index", "--catalog", tools)
    resumed = set(encoder.encoded)
    encoder.encoded.clear()
    (Path(os.environ["PEGBOARD_CACHE_DIR"]) / "embeddings.sqlite").unlink()
    anew = run_json("index", "--catalog", tools)

    assert after["texts_embedded"] == len(resumed) == anew["texts_embedded"] - 8


def test_a_batch_is_as_large_as_it_is_asked_for(run_json: RunJson, tools: Path) -> None:
    class Noting(FakeEncoder):
        def __init__(self) -> None:
            super().__init__()
            self.sizes: list[int] = []

        async def encode(self, texts: Any) -> Any:
            self.sizes.append(len(texts))
            return await super().encode(texts)

    encoder = Noting()
    run_json("index", "--catalog", tools, "--batch", 5, encoder=encoder)

    assert max(encoder.sizes) == 5


@pytest.mark.parametrize("profile", ["attention", "semantic"])
def test_a_profile_has_the_texts_embedded_that_it_ranks_by(
    run_json: RunJson, tools: Path, encoder: FakeEncoder, profile: str
) -> None:
    report = run_json("index", "--catalog", tools, "--profile", profile)
    run_json("route", "put a meeting into the calendar", "--catalog", tools, "--profile", profile)

    assert report["texts_embedded"] == 11, "two tools say the same"
    assert encoder.encoded[11:] == ["put a meeting into the calendar"]


def test_people_read_how_much_was_done(run: Callable[..., Result], tools: Path) -> None:
    shown = [run("index", "--catalog", tools).output for _ in range(2)]

    assert "12 tools" in shown[0]
    assert "texts embedded." in shown[0]
    assert "nothing had to be embedded." in shown[1]


def test_options_before_a_subcommand_are_refused(run: Callable[..., Result], tools: Path, tmp_path: Path) -> None:
    result = run("index", "--catalog", tools, "--batch", 5, "build", "--out", tmp_path / "shards")

    assert result.exit_code == 2
    assert "--catalog, --batch: write options after 'build'" in result.stderr
    assert not (tmp_path / "shards").exists()


def test_without_tools_there_is_nothing_to_index(
    run: Callable[..., Result], servers_file: Callable[..., Path], machine: Path
) -> None:
    result = run("index", "--config", servers_file(gone={"command": str(machine / "no-such-program")}))

    assert result.exit_code == 1
    assert "no tools to index" in result.stderr


@needs_chroma
def test_a_server_holds_the_tools_there_are_and_loses_those_that_are_gone(
    run_json: RunJson, tools: Path, machine: Path, chroma: ChromaServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fewer = machine / "fewer.jsonl"
    fewer.write_text("".join(tools.read_text().splitlines(keepends=True)[1:]))
    monkeypatch.setenv("PEGBOARD_INDEX", "chroma")
    monkeypatch.setenv("PEGBOARD_CHROMA", json.dumps({"url": chroma.url}))
    reports = [run_json("index", "--catalog", file) for file in (tools, tools, fewer)]
    found = run_json("route", "put a meeting into the calendar", "--catalog", tools)

    assert [(each["tools_added"], each["tools_removed"]) for each in reports] == [(12, 0), (0, 0), (0, 1)]
    assert [each["index"] for each in reports] == ["chroma"] * 3
    assert found["active"]


@pytest.mark.requirement("design.index-down")
def test_without_its_server_indexing_fails_and_says_why(
    run_json: RunJson, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_INDEX", "chroma")
    monkeypatch.setenv("PEGBOARD_CHROMA", '{"url": "http://127.0.0.1:9"}')

    error = run_json("index", "--catalog", tools, code=1)

    assert error["error"] == "store_error"
    assert "http://127.0.0.1:9" in error["message"]
