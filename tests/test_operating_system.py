"""What differs between systems, on Linux with macOS and Windows simulated. Nothing of it was run on either."""

from __future__ import annotations

import ast
import asyncio
import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pegboard import operating_system
from pegboard.model import ToolId
from pegboard.settings.client_files import clients
from pegboard.upstreams import Fleet
from upstream_specs import fleet_of, python, scripted

__all__ = ["fleet_of"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="simulates Windows on POSIX")
PACKAGE = Path(operating_system.__file__).parent
APART = {"operating_system.py", "programs/sandbox_worker.py", "routing/schema_worker.py", "upstreams/reaper.py"}
"""The module itself, and three programs that run without the package."""
ASKS = re.compile(
    r"sys\.platform\b(?!`)|os\.name\b|platform\.system|\bimport (?:fcntl|msvcrt|winreg|resource|pwd|grp)\b"
    r"|killpg|os\.get[ug]id|os\.geteuid|add_signal_handler|posix_spawn|malloc_trim|O_NOFOLLOW|os\.replace|os\.link\(|register_at_fork"
)


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operating_system, "PLATFORM", "win32")


@pytest.fixture
def macos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operating_system, "PLATFORM", "darwin")


@pytest.fixture
def draft(tmp_path: Path) -> Path:
    path = tmp_path / "draft"
    path.write_text("new")
    return path


def sources() -> Iterator[tuple[str, str]]:
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in APART:
            yield name, path.read_text("utf-8")


@pytest.mark.requirement("022.systems")
def test_no_other_module_asks_which_system_this_is() -> None:
    assert [name for name, text in sources() if ASKS.search(text)] == []


@pytest.mark.requirement("022.systems")
def test_no_other_module_puts_a_file_in_the_place_of_another() -> None:
    def moves(node: ast.AST) -> bool:
        of_a_path = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords
        return of_a_path and node.func.attr in ("replace", "rename") and len(node.args) == 1  # type: ignore[attr-defined]

    assert [name for name, text in sources() if any(map(moves, ast.walk(ast.parse(text))))] == []


@pytest.mark.requirement("022.systems")
@pytest.mark.parametrize(
    ("platform", "folder"),
    [("linux", ".config"), ("darwin", "Library/Application Support"), ("win32", "AppData/Roaming")],
)
def test_programs_keep_their_settings_where_the_system_wants_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, folder: str
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("APPDATA", raising=False)
    monkeypatch.setattr(operating_system, "PLATFORM", platform)
    zed = next(each for each in clients() if each.name == "claude-desktop")

    assert operating_system.application_data(tmp_path) == tmp_path / folder
    assert zed.path(tmp_path, tmp_path).is_relative_to(tmp_path / folder)


@pytest.mark.requirement("022.systems")
@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    ("command", "is_path"),
    [("npx", False), ("npx.cmd", False), (r"C:\tools\server.exe", True), (r".\server", True), ("bin/server", True)],
)
def test_a_command_with_a_windows_path_is_not_looked_up(command: str, is_path: bool) -> None:
    assert operating_system.names_a_path(command) is is_path


def test_elsewhere_a_backslash_is_part_of_a_name() -> None:
    assert not operating_system.names_a_path(r"odd\name")


def refusals(monkeypatch: pytest.MonkeyPatch, times: int) -> list[Path]:
    """`Path.replace`, which refuses some times, as Windows does while another program has the file open."""
    asked: list[Path] = []
    really = Path.replace

    def refuse(self: Path, target: Path) -> Path:
        asked.append(target)
        if len(asked) <= times:
            raise PermissionError(errno.EACCES, "The process cannot access the file", str(target))
        return really(self, target)

    monkeypatch.setattr(Path, "replace", refuse)
    return asked


@pytest.mark.requirement("022.systems")
@pytest.mark.usefixtures("windows")
def test_a_file_that_windows_does_not_let_go_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, draft: Path
) -> None:
    target = tmp_path / "target"
    target.write_text("old")
    asked = refusals(monkeypatch, times=3)
    operating_system.replace_file(draft, target)

    assert len(asked) == 4
    assert target.read_text() == "new"
    assert not draft.exists()


@pytest.mark.requirement("022.systems")
@pytest.mark.usefixtures("windows")
def test_a_file_that_is_never_let_go_is_an_error_in_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, draft: Path
) -> None:
    monkeypatch.setattr(operating_system, "REPLACE_SECONDS", 0.05)
    refusals(monkeypatch, times=10_000)
    with pytest.raises(PermissionError):
        operating_system.replace_file(draft, tmp_path / "target")


@pytest.mark.usefixtures("macos")
def test_elsewhere_a_refusal_is_no_matter_of_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, draft: Path) -> None:
    asked = refusals(monkeypatch, times=1)
    with pytest.raises(PermissionError):
        operating_system.replace_file(draft, tmp_path / "target")

    assert len(asked) == 1


def refusing_rename(self: Path, target: Path) -> Path:
    """As on Windows, where a rename replaces nothing."""
    if target.exists():
        raise FileExistsError(errno.EEXIST, "Cannot create a file when that file already exists", str(target))
    os.rename(self, target)  # noqa: PTH104
    return target


@pytest.mark.requirement("022.systems")
@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_of_two_who_publish_a_file_one_learns_that_it_is_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, draft: Path, platform: str
) -> None:
    monkeypatch.setattr(operating_system, "PLATFORM", platform)
    monkeypatch.setattr(Path, "rename", refusing_rename)
    second = tmp_path / "second"
    second.write_text("another")
    operating_system.publish_file(draft, tmp_path / "target")
    with pytest.raises(FileExistsError):
        operating_system.publish_file(second, tmp_path / "target")

    assert (tmp_path / "target").read_text() == "new"


def test_a_file_that_others_may_write_or_a_link_is_not_ours_alone(draft: Path, tmp_path: Path) -> None:
    draft.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(draft)

    assert operating_system.only_we_write(draft)
    assert not operating_system.only_we_write(link)
    assert not operating_system.only_we_write(tmp_path / "nothing")
    draft.chmod(0o666)
    assert not operating_system.only_we_write(draft)


@pytest.mark.requirement("022.systems")
@pytest.mark.usefixtures("windows")
def test_windows_has_no_numbers_of_users_and_no_sighup(draft: Path) -> None:
    draft.chmod(0o666)

    assert operating_system.only_we_write(draft), "its modes say nothing"
    assert operating_system.user_id() == 0
    assert operating_system.user_and_group() == ""
    assert operating_system.reload_signal() is None
    assert operating_system.service_manager() == "task"
    assert "SYSTEMROOT" in operating_system.inherited_variables()
    assert not operating_system.loop_reads(0, 1)


@pytest.mark.requirement("022.systems")
@pytest.mark.usefixtures("macos")
def test_macos_has_what_posix_has_and_launchd() -> None:
    assert operating_system.user_and_group() == f"{os.getuid()}:{os.getgid()}"
    assert operating_system.reload_signal() == signal.SIGHUP
    assert operating_system.service_manager() == "launchd"
    assert "SHELL" in operating_system.inherited_variables()
    assert not operating_system.is_linux()
    operating_system.give_back_memory()


def test_a_process_that_has_ended_is_not_alive() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    assert operating_system.is_alive(os.getpid())
    assert not operating_system.is_alive(ended.pid)
    assert not operating_system.is_alive(0)


def test_a_process_of_another_user_or_a_child_that_ended_does_not_run_as_us(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert operating_system.runs_as_us(child.pid)
        assert operating_system.runs_as_us(os.getpid())
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not operating_system.runs_as_us(child.pid)

    def refuse(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert not operating_system.runs_as_us(os.getppid())


@pytest.mark.requirement("022.systems")
@pytest.mark.usefixtures("windows")
def test_on_windows_no_signal_is_sent_to_ask_whether_a_process_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(pid: int, number: int) -> None:
        raise AssertionError(f"{number} would end {pid}")

    monkeypatch.setattr(os, "kill", kill)

    assert operating_system.is_alive(os.getpid())


@pytest.mark.requirement("022.systems")
@pytest.mark.usefixtures("windows")
def test_on_windows_a_process_goes_on_without_the_console_that_started_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started: dict[str, Any] = {}

    class Started:
        pid = 4711

        def __init__(self, command: list[str], **options: Any) -> None:
            started.update(options, command=command)

    monkeypatch.setattr(subprocess, "Popen", Started)

    assert operating_system.start_detached(["pegboard", "serve"], tmp_path / "log") == 4711
    assert started["creationflags"] == 0x208
    assert started["stdin"] == subprocess.DEVNULL
    assert "preexec_fn" not in started


@pytest.mark.parametrize("platform", ["linux", "win32"])
@pytest.mark.requirement("022.systems")
async def test_a_signal_reaches_its_handler_in_the_loop_until_the_block_ends(
    monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.setattr(operating_system, "PLATFORM", platform)
    before = signal.getsignal(signal.SIGUSR1)
    came = asyncio.Event()
    with operating_system.signal_handlers({signal.SIGUSR1: came.set}):
        os.kill(os.getpid(), signal.SIGUSR1)
        await asyncio.wait_for(came.wait(), 20)

    assert signal.getsignal(signal.SIGUSR1) in (before, signal.SIG_DFL)


def test_where_there_is_no_module_resource_descriptors_have_no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "resource", None)

    assert operating_system.most_descriptors() is None


@pytest.mark.requirement("022.systems")
@pytest.mark.usefixtures("windows")
async def test_servers_are_started_and_called_as_on_windows(fleet_of: Callable[..., Fleet]) -> None:
    """The SDK's process and a thread for standard error, in the place of the reaper and the event loop."""
    dies = python("dies", "import sys; print('no such database', file=sys.stderr); sys.exit(3)")
    async with fleet_of(scripted(), dies) as fleet:
        await fleet.settled(30)
        told = await fleet.call(ToolId("scripted", "environment"), {"name": "PATH"})
        said = {each.name: each.reason for each in fleet.status()}

    assert told["content"][0]["text"] != "unset"
    assert "no such database" in str(said["dies"])


def test_a_process_that_yields_to_others_has_a_low_priority() -> None:
    program = (
        "import os; from pegboard.operating_system import BEHIND_REQUESTS, yield_to_others; "
        "yield_to_others(BEHIND_REQUESTS); print(os.nice(0)); yield_to_others(); print(os.nice(0))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["5", "15"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no sessions of processes")
@pytest.mark.parametrize("options", [operating_system.apart_from_signals, operating_system.group_of_its_own])
def test_a_process_apart_stays_in_the_session_in_which_its_priority_counts(
    options: Callable[[], dict[str, Any]],
) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, **options()) as process:
        assert os.getsid(process.pid) == os.getsid(0)
        assert os.getpgid(process.pid) == process.pid  # an interrupt is for the group in the foreground


@pytest.mark.parametrize("allocates", [True, False])
def test_a_file_that_is_extended_has_zeros_at_its_end(
    allocates: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not allocates:
        monkeypatch.delattr(os, "posix_fallocate", raising=False)
    with (tmp_path / "vectors").open("w+b") as file:
        file.write(b"ab")
        file.flush()
        operating_system.extend_file(file.fileno(), 4)
        file.seek(0)
        assert file.read() == b"ab\0\0"


@pytest.mark.parametrize("lacks", [errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS])
def test_a_file_is_extended_where_its_file_system_cannot_allocate(
    lacks: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_descriptor: int, _start: int, _length: int) -> None:
        raise OSError(lacks, os.strerror(lacks))

    monkeypatch.setattr(os, "posix_fallocate", refused, raising=False)
    with (tmp_path / "vectors").open("w+b") as file:
        operating_system.extend_file(file.fileno(), 4)
        assert file.read() == b"\0\0\0\0"


def test_what_was_found_on_a_disk_that_is_full_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def partly(descriptor: int, start: int, length: int) -> None:
        os.ftruncate(descriptor, start + length // 2)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", partly, raising=False)
    with (tmp_path / "vectors").open("w+b") as file:
        file.write(b"ab")
        file.flush()
        with pytest.raises(OSError, match="No space"):
            operating_system.extend_file(file.fileno(), 1_000)
        file.seek(0)
        assert file.read() == b"ab"
