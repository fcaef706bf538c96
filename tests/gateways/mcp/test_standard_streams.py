"""Standard input and output as a transport: pipes on the event loop, anything else as the SDK does it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import asyncio, os, sys
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse
from pegboard.gateways.mcp.transport.standard_streams import standard_streams

async def main():
    async with standard_streams() as (reading, writing):
        print("stray", flush=True)
        os.system("echo a child too")
        async for each in reading:
            if isinstance(each, Exception):
                print("unreadable", file=sys.stderr)
                continue
            answer = JSONRPCResponse(jsonrpc="2.0", id=each.message.id, result=dict(each.message.params))
            await writing.send(SessionMessage(answer))
        await writing.aclose()
    print(os.get_blocking(0), os.get_blocking(1), flush=True)

asyncio.run(main())
"""
BIG = "ü" * 3_000_000


def asked(number: int, text: str) -> bytes:
    request: dict[str, Any] = {"jsonrpc": "2.0", "id": number, "method": "x", "params": {"text": text}}
    return json.dumps(request).encode() + b"\n"


REQUESTS = asked(1, "short") + b"no json\n" + asked(2, BIG) + asked(3, "after")


def check(out: bytes, err: bytes) -> None:
    *answers, last = out.splitlines()
    said = {each["id"]: each["result"]["text"] for each in map(json.loads, answers)}
    assert said == {1: "short", 2: BIG, 3: "after"}
    assert last == b"True True"
    assert {"stray", "a child too", "unreadable"} <= set(err.decode().splitlines())


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_what_goes_through_pipes_is_whole_and_stray_output_stays_out(loop: str) -> None:
    program = PROGRAM if loop == "asyncio" else PROGRAM.replace("asyncio.run(", "import uvloop; uvloop.run(")
    ended = subprocess.run([sys.executable, "-c", program], input=REQUESTS, capture_output=True, timeout=60, check=True)
    check(ended.stdout, ended.stderr)


def test_files_are_read_and_written_too(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(REQUESTS)
    with (tmp_path / "in").open("rb") as given, (tmp_path / "out").open("wb") as made:
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM], stdin=given, stdout=made, stderr=subprocess.PIPE, timeout=60, check=True
        )
    check((tmp_path / "out").read_bytes(), ended.stderr)


def test_a_client_that_is_gone_ends_it_without_a_complaint() -> None:
    silent = PROGRAM.replace("    print(os.get", "    (os.get")
    with subprocess.Popen(
        [sys.executable, "-c", silent.replace(", flush=True)\n\nasyncio", ")\n\nasyncio")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(asked(1, "first"))
        process.stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        process.stdin.write(asked(2, BIG))
        process.stdin.close()
        assert b"Traceback" not in process.stderr.read()


GONE = """
import asyncio, os, sys
from pegboard.gateways.mcp.transport.standard_streams import Stdout

async def main():
    reading, writing = os.pipe()
    if "before" in sys.argv:
        os.close(reading)
    out = await Stdout.open(writing)
    if "after" in sys.argv:
        os.close(reading)
    for _ in range(10):
        await out.write("too late")
        await out.flush()
        await asyncio.sleep(0)
    out.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_answers_to_a_client_that_left_during_startup_are_dropped(loop: str, when: str) -> None:
    program = GONE if loop == "asyncio" else GONE.replace("asyncio.run(", "import uvloop; uvloop.run(")
    ended = subprocess.run([sys.executable, "-c", program, when], capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, b"")
