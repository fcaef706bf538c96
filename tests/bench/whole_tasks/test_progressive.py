"""ProgressiveMCPBench's tasks: records of its form go in, tasks with checks come out."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pegboard.errors import ConfigError
from pegboard.settings.server_spec import ServerSpec
from pegboard_bench.results_age import ROOT
from pegboard_bench.sets.recipe import Files, Repository
from pegboard_bench.whole_tasks import bills, checks, progressive, progressive_page
from pegboard_bench.whole_tasks.local_site import REFUSAL, site
from pegboard_bench.whole_tasks.model import Model
from pegboard_bench.whole_tasks.oracle import NoisyOracle
from pegboard_bench.whole_tasks.rates import Rates, published
from pegboard_bench.whole_tasks.task import Task, made
from pegboard_bench.whole_tasks.toolbox import toolbox
from pegboard_bench.whole_tasks.workspace import Workspace

PERFECT = Rates(right=2.0, less=0.0, search=2.0, named=2.0)
SAID = tomllib.loads((files("pegboard_bench.whole_tasks") / "progressive.toml").read_text("utf-8"))
ANSWERS: Mapping[str, str] = {
    "about": "42.5 of it",
    "trial": "Brief Title: Aspirin\nOfficial Title: A Trial of Aspirin",
}


def records() -> list[dict[str, Any]]:
    """In the benchmark's form, with answers of ours."""
    return [
        {
            "task_id": each["id"],
            "Question": f"Do {each['name']}.",
            "answer": ANSWERS.get(each["name"]) or ANSWERS.get(each["checks"][0][0], "Alder, Birch, Cedar"),
        }
        for each in SAID["task"]
    ]


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(root=tmp_path_factory.mktemp("work"), model=tmp_path_factory.mktemp("model"))


def test_every_task_takes_request_and_answer_from_its_record_and_is_done_by_that_answer_alone(space: Workspace) -> None:
    found, given = progressive.tasks(records()), records()

    assert len(found) == len({task.name for task in found}) == 19
    assert [task.ask for task in found] == [each["Question"] for each in given]
    answers = [each["answer"] for each in given]
    assert [checks.undone(task.checks, space, said) for task, said in zip(found, answers, strict=True)] == [[]] * 19
    assert [task.name for task in found if not checks.undone(task.checks, space, "I have no tool for that.")] == []


def test_a_clone_that_lacks_a_task_is_refused() -> None:
    with pytest.raises(ConfigError, match="lacks the tasks tempo"):
        progressive.tasks(records()[1:])


def test_a_folder_without_the_benchmark_says_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not installed") as refused, progressive.running(tmp_path):
        pass
    assert "install_progressive.py" in str(refused.value.remedy)


@pytest.mark.parametrize(("result", "answer"), [("height 2, weight 100", "25"), ("nothing", "")])
def test_the_oracle_concludes_only_from_results_that_have_the_evidence(result: str, answer: str) -> None:
    task = worked_out(evidence=["height", "weight"], concludes="25")
    oracle, tools = NoisyOracle(task, PERFECT, 0, []), [{"function": {"name": "disk__read_file"}}]
    asked: list[dict[str, Any]] = [{"role": "user", "content": task.ask}]

    oracle.respond(tools, asked)
    said = oracle.respond(tools, [*asked, {"role": "tool", "content": result}])["content"]

    assert said.splitlines() == [result, *([answer] if answer else []), "Done."]


def worked_out(**more: Any) -> Task:
    step = ["disk/read_file", {"path": "a"}, "read a file"]
    return made({"name": "bmi", "ask": "How heavy for the height?", "steps": [step], "checks": [], **more}, {}, {})


@pytest.mark.parametrize(
    ("check", "answer", "holds"),
    [
        (["says", "one  line", "no other"], "This is ONE\nline.", True),
        (["says", "one line"], "one more line", False),
        (["about", "6723 metres", "0.01"], "It is 6,723 m (22,057 ft).", True),
        (["about", "1278.83", "0.024"], "1270 AUD", True),
        (["about", "30.25", "0.024"], "31.5 of 2,650.00", False),
    ],
)
def test_texts_are_compared_without_line_breaks_and_numbers_by_their_size(
    check: Sequence[str], answer: str, holds: bool, space: Workspace
) -> None:
    assert (checks.undone([check], space, answer) == []) is holds


async def test_servers_with_an_address_are_listed_and_called() -> None:
    tool = {"name": "get_story", "description": "Get a story", "inputSchema": {"type": "object"}}
    async with site(Model(), {"news": [tool]}) as url:
        spec = ServerSpec(name="news", url=f"{url}/mcp/news")
        async with toolbox({"news": spec}, {}) as box:
            assert [str(each) for each in box.ids] == ["news/get_story"]
            assert await asyncio.wait_for(box.call("news__get_story", {}), 60) == REFUSAL


def test_the_section_has_the_published_scores_beside_the_measured() -> None:
    names = ("success", "success_low", "success_high", "tokens", "tokens_over_oracle", "requests")
    minus = [f"success_minus_{other}{end}" for other in ("oracle", "all") for end in ("", "_low", "_high")]
    figures = {f"{name}/{way}/servers": 0.5 for way in ("oracle", "all") for name in (*names, *minus)}
    figures |= {f"billed_over_all/{way}/{of}/servers": 1.0 for way in ("oracle", "all") for of in bills.MODELS}
    tables = {
        "tasks": 19,
        "seeds": 1,
        "tools": {"servers": 104},
        "published": published(),
        "rates": {"right": 0.9, "less": 0.01},
        "losses": {"servers": {}},
    }
    machine = {"cores": 2, "cpu": "a", "python": "3"}
    written = {"command": "make x", "date": "2026-11-25", "commit": "c" * 40, "machine": machine, "figures": figures}

    text = progressive_page.section(json.loads(json.dumps(written | {"tables": tables})))

    assert "| a search (`copilot`) | a provider's search | 63.0% | 7,953 |" in text
    assert "| all tools | 50.0%" in text
    assert "twenty tasks, ten times" in text


class Held(Files):
    """A source in this process."""

    held: Mapping[str, bytes] = {"data/a.txt": b"a", "data/below/b.pdf": b"b", "other/c.txt": b"c"}

    def paths(self, folder: str) -> list[str]:
        return sorted(path for path in self.held if path.startswith(f"{folder}/"))

    def contents(self, paths: Sequence[str]) -> list[bytes]:
        return [self.held[path] for path in paths]


@pytest.fixture
def installer(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    spec = importlib.util.spec_from_file_location("install_progressive", ROOT / "scripts" / "install_progressive.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


def test_files_whose_content_no_tool_gives_are_there_and_empty(installer: ModuleType, tmp_path: Path) -> None:
    source = Held(Repository(name="a/b", commit="c" * 40, date="2025-12-11", licence="MIT"))

    installer._copy(source, "data", tmp_path / "files", text=(".txt",))

    assert (tmp_path / "files" / "a.txt").read_bytes() == b"a"
    assert (tmp_path / "files" / "below" / "b.pdf").read_bytes() == b""
    assert [path.name for path in tmp_path.rglob("c.txt")] == []
