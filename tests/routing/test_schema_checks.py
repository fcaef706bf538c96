"""Schemas of anybody's: one that takes for ever is given up, and keeps nobody waiting but whoever asked."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from types import MappingProxyType
from typing import Any

import pytest

from pegboard.errors import ArgumentsInvalid
from pegboard.routing import check_arguments, check_arguments_now, check_lightly, matches_output_schema
from pegboard.routing import schema_checks as module
from pegboard.routing.schema_checks import SchemaChecks, Unusable, schema_checks
from pegboard.testing import fake_tool
from pegboard_bench.hostile.evil_server import BACK, DOUBLE, PROMISE, WORST
from processes import alive, descendants, eventually

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="budgets of processor time are POSIX")

TWELVE = {"type": "string", "pattern": "^(jan|feb|dec)$"}
"""What nobody can tell to be quick, and is."""
BOMBS = [(DOUBLE, WORST["double"]), (BACK, WORST["back"]), (PROMISE, WORST["back"])]


@pytest.fixture
async def checks() -> AsyncIterator[SchemaChecks]:
    made = SchemaChecks(patience=60)
    yield made
    made.close()


@pytest.mark.requirement("D3")
@pytest.mark.parametrize(("schema", "value"), BOMBS, ids=["references that double", "a pattern", "both"])
async def test_a_schema_that_takes_for_ever_is_killed_and_the_loop_goes_on(
    checks: SchemaChecks, schema: dict[str, Any], value: Any
) -> None:
    asked = asyncio.create_task(checks.problems(schema, value))
    beats = 0
    while not asked.done():
        beats += 1
        await asyncio.sleep(0.001)

    with pytest.raises(Unusable, match="takes too long"):
        await asked
    assert beats > 10
    with pytest.raises(Unusable, match="took too long before"):
        await checks.problems(schema, value)
    assert await checks.problems(TWELVE, "feb") == [], "and others are judged as ever"


@pytest.mark.requirement("D3")
async def test_who_asks_while_others_take_long_waits_for_a_while_and_goes_on_unchecked() -> None:
    checks = SchemaChecks(budget=60, patience=0.2, workers=1)
    asked = [asyncio.create_task(checks.problems(*bomb)) for bomb in BOMBS]
    told = await asyncio.gather(*asked, checks.problems(TWELVE, "feb"), return_exceptions=True)
    assert [str(each) for each in told] == ["no time for it"] * 4
    checks.close()


@pytest.mark.requirement("D3")
async def test_a_tool_with_such_a_schema_is_called_and_the_log_says_that_it_was_not_checked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for schema, value in BOMBS:
        tool = fake_tool("bomb", schema=schema)
        await check_arguments(tool, value)
        check_arguments_now(tool, value)
        check_lightly(tool, value)
    promising = fake_tool("bomb")
    object.__setattr__(promising, "definition", {**promising.definition, "outputSchema": PROMISE})
    object.__setattr__(promising, "output_schema", PROMISE)
    assert await matches_output_schema(promising, {"content": [], "structuredContent": WORST["back"]})
    assert any("schema of " in record.message and record.levelno == logging.WARNING for record in caplog.records)


async def test_a_worker_judges_as_the_loop_does(checks: SchemaChecks) -> None:
    with pytest.raises(ArgumentsInvalid, match="month: 'may' does not match"):
        await check_arguments(fake_tool("x", schema={"properties": {"month": TWELVE}}), {"month": "may"})
    with pytest.raises(ArgumentsInvalid, match="month: 'may' does not match"):
        check_arguments_now(fake_tool("x", schema={"properties": {"month": TWELVE}}), {"month": "may"})
    check_lightly(fake_tool("x", schema={"properties": {"month": TWELVE}}), {"month": "may"})
    frozen = MappingProxyType({"patternProperties": MappingProxyType({"^n": {"type": "number"}})})
    assert await checks.problems(frozen, MappingProxyType({"n": math.nan, "m": ()})) == []
    assert await checks.problems(frozen, {"n": "x"}) == ["n: 'x' is not of type 'number'"]
    with pytest.raises(Unusable, match="error"):
        await checks.problems({"pattern": "(["}, "x")
    with pytest.raises(Unusable, match="no JSON"):
        await checks.problems({}, object())


async def test_a_schema_that_takes_all_memory_takes_none_of_ours(checks: SchemaChecks) -> None:
    quoting = {"patternProperties": {"x": {"anyOf": [{"type": "integer"}] * 5_000}}}

    with pytest.raises(Unusable):
        await checks.problems(quoting, {"x": "y" * 1_000_000})
    assert await checks.problems(TWELVE, "feb") == []


async def test_where_no_process_can_be_started_it_is_tried_once(
    checks: SchemaChecks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PROGRAM", "/no/such/program")
    for _ in range(2):
        with pytest.raises(Unusable, match="no process can be started"):
            await checks.problems(TWELVE, "feb")


ASKING = """
import os, sys, threading, time
from pegboard_bench.hostile.evil_server import BACK, WORST
from pegboard.routing.schema_checks import SchemaChecks, Unusable
checks = SchemaChecks(budget=1, patience=60)
threading.Thread(target=lambda: checks.problems_now({"pattern": "^(b|c)$"}, "b"), daemon=True).start()
checks.problems_now({"pattern": "^(b|c)$"}, "b")
threading.Thread(target=lambda: checks.problems_now(BACK, WORST["back"]), daemon=True).start()
print("asked", flush=True)
time.sleep(60)
"""


def test_no_worker_outlives_the_process_that_asked_not_even_one_that_is_busy() -> None:
    asking = subprocess.Popen([sys.executable, "-c", ASKING], stdout=subprocess.PIPE, env=dict(os.environ))
    assert asking.stdout is not None
    assert asking.stdout.readline() == b"asked\n"
    workers = descendants(asking.pid)
    assert workers
    asking.send_signal(signal.SIGKILL)
    asking.wait()
    asking.stdout.close()
    assert eventually(lambda: not any(map(alive, workers)))


def test_after_a_fork_there_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    before = schema_checks()
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert schema_checks() is not before
