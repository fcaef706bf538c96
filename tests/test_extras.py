"""Pegboard alone works; what needs more names the extra that brings it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from pegboard.errors import ConfigError
from pegboard.extras import EXTRAS, required

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
        ("from pegboard_bench.pictures import begin; begin(None)", "matplotlib", "bench"),
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


ADAPTERS = {
    "agent_framework": "agent_framework",
    "autogen": "autogen_core",
    "crewai": "crewai",
    "dspy": "dspy",
    "google_adk": "google.adk",
    "haystack": "haystack",
    "llama_index": "llama_index",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
    "smolagents": "smolagents",
    "strands": "strands",
}
"""Modules of `pegboard.adapters` to the packages that they need."""


@pytest.mark.parametrize(("adapter", "package"), ADAPTERS.items())
def test_an_adapter_without_its_framework_names_the_extra(adapter: str, package: str) -> None:
    done = run(f"import pegboard.adapters.{adapter}", package)
    extra = adapter.replace("_", "-")

    assert f"pip install 'pegboard[{extra}]'" in done.stderr
    assert extra in (metadata.metadata("pegboard").get_all("Provides-Extra") or ())


@pytest.mark.requirement("025.langchain-alone")
def test_the_middleware_works_with_its_extra_alone() -> None:
    """Everything that only other extras bring is missing."""
    extras = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    brought = {Requirement(each).name for each in extras["langchain"]}
    program = """
from langchain.agents import create_agent
from pegboard.gateways.langchain import ToolAttentionMiddleware
from pegboard.gateways.langchain.scripted_model import ScriptedModel
agent = create_agent(ScriptedModel(steps=["hello"]), middleware=[ToolAttentionMiddleware()])
print(agent.invoke({"messages": [{"role": "user", "content": "the tide?"}]})["messages"][-1].text)
"""

    done = run(program, *(EXTRAS.keys() - brought))

    assert done.stdout.splitlines() == ["hello"], done.stderr


def test_every_adapter_of_a_framework_is_tried_without_it() -> None:
    folder = Path("src/pegboard/adapters")
    assert {path.stem for path in folder.glob("*.py") if "required(" in path.read_text("utf-8")} == set(ADAPTERS)


def test_what_is_there_is_given() -> None:
    assert required("json", "none").dumps([]) == "[]"
    with pytest.raises(ConfigError, match="no_such_module"):
        required("no_such_module.part", "none")


@pytest.mark.requirement("C9")
def test_a_board_without_servers_imports_no_mcp(tmp_path: Path) -> None:
    program = """
from pegboard import Board, Call

def tide(harbour: str) -> str:
    "When the tide comes in"
    return "16:20"

with Board([tide], cache_dir=CACHE) as board:
    decision = board.route_now("the tide?")
    print(board.execute_now(Call(name="tide", arguments={"harbour": "Bergen"}), decision).text)
    print(board.execute_now(Call(name="tide", arguments={}), decision).is_error)
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("mcp", "mcp_types")))
""".replace("CACHE", repr(str(tmp_path)))

    done = run(program)

    assert done.stdout.splitlines() == ["16:20", "True", "[]"], done.stderr


@pytest.mark.requirement("C9")
def test_what_other_frameworks_need_of_mcp_can_be_installed_beside_pegboard() -> None:
    """crewai, smolagents and autogen-ext need a version 1; browser-use needs 2.1.1 alone. The library needs none."""
    needs = [Requirement(text) for text in metadata.requires("pegboard") or ()]
    core = {need.name for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})}

    assert core.isdisjoint({"mcp", "httpx2", "starlette", "uvicorn", "aiohttp", "typer", "rich"})
    assert {"numpy", "onnxruntime", "pydantic"} <= core


@pytest.mark.requirement("C9")
def test_the_library_imports_nothing_that_only_an_extra_brings(tmp_path: Path) -> None:
    program = """
from pegboard import Board, Call
with Board([({"name": "tide", "description": "When the tide comes"}, lambda: "16:20")], cache_dir=CACHE) as board:
    print(board.execute_now(Call(name="tide"), board.route_now("the tide?")).text)
""".replace("CACHE", repr(str(tmp_path)))

    done = run(program, *EXTRAS)

    assert done.stdout.splitlines() == ["16:20"], done.stderr


@pytest.mark.parametrize(
    ("missing", "words", "extra"),
    [
        ("typer", "--help", "cli"),
        ("rich", "rank set --out out.jsonl", "cli"),
        ("prometheus_client", "serve", "gateway"),
        ("mcp", "--version", None),
    ],
)
def test_the_command_says_which_extra_it_misses(missing: str, words: str, extra: str | None, tmp_path: Path) -> None:
    program = f"sys.argv[1:] = {words.split()!r}\nfrom pegboard.apps import main\nmain()"

    done = run(program, missing)

    if extra is None:
        assert done.returncode == 0
    else:
        assert done.returncode == 2
        assert done.stderr.startswith("pegboard: ")
        assert f"pip install 'pegboard[{extra}]'" in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.requirement("C9")
@pytest.mark.parametrize("module", ["pegboard.upstreams", "pegboard.gateways.mcp", "pegboard.gateways.serve"])
@pytest.mark.parametrize("version", ["1.30.0", "2.1.1"])
def test_with_an_earlier_mcp_servers_and_gateways_say_which_one_they_need(
    tmp_path: Path, module: str, version: str
) -> None:
    installed = tmp_path / f"mcp-{version}.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: mcp\nVersion: {version}\n", "utf-8")

    done = run(f"sys.path.insert(0, {str(tmp_path)!r})\nimport {module}")

    assert f"need mcp 2.3 or later; installed is {version}" in done.stderr
    assert "pip install 'mcp>=2.3'" in done.stderr
