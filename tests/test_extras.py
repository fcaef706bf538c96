"""Pegboard alone works; what needs more names the extra that brings it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pegboard.errors import ConfigError
from pegboard.extras import required

WITHOUT = """
import sys
for name in {names!r}:
    sys.modules[name] = None
"""


def run(program: str, *without: str) -> subprocess.CompletedProcess[str]:
    source = WITHOUT.format(names=without) + program
    return subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)


def test_the_library_works_without_langchain(tmp_path: Path) -> None:
    program = """
from pegboard import Board
board = Board([{"name": "tide", "description": "When the tide comes"}], cache_dir=CACHE)
print([tool.name for tool in board.route_now("the tide?").active])
print(sorted(name for name in sys.modules if name.startswith("lang") and sys.modules[name] is not None))
""".replace("CACHE", repr(str(tmp_path)))

    done = run(program, "langchain", "langchain_core", "langgraph")

    assert done.stdout.splitlines() == ["['tide']", "[]"], done.stderr


@pytest.mark.parametrize(
    ("program", "package", "extra"),
    [
        ("import pegboard.gateways.langchain", "langchain", "langchain"),
        ("from pegboard.gateways.langchain import ToolAttentionMiddleware", "langgraph", "langchain"),
        ("from pegboard.retrieval.index.faiss import FaissIndex; FaissIndex(4)", "faiss", "faiss"),
        ("from pegboard.bench.pictures import begin; begin(None)", "matplotlib", "bench"),
        (
            "from pegboard.apps.cli import main\nsys.argv[1:] = ['bench', '--page', 'never-written.md']; main()",
            "matplotlib",
            "bench",
        ),
        (
            "from pegboard import load_settings; from pegboard.compose import default_parts\n"
            "import asyncio; asyncio.run(default_parts(load_settings(state='redis://127.0.0.1:1/0')).sessions.load('x'))",
            "redis",
            "redis",
        ),
        (
            "from pegboard import load_settings; from pegboard.compose import default_parts\n"
            "import asyncio; asyncio.run(default_parts(load_settings(state='postgresql://127.0.0.1:1/x')).sessions.load('x'))",
            "psycopg",
            "postgres",
        ),
    ],
)
def test_a_missing_extra_is_named(program: str, package: str, extra: str) -> None:
    done = run(program, package)

    assert done.returncode != 0
    assert f"pip install 'pegboard[{extra}]'" in done.stderr


def test_what_is_there_is_given() -> None:
    assert required("json", "none").dumps([]) == "[]"
    with pytest.raises(ConfigError, match="no_such_module"):
        required("no_such_module.part", "none")
