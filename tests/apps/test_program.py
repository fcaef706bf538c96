from __future__ import annotations

import errno
import io
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

import pegboard
from pegboard.apps.cli import program
from pegboard.errors import ConfigError
from pegboard.testing import FakeEncoder

Run = Callable[..., Result]
Start = Callable[..., "subprocess.Popen[bytes]"]

COMMANDS = ("audit", "route", "rank", "doctor", "mcp", "state show", "state export", "state import", "state forget")


def test_the_version_is_the_packages(run: Run) -> None:
    assert run("--version").stdout == f"pegboard {pegboard.__version__}\n"


def test_without_a_command_the_help_is_shown(run: Run) -> None:
    result = run()

    assert result.exit_code == 0
    assert all(command.split()[0] in result.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_examples_and_says_that_json_is_there(run: Run, command: str) -> None:
    result = run(*command.split(), "--help")

    assert result.exit_code == 0
    assert "Examples" in result.stdout
    assert "--json" in result.stdout
    assert f"pegboard {command}" in result.stdout


@pytest.mark.parametrize("words", [("--version",), ("mcp", "--help")])
def test_help_and_version_load_nothing_heavy(words: tuple[str, ...]) -> None:
    heavy = "{'mcp', 'onnxruntime', 'numpy', 'tokenizers', 'toktok'}"
    program = (
        "import sys\nfrom pegboard.apps.cli import main\n"
        f"sys.argv = ['pegboard', *{words!r}]\n"
        "try:\n    main()\n"
        f"finally:\n    sys.stderr.write(str({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stderr == "set()"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("frob",), "No such command 'frob'."),
        (("audit", "--x"), "No such option: --x"),
        (("route",), "Missing argument 'QUERY'."),
        (("audit", "--price", "much"), "Invalid value for '--price'"),
        (("route", "x", "--k", "0"), "Invalid value for '--k'"),
        (("mcp", "--exposure", "all"), "Invalid value for '--exposure'"),
    ],
)
def test_wrong_use_is_one_line_that_names_the_help_and_exits_with_2(
    run: Run, words: tuple[str, ...], said: str
) -> None:
    result = run(*words)

    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("pegboard: ")
    assert said in result.stderr
    assert "--help` shows its usage." in result.stderr
    assert result.stderr.count("\n") == 1


def test_wrong_use_with_json_is_json_on_stdout(run_json: Callable[..., Any]) -> None:
    error = run_json("route", "x", "--frobnicate", code=2)

    assert error == {
        "error": "usage_error",
        "message": "No such option: --frobnicate.",
        "remedy": "`pegboard route --help` shows its usage.",
    }


def test_an_error_of_ours_says_what_to_do(run: Run, run_json: Callable[..., Any]) -> None:
    result = run("audit", "--catalog", "/nowhere.json")

    assert result.exit_code == 2
    assert result.stderr.startswith("pegboard: Cannot read '/nowhere.json'")
    assert result.stderr.endswith("Check the path and its rights.\n")
    assert run_json("audit", "--catalog", "/nowhere.json", code=2)["error"] == "catalog_error"


def test_a_failure_exits_with_1(run: Run, tools: Path) -> None:
    result = run("route", "x", "--catalog", tools, encoder=FakeEncoder(broken=True))

    assert result.exit_code == 1
    assert result.stderr == "pegboard: The fake encoder is broken.\n"


class Defective(FakeEncoder):
    async def encode(self, texts: Any) -> Any:
        raise ZeroDivisionError("oops")


def test_a_defect_shows_no_traceback_unless_it_is_asked_for(
    run: Run, tools: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("route", "x", "--catalog", tools)
    encoder = Defective()
    quiet, verbose = run(*words, encoder=encoder), run(*words, "--verbose", encoder=encoder)
    monkeypatch.setenv("PEGBOARD_DEBUG", "1")
    debugging = run(*words, encoder=encoder)
    monkeypatch.setenv("PEGBOARD_DEBUG", "0")
    assert "Traceback" not in run(*words, encoder=encoder).output

    assert quiet.exit_code == verbose.exit_code == debugging.exit_code == 1
    assert "defect in Pegboard: ZeroDivisionError: oops" in quiet.stderr
    assert "Traceback" not in quiet.output
    assert "Traceback" in verbose.stderr
    assert "Traceback" in debugging.stderr


class Grouped(FakeEncoder):
    async def encode(self, texts: Any) -> Any:
        raise ExceptionGroup("tasks", [ExceptionGroup("inner", [ConfigError("It is wrong.", remedy="Mend it.")])])


def test_an_error_out_of_a_task_group_is_still_that_error(run: Run, tools: Path) -> None:
    result = run("route", "x", "--catalog", tools, encoder=Grouped())

    assert (result.exit_code, result.stderr) == (2, "pegboard: It is wrong. Mend it.\n")


class Interrupted(FakeEncoder):
    async def encode(self, texts: Any) -> Any:
        raise KeyboardInterrupt


def test_an_interruption_is_quiet_and_exits_with_130(run: Run, tools: Path) -> None:
    result = run("route", "x", "--catalog", tools, encoder=Interrupted())

    assert (result.exit_code, result.output) == (130, "")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_ctrl_c_while_waiting_for_a_server_is_quiet(
    start: Start, servers_file: Callable[..., Path], tmp_path: Path
) -> None:
    fifo = tmp_path / "started"
    os.mkfifo(fifo)
    waiting = {"command": "sh", "args": ["-c", f"echo > {fifo}; exec sleep 60"]}
    process = start("audit", "--config", servers_file(waiting=waiting))
    fifo.read_text()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)

    assert (process.returncode, stdout, stderr) == (130, b"", b"")


def test_a_reader_that_leaves_early_is_no_error(start: Start, tools: Path) -> None:
    process = start("route", "open an issue", "--catalog", tools, "--profile", "keyword", "--json")
    assert process.stdout is not None
    process.stdout.close()
    _, stderr = process.communicate(timeout=60)

    assert stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
@pytest.mark.parametrize("command", [["--version"], ["lint", "--help"], ["route", "x", "--catalog", "no", "--json"]])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_that_cannot_be_written_is_said_in_one_line(
    start: Start, monkeypatch: pytest.MonkeyPatch, command: list[str], unbuffered: str
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    process = start(*command, redirected="> /dev/full")
    _, stderr = process.communicate()

    assert process.returncode == 1
    assert stderr == b"pegboard: Cannot write the output: No space left on device.\n"


@pytest.mark.parametrize("file", ["/cache/vectors.npy", None])
def test_a_file_that_cannot_be_written_is_not_called_the_output(
    run: Run, run_json: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, file: str | None
) -> None:
    async def full(*_given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", file)

    monkeypatch.setattr("pegboard.apps.cli.doctor.encoder", full)
    said = f"Cannot write{f' {file!r}' if file else ''}: No space left on device."

    assert run("doctor").stderr.strip() == f"pegboard: {said}"
    assert run_json("doctor", "--json", code=1)["message"] == said


def test_an_interrupt_while_the_output_waits_for_its_reader_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stuck(io.TextIOWrapper):
        is_stuck = True

        def flush(self) -> None:
            if self.is_stuck:
                raise KeyboardInterrupt
            super().flush()

    with Stuck((tmp_path / "out").open("wb"), encoding="utf-8") as stuck:
        monkeypatch.setattr(sys, "stdout", stuck)
        with pytest.raises(SystemExit) as ended:
            program.app(["--version"])
        stuck.is_stuck = False

    assert ended.value.code == 130


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX closes the streams")
@pytest.mark.parametrize(
    ("redirected", "command", "code"),
    [(">&-", ["--version"], 0), ("2>&-", ["route"], 2), ("<&-", ["keys", "check"], 1), ("<&- >&- 2>&-", ["route"], 2)],
)
def test_a_stream_that_is_closed_from_the_beginning_is_no_defect(
    start: Start, redirected: str, command: list[str], code: int
) -> None:
    process = start(*command, redirected=redirected)
    _, stderr = process.communicate()

    assert (process.returncode, b"defect" in stderr) == (code, False)


@pytest.mark.parametrize("command", [["lint"], ["route", "open an issue"]])
def test_characters_that_the_terminal_does_not_have_end_no_command(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    tools = tmp_path / "tools.jsonl"
    told = {"server": "s", "description": "Open an issue 問題", "parameters": {}}
    tools.write_text("".join(json.dumps(told | {"name": name}) + "\n" for name in ("issue→", "issue⇒")))
    process = start(*command, "--catalog", tools, "--profile", "keyword")
    stdout, stderr = process.communicate()

    assert b"UnicodeEncodeError" not in stderr
    assert b"issue" in stdout
    assert process.returncode == 0, stderr


def test_the_module_runs_as_the_program_does(start: Start, tools: Path) -> None:
    stdout, stderr = start("route", "open an issue", "--catalog", tools, "--profile", "keyword", "--json").communicate()

    assert stderr == b""
    assert "code/create_issue" in json.loads(stdout)["active"]
