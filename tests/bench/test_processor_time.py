from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from pegboard_bench.observability.processor_time import ProcessorTime

GATEWAY, EXPORTER, WRITER, SERVER = "100", "200", "300", "400"


def takes(proc: Path, process: str, thread: str, milliseconds: int, *, children: Sequence[str] = ()) -> None:
    task = proc / process / "task" / thread
    task.mkdir(parents=True, exist_ok=True)
    (task / "schedstat").write_text(f"{milliseconds * 1_000_000} 5 7\n")
    (task / "children").write_text("".join(f"{each} " for each in children))


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A gateway with two threads, its exporter, the writer of its activity and a server of its own."""
    takes(tmp_path, GATEWAY, GATEWAY, 50, children=[EXPORTER])
    takes(tmp_path, GATEWAY, "101", 7, children=[WRITER, SERVER])
    for process, module in ((EXPORTER, "exporter_process"), (WRITER, "activity_process"), (SERVER, "upstream")):
        takes(tmp_path, process, process, int(process) // 100)
        (tmp_path / process / "cmdline").write_bytes(f"python\0-m\0some.{module}\0".encode())
    return tmp_path


def test_the_exporter_and_the_writer_of_activity_are_counted_beside_the_gateway_and_its_servers_are_not(
    proc: Path,
) -> None:
    assert ProcessorTime(int(GATEWAY), proc).read() == {"gateway": 57, "exporter": 2, "writer": 3}


def test_threads_and_processes_that_are_gone_count_as_they_did_before(proc: Path) -> None:
    time = ProcessorTime(int(GATEWAY), proc)
    time.read()

    shutil.rmtree(proc / GATEWAY / "task" / "101")
    shutil.rmtree(proc / EXPORTER)
    takes(proc, GATEWAY, GATEWAY, 60, children=[EXPORTER])
    assert time.read() == {"gateway": 67, "exporter": 2, "writer": 3}

    shutil.rmtree(proc / GATEWAY)
    assert time.read() == {"gateway": 67, "exporter": 2, "writer": 3}


def test_a_thread_that_ends_while_it_is_read_about_counts_as_it_did_before(
    proc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    time, read = ProcessorTime(int(GATEWAY), proc), Path.read_bytes
    time.read()

    def ended(file: Path) -> bytes:
        if "101" in file.parts:
            raise ProcessLookupError
        return read(file)

    monkeypatch.setattr(Path, "read_bytes", ended)

    assert time.read() == {"gateway": 57, "exporter": 2, "writer": 3}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_of_a_real_process_more_time_is_read_when_it_has_worked() -> None:
    time = ProcessorTime(os.getpid())
    before = time.read()

    thread = threading.Thread(target=sum, args=(range(300_000),))
    thread.start()
    thread.join()
    sum(range(300_000))
    command = [sys.executable, "-c", "print(sum(range(10**6)), flush=True); input()", "exporter_process"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        after = time.read()
        process.communicate(b"\n")

    assert after["gateway"] > before["gateway"]
    assert after["exporter"] > before["exporter"] == 0
    assert time.read()["exporter"] == after["exporter"]
