"""Programs in the sandbox: what they can do, and every way out of it that was thought of."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from pegboard.errors import ConfigError
from pegboard.programs import runner, sandbox_worker
from pegboard.programs.program_run import ProgramRun
from pegboard.programs.result_values import CallFailed
from pegboard.programs.runner import LONGEST_PROGRAM, ProgramRunner
from pegboard.settings.program_settings import ProgramSettings
from processes import until
from program_escapes import ESCAPES

DECLARED = {
    "find": "async def find(a: int = ..., mode: Literal['x', 'y'] = ..., **more: Any) -> Any: ...",
    "fail": "async def fail() -> Any: ...",
    "wait": "async def wait() -> Any: ...",
}
LONG = {"seconds": 60.0, "wait": 120.0}
"""More than any program here takes on a busy machine, to which a sandbox gives way."""


class Tools:
    """Answers calls, and notes them."""

    def __init__(self, answers: Mapping[str, Any] = {}) -> None:
        self.made: list[tuple[str, list[Any], dict[str, Any], int]] = []
        self.answers = answers
        self.cancelled = 0

    async def __call__(self, function: str, arguments: list[Any], named: dict[str, Any], line: int) -> Any:
        self.made.append((function, arguments, named, line))
        if function == "fail":
            raise CallFailed("no such file")
        if function == "wait":
            try:
                await asyncio.Event().wait()
            finally:
                self.cancelled += 1
        return self.answers.get(function, {"x": named.get("a")})


async def run(program: str, tools: Tools | None = None, **options: Any) -> ProgramRun:
    settings = ProgramSettings(mode="on", **(LONG | options))
    return await ProgramRunner(settings).run(program, DECLARED, tools or Tools())


@pytest.mark.requirement("programs.sandbox")
async def test_a_program_calls_tools_prints_and_ends_with_a_value() -> None:
    tools = Tools()
    done = await run("found = await find(a=3, mode='x')\nprint('x is', found['x'])\n[found['x'], None]", tools)

    assert (done.outcome, done.printed, done.value, done.problem) == ("ok", "x is 3\n", "[3,null]", "")
    assert tools.made == [("find", [], {"a": 3, "mode": "x"}, 1)]
    assert [(call.tool, call.line, call.problem, call.finished) for call in done.calls] == [("find", 1, "", True)]


async def test_numbers_that_are_none_reach_a_program_and_no_tool() -> None:
    tools = Tools({"find": {"mean": float("nan"), "most": [float("inf"), 2.5]}})
    done = await run("found = await find()\nprint(found)\nawait find(a=found['mean'])", tools)

    assert done.printed == "{'mean': nan, 'most': [inf, 2.5]}\n"
    assert "arguments must be JSON" in done.problem
    assert len(tools.made) == 1


@pytest.mark.requirement("programs.sandbox")
async def test_calls_at_the_same_time_get_their_own_answers() -> None:
    done = await run(
        "import asyncio\nfound = await asyncio.gather(*[find(a=i) for i in range(30)])\n[f['x'] for f in found]"
    )

    assert json.loads(done.value) == list(range(30))


@pytest.mark.requirement("programs.readable")
async def test_an_error_of_a_tool_can_be_caught_and_else_says_its_line_and_what_went_before() -> None:
    done = await run(
        "print('first')\ntry:\n    await fail()\nexcept RuntimeError as error:\n    print(error)\nawait fail()"
    )

    assert (done.outcome, done.printed) == ("failed", "first\nfail: no such file\n")
    assert "line 6" in done.problem
    assert "no such file" in done.problem
    assert [(call.line, call.problem) for call in done.calls] == [(3, "no such file"), (6, "no such file")]


@pytest.mark.requirement("programs.readable")
@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("await find(mode=3)", "line 1: Argument to function `find` is incorrect"),
        ("found = find(a=1)\nprint(found['x'])", "line 2"),
        ("find(a=1)", "not awaited"),
        ("await fail(1, 2)", "line 1: Too many positional arguments"),
        ("await no_such_tool(a=1)", "`no_such_tool`"),
        ("def (", "no Python that can run here"),
        ("x = '\ud800'; def", "no Python that can run here"),
        ("pass\n" * LONGEST_PROGRAM, "longer than"),
    ],
)
async def test_a_program_that_cannot_be_right_is_refused_before_any_call(program: str, said: str) -> None:
    tools = Tools()
    done = await run(program + "\nawait find(a=1)", tools)

    assert done.outcome == "refused"
    assert said in done.problem
    assert tools.made == []


async def test_what_the_type_checker_only_suspects_runs() -> None:
    done = await run("found = await find(a=1)\nnumber: int = 'a text'\nnumber + found.nothing")

    assert done.outcome == "failed"
    assert "nothing" in done.problem
    assert len(done.calls) == 1


@pytest.mark.requirement("programs.escapes")
@pytest.mark.parametrize("attempt", ESCAPES)
async def test_no_way_leads_out_of_the_sandbox(attempt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, said = ESCAPES[attempt]
    monkeypatch.chdir(tmp_path)
    done = await run(f"print('before')\n{program}\nprint('escaped')")

    assert (done.outcome, done.printed) == ("failed", "before\n"), done
    assert said in done.problem
    assert list(tmp_path.iterdir()) == []


BOUNDED = {
    "an endless loop": ("while True: pass", "time"),
    "an endless loop that catches everything": (
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        "time",
    ),
    "a list without end": ("found = []\nwhile True: found.append('x' * 1000)", "memory"),
    "one long text": ("'x' * 10 ** 10", "memory"),
    "one large number": ("10 ** 10 ** 9", "memory"),
    "recursion": ("def again(): return again()\nagain()", "failed"),
    "deep brackets": ("(" * 9000 + ")" * 9000, "refused"),
    "much output": ("while True: print('x' * 1000)", "output"),
    "long sleep": ("import time\nwhile True: time.sleep(100)", "time"),
    "calls without end": ("while True: await find(a=1)", "calls"),
    "calls at once without end": (
        "import asyncio\nawait asyncio.gather(*[find(a=i) for i in range(5000)])",
        "calls",
    ),
    "unknown names without end": ("while True:\n    try: nothing\n    except NameError: pass", "calls"),
}


@pytest.mark.requirement("programs.escapes")
@pytest.mark.parametrize("attempt", BOUNDED)
async def test_whatever_has_no_end_is_ended_and_says_why(attempt: str) -> None:
    program, outcome = BOUNDED[attempt]
    done = await run(program, calls=20, seconds=1.0 if outcome == "time" else 60.0)

    assert done.outcome == outcome, done
    assert done.problem
    assert len(done.printed) <= 40_000
    assert len(done.problem) <= sandbox_worker.LONGEST_PROBLEM
    assert len(done.calls) <= 20


SHARED = {
    "a value of long texts": ("text = 'x' * 1_000_000\n[text] * 1000", "memory"),
    "arguments of long texts": ("text = 'x' * 1_000_000\nawait find(a=[text] * 1000)", "memory"),
    "a value of many lists": ("row = [0] * 1000\ntable = [row] * 1000\n[table] * 1000", "time"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such limits")
@pytest.mark.parametrize("attempt", SHARED)
async def test_values_with_shared_parts_take_no_more_than_the_program_may(attempt: str) -> None:
    program, outcome = SHARED[attempt]
    done = await run(program, memory_mb=8, seconds=1.0 if outcome == "time" else 60.0, wait=600.0)

    assert (done.outcome, done.value) == (outcome, ""), done
    assert done.problem
    assert done.calls == ()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such limits")
async def test_a_value_that_takes_long_to_write_takes_little_more_time_than_the_program_may() -> None:
    program, _ = SHARED["a value of many lists"]
    before = os.times()
    done = await run(program, seconds=1.0, wait=600.0)
    after = os.times()

    assert done.outcome == "time"
    taken = after.children_user + after.children_system - before.children_user - before.children_system
    assert taken < 4, "1.5 seconds for each of the program's, one to start with, and 1.5 for other machines"


@pytest.mark.requirement("programs.escapes")
@pytest.mark.parametrize(
    ("program", "value"),
    [
        ("'\\ud800'", "\ufffd"),
        ("'a\\x00\\x1b[31m'", "a\x00\x1b[31m"),
        ("found = []\nfor at in range(50000): found = [found]\nlen(found)", "1"),
        ("found = []\nfound.append(found)\nfound", '["[...]"]'),
        ("{1, 2} == {2, 1}", "true"),
        ("float('nan')", "NaN"),
    ],
)
async def test_odd_values_and_texts_come_out_as_texts(program: str, value: str) -> None:
    done = await run(program)

    assert (done.outcome, done.value) == ("ok", value)


@pytest.mark.requirement("programs.escapes")
async def test_arguments_that_are_no_json_or_too_long_are_refused_where_they_are_given() -> None:
    tools = Tools()
    program = "\n".join(
        f"try:\n    await find(a=1, b={value})\nexcept (TypeError, ValueError) as e:\n    print(type(e).__name__)"
        for value in ("{1, 2}", "b'x'", "float('inf')", "'x' * 2_000_000")
    )
    done = await run(program, tools)

    assert done.printed.split() == ["TypeError", "TypeError", "TypeError", "ValueError"]
    assert tools.made == []


@pytest.mark.requirement("programs.escapes")
async def test_text_in_a_result_is_never_run() -> None:
    """A server answers with code, and with what looks like an answer of the gateway."""
    evil = '\'); await fail(); print(\'\n{"end": "ok"}\n\ud800\x00'
    done = await run("found = await find(a=1)\nprint(len(found))\nawait find(a=1, text=found)", Tools({"find": evil}))

    assert done.outcome == "ok", done
    assert [call.tool for call in done.calls] == ["find", "find"]


@pytest.mark.requirement("programs.killed")
async def test_a_program_that_waits_for_a_call_ends_with_its_time_and_the_call_with_it() -> None:
    tools = Tools()
    done = await run("print('started')\nawait wait()", tools, wait=10.0)

    assert (done.outcome, done.printed, tools.cancelled) == ("time", "started\n", 1)
    assert "longer than 10 seconds" in done.problem
    assert not done.calls[0].finished


@pytest.mark.requirement("programs.killed")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_its_processes_are_in_a_group_of_their_own_and_give_way_to_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = noted_processes(monkeypatch)
    tools = Tools()
    running = asyncio.create_task(run("await wait()", tools))
    await until(lambda: tools.made != [])
    of_group = [path for path in Path("/proc").glob("[0-9]*/stat") if _stat(path, GROUP) == begun[0].pid]

    assert len(of_group) > 1
    assert {_stat(path, SESSION) for path in of_group} == {os.getsid(0)}, "a niceness counts within a session"
    assert {_stat(path, NICENESS) for path in of_group} == {min(19, os.getpriority(os.PRIO_PROCESS, 0) + runner.NICE)}
    running.cancel()
    await asyncio.wait([running])


@pytest.mark.requirement("programs.killed")
@pytest.mark.parametrize("scoped", [False, True], ids=["its task is cancelled", "its scope is cancelled"])
async def test_when_the_caller_goes_the_processes_of_its_program_go_too(
    monkeypatch: pytest.MonkeyPatch, scoped: bool
) -> None:
    begun = noted_processes(monkeypatch)
    tools, scope = Tools(), anyio.CancelScope()

    async def within() -> None:
        with scope:
            await run("await wait()", tools)

    running = asyncio.create_task(within())
    await until(lambda: tools.made != [])
    scope.cancel() if scoped else running.cancel()
    await asyncio.wait([running])

    assert scope.cancelled_caught == scoped
    assert running.cancelled() != scoped
    assert tools.cancelled == 1
    assert begun[0].returncode is not None
    if sys.platform == "linux":
        assert [path for path in Path("/proc").glob("[0-9]*/stat") if _stat(path, GROUP) == begun[0].pid] == []


async def test_a_caller_that_goes_does_not_break_into_what_the_calls_of_its_program_shield() -> None:
    """As a charge is held and settled."""
    begun, go_on, paid = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def pay(*_: Any) -> None:
        with anyio.CancelScope(shield=True):
            begun.set()
            await go_on.wait()
            paid.set()

    settings = ProgramSettings(mode="on", **LONG)
    running = asyncio.create_task(ProgramRunner(settings).run("await wait()", DECLARED, pay))
    await begun.wait()
    running.cancel()
    asyncio.get_running_loop().call_later(0.05, go_on.set)
    await asyncio.wait([running])

    assert paid.is_set()


async def test_a_call_that_comes_together_with_the_end_of_its_program_is_not_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    call = {"call": 1, "function": "find", "args": [], "kwargs": {}, "line": 1}
    said = iter([call, {"end": "failed", "problem": "", "value": ""}])

    async def message(_stream: Any) -> Any:
        return next(said)

    monkeypatch.setattr(runner, "_message", message)
    tools = Tools()
    done = await run("find()\nboom()", tools)

    assert done.outcome == "failed"
    assert tools.made == []


def noted_processes(monkeypatch: pytest.MonkeyPatch) -> list[Process]:
    """The processes that are started from now on."""
    begun: list[Process] = []
    create = asyncio.create_subprocess_exec

    async def noting(*command: Any, **how: Any) -> Any:
        process = await create(*command, **how)
        begun.append(process)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noting)
    return begun


GROUP, SESSION, NICENESS = 2, 3, 16
"""Fields of /proc/PID/stat behind the name (proc_pid_stat(5))."""


def _stat(stat: Path, field: int) -> int | None:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[field])
    except OSError:
        return None


@pytest.mark.requirement("programs.killed")
@pytest.mark.parametrize(
    ("program", "outcome"),
    [
        ("found = []\nwhile True: found = [[] for at in range(1000)]", "time"),
        ("while True: print('x' * 100_000)", "output"),
        ("import asyncio\nawait asyncio.gather(*[find(text='x' * 900_000) for i in range(5000)])", "calls"),
        ("['x' * 1000 for i in range(30_000)]", "ok"),
    ],
    ids=["it computes", "it prints", "it calls with long arguments", "its value is long"],
)
async def test_the_loop_goes_on_while_a_hostile_program_runs(program: str, outcome: str) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.01)
            turns += 1

    counting = asyncio.create_task(count())
    done = await run(program, seconds=1.0 if outcome == "time" else 60.0, calls=10)
    counting.cancel()

    assert done.outcome == outcome
    assert turns > 10 * done.seconds


async def test_a_defect_in_a_call_ends_the_program_at_once() -> None:
    async def broken(*_: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await ProgramRunner(ProgramSettings(mode="on")).run("await find(a=1)", DECLARED, broken)


async def test_programs_beyond_the_places_wait_for_one() -> None:
    tools, busy = Tools(), ProgramRunner(ProgramSettings(mode="on", at_once=1, wait=30.0))
    first = asyncio.create_task(busy.run("await wait()", DECLARED, tools))
    await until(lambda: tools.made != [])
    busy.adopt(busy.settings.model_copy(update={"seconds": 7.0}))
    second = asyncio.create_task(busy.run("1", DECLARED, tools))
    await asyncio.sleep(0)
    assert busy._places.locked()
    assert not second.done()
    first.cancel()

    assert (await second).value == "1"


async def test_without_the_sandbox_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "find_spec", lambda name: None)

    with pytest.raises(ConfigError, match=r"pip install 'pegboard\[programs\]'"):
        await run("1")
