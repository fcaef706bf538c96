"""Boards in processes that are forked, that end without closing them, and on other loops than asyncio's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from upstream_specs import SCRIPTED

pytestmark = pytest.mark.timeout(600)

BOARD = """
import multiprocessing, os, sys
from pegboard import Board, Call

def tide(harbour: str) -> str:
    "When the tide comes in at a harbour"
    return f"{harbour}: 16:20"

CONFIG = {"mcpServers": {"scripted": {"command": sys.executable, "args": [SCRIPTED]}}} if SERVED else None
board = Board([tide], config=CONFIG, k=50, start_wait=60, gate="reachable")

def use(who):
    decision = board.route_now("when is high tide in Bergen, and add two numbers?")
    said = [board.execute_now(Call(name="tide", arguments={"harbour": "Bergen"}), decision).text]
    if SERVED:
        said.append(board.execute_now(Call(name="add", arguments={"a": 1, "b": 2}), decision).text)
    print(who, *said, flush=True)
"""
FORKED = """
use("parent")
child = os.fork()
if child == 0:
    use("child")
    sys.exit(0)
print("ended", os.waitpid(child, 0)[1], flush=True)
use("parent")
"""
WORKER = """
use("parent")
worker = multiprocessing.get_context("fork").Process(target=use, args=("child",))
worker.start()
worker.join()
print("ended", worker.exitcode, flush=True)
use("parent")
"""
NO_MORE_THREADS = """
use("parent")

import threading

def refused(thread):
    raise RuntimeError("can't create new thread at interpreter shutdown")

threading._register_atexit(lambda: setattr(threading.Thread, "start", refused))
"""
"""What Python does from 3.12 on by itself, before the functions of `atexit` are called."""


def run(program: str, home: Path, *, served: bool) -> subprocess.CompletedProcess[str]:
    head = f"SCRIPTED, SERVED = {SCRIPTED!r}, {served}\n"
    env = {**os.environ, "HOME": str(home), "PYTHONWARNINGS": "error,ignore::DeprecationWarning"}
    return subprocess.run(
        [sys.executable, "-c", head + BOARD + program], capture_output=True, text=True, env=env, timeout=500
    )


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("served", [False, True], ids=["functions", "servers"])
@pytest.mark.parametrize("program", [FORKED, WORKER], ids=["os.fork", "multiprocessing"])
def test_a_board_works_in_a_forked_process_and_goes_on_in_its_parent(
    tmp_path: Path, program: str, served: bool
) -> None:
    done = run(program, tmp_path, served=served)

    answers = "Bergen: 16:20 3" if served else "Bergen: 16:20"
    assert done.stdout.splitlines() == [f"parent {answers}", f"child {answers}", "ended 0", f"parent {answers}"]


@pytest.mark.requirement("C6")
@pytest.mark.parametrize("served", [False, True], ids=["functions", "servers"])
@pytest.mark.parametrize("program", ["use('parent')", NO_MORE_THREADS], ids=["", "without new threads"])
def test_a_board_that_nobody_closes_ends_quietly_with_its_process(tmp_path: Path, program: str, served: bool) -> None:
    done = run(program, tmp_path, served=served)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("parent Bergen: 16:20")


@pytest.mark.requirement("C6")
def test_a_board_is_used_under_trio_and_cancelling_there_ends_its_work(tmp_path: Path) -> None:
    program = """
import trio

async def wind(place: str) -> str:
    "How strong the wind is at a place"
    await trio.sleep(0)
    return f"{place}: calm"

async def main():
    async with Board([tide, wind]) as board:
        decision = await board.route("when is high tide, and how strong is the wind?")
        for name, arguments in (("tide", {"harbour": "Bergen"}), ("wind", {"place": "Oslo"})):
            print((await board.execute(Call(name=name, arguments=arguments), decision)).text)
        with trio.move_on_after(0) as scope:
            await board.route("the tide?")
        print(scope.cancelled_caught, flush=True)

trio.run(main)
"""
    done = run(program, tmp_path, served=False)

    assert done.stdout.splitlines() == ["Bergen: 16:20", "Oslo: calm", "True"], done.stderr
