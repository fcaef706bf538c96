from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from traced import traced

ROUTES = """
import multiprocessing
from pegboard import Board

TOOLS = [{"name": "tide", "description": "When the tide comes"}, {"name": "mail", "description": "Send a mail"}]

def route():
    with Board(TOOLS, k=1) as board:
        print(board.route_now("when is the tide?").active, flush=True)

if __name__ == "__main__":
    route()
    worker = multiprocessing.get_context("spawn").Process(target=route)
    worker.start()
    worker.join()
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / ".cache").mkdir(parents=True)
    (tmp_path / "routes.py").write_text(ROUTES, "utf-8")
    (tmp_path / "tools.json").write_text('[{"name": "tide", "description": "When the tide comes"}]', "utf-8")
    return home


@pytest.mark.requirement("D1")
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace, which .ci/run installs")
@pytest.mark.parametrize(
    "command",
    [("routes.py",), ("-m", "pegboard", "route", "when is the tide?", "--catalog", "tools.json")],
    ids=["library", "command"],
)
def test_routing_looks_up_no_name_and_writes_nothing_outside_its_own_folders(
    home: Path, command: tuple[str, ...]
) -> None:
    """onnxruntime would: in the process that routes, and in each that this one starts."""
    work = home.parent
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}

    trace = traced([sys.executable, *command], work / "trace", env=env, cwd=work)

    assert "tide" in trace.output
    assert trace.network == ()
    assert trace.written_outside(home / ".cache" / "pegboard", home / ".local" / "share" / "pegboard") == set()


def test_the_variable_is_set_whatever_it_was_before(monkeypatch: pytest.MonkeyPatch) -> None:
    from pegboard.retrieval.encoders.onnx import onnxruntime

    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "0")
    onnxruntime()

    assert os.environ["ORT_DISABLE_TELEMETRY"] == "1"
