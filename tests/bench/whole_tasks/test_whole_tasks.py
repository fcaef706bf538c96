from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import aiohttp
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from pegboard_bench.fleet.gateways import listed
from pegboard_bench.whole_tasks import bills, checks, page, summary
from pegboard_bench.whole_tasks.distractors import COUNT, definition, distractors
from pegboard_bench.whole_tasks.doors import SEARCH, Direct, VendorSearch, by_pattern, by_words
from pegboard_bench.whole_tasks.langchain_agents import picks
from pegboard_bench.whole_tasks.local_site import REFUSAL, site
from pegboard_bench.whole_tasks.model import Model, oracle
from pegboard_bench.whole_tasks.oracle import NoisyOracle
from pegboard_bench.whole_tasks.play import Played, converse, judged, most_requests, system
from pegboard_bench.whole_tasks.rates import MEAN, Rates, rates
from pegboard_bench.whole_tasks.sent import Sent
from pegboard_bench.whole_tasks.task import Task, read, resolved, tasks
from pegboard_bench.whole_tasks.toolbox import Toolbox, called
from pegboard_bench.whole_tasks.workspace import Workspace

PERFECT = Rates(right=2.0, less=0.0, search=2.0, named=2.0)
NEVER = Rates(right=-1.0, less=0.0, search=2.0, named=2.0)
SMALL = """
[[task]]
name = "stock"
ask = "Save the number of chairs in stock, from the database, in files/notes/chairs.txt."
steps = [
  ["shop/read_query", {query = "SELECT 'stock=' || stock FROM products WHERE name = 'chair'"}, "query rows"],
  ["disk/write_file", {path = "files/notes/chairs.txt", content = "<<1:stock=(\\\\d+)>>."}, "save a text file"],
]
checks = [["file", "files/notes/chairs.txt", "17"]]

[[task]]
name = "room"
ask = "In which room is the meeting of files/notes/meeting.txt?"
steps = [["disk/read_file", {path = "files/notes/meeting.txt"}, "read a text file"]]
checks = [["answer", "204"]]
"""
DEFINITIONS: Mapping[str, Any] = {
    "disk": [
        {"name": "read_file", "description": "Read the contents of a text file"},
        {"name": "write_file", "description": "Save text to a file, or overwrite it"},
        {"name": "delete_file", "description": "Remove a file for ever"},
    ],
    "shop": [
        {"name": "read_query", "description": "Query rows of the database with SQL"},
        {"name": "write_query", "description": "Change rows of the database with SQL"},
    ],
}


class SmallBox(Toolbox):
    """Five tools in this process."""

    space: Workspace

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        try:
            return self._called(name, arguments)
        except (KeyError, OSError) as error:
            return f"Error: {error}"

    def _called(self, name: str, arguments: Mapping[str, Any]) -> str:
        match name:
            case "disk__read_file":
                return (self.space.root / arguments["path"]).read_text("utf-8")
            case "disk__write_file":
                (self.space.root / arguments["path"]).write_text(arguments["content"], "utf-8")
                return "written"
            case "shop__read_query":
                with closing(sqlite3.connect(self.space.database)) as database:
                    return str(database.execute(arguments["query"]).fetchall())
        return REFUSAL


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace.made(tmp_path_factory.mktemp("tasks"))


@pytest.fixture
def box(space: Workspace) -> Toolbox:
    space.reset()
    made = object.__new__(SmallBox)
    object.__setattr__(made, "definitions", DEFINITIONS)
    object.__setattr__(made, "clients", {})
    object.__setattr__(made, "space", space)
    return made


def played(
    box: Toolbox, space: Workspace, task: Task, way: str = "all", like: Rates = PERFECT, seed: int = 0
) -> Played:
    model, noisy = Model(), NoisyOracle(task, like, seed, box.ids)
    model.begin(oracle(noisy))
    functions = box.functions()
    door = {
        "oracle": lambda: Direct(box, model, only=task),
        "all": lambda: Direct(box, model),
        "bm25": lambda: VendorSearch(box, model, find=by_words(functions), kind="bm25"),
        "regex": lambda: VendorSearch(box, model, find=by_pattern(functions), kind="regex"),
        "nothing": lambda: VendorSearch(box, model, find=lambda _: [], kind="bm25"),
    }[way]()
    space.reset()
    answer = asyncio.run(converse(task, door, model, system(space)))
    return judged(task, seed, space, model, answer=answer, missed=noisy.missed, began=0.0)


@pytest.mark.parametrize("way", ["oracle", "all", "bm25", "regex"])
def test_a_model_that_never_errs_does_each_task_by_each_way_and_what_was_sent_is_counted(
    way: str, box: Toolbox, space: Workspace
) -> None:
    stock, room = (played(box, space, task, way) for task in read(SMALL, {}))

    assert (stock["undone"], room["undone"]) == ([], [])
    assert len(stock["kept"]["sent"]) == (5 if way in ("bm25", "regex") else 3)
    assert stock["tokens"] > room["tokens"] > 0


def test_the_tools_of_a_task_alone_are_fewer_tokens_than_all(box: Toolbox, space: Workspace) -> None:
    room = read(SMALL, {})[1]

    assert played(box, space, room, "oracle")["tokens"] < played(box, space, room, "all")["tokens"]


def test_a_wrong_call_is_believed_and_the_task_is_not_done(box: Toolbox, space: Workspace) -> None:
    play = played(box, space, read(SMALL, {})[0], like=NEVER)

    assert play["undone"] == ["file files/notes/chairs.txt 17"]
    assert play["missed"] == [
        f"{tool} was shown, and another called" for tool in ("shop/read_query", "disk/write_file")
    ]


def test_a_tool_that_no_search_finds_is_searched_for_twice_and_then_missed(box: Toolbox, space: Workspace) -> None:
    play = played(box, space, read(SMALL, {})[1], "nothing")

    assert play["missed"] == ["disk/read_file was not shown"]
    assert len(play["kept"]["sent"]) == 3
    assert play["undone"]


LISTS = "\n\nNot listed:\nshop__: read_query, write_query\ndisk__read_file, disk__write_file"


def asked(box: Toolbox, like: Rates, functions: list[Any], *results: str, prompt: str = "") -> list[Any]:
    """The model's calls for the room of the meeting, one after the other, with these results."""
    noisy, messages = NoisyOracle(read(SMALL, {})[1], like, 0, box.ids), [{"role": "system", "content": prompt}]
    said = []
    for result in (None, *results):
        messages += [] if result is None else [{"role": "tool", "content": result}]
        message = noisy.respond([{"type": "function", "function": each} for each in functions], messages)
        calls = [each["function"] for each in message.get("tool_calls") or ()]
        said += [(each["name"], json.loads(each["arguments"])) for each in calls]
    return said


READS = Rates(right=2.0, less=0.0, search=0.0, named=2.0)
SEARCHES = Rates(right=2.0, less=0.0, search=2.0, named=0.0)
PATH = {"path": "files/notes/meeting.txt"}


def test_a_tool_whose_name_a_search_lists_is_got_at_by_its_name(box: Toolbox) -> None:
    search = {"name": "search_tools", "description": f"Find tools{LISTS}"}
    found = {"name": "disk__read_file", "description": "Read a file"}
    definition_of = {"name": "describe_tools", "description": "Get definitions"}
    invoke = {"name": "invoke_tool", "description": "Call a tool"}
    described = '{"tools": [{"name": "disk__read_file"}]}'

    assert asked(box, READS, [search]) == [("search_tools", {"query": "disk__read_file"})]
    assert asked(box, READS, [search, found]) == [("disk__read_file", PATH)]
    assert asked(box, READS, [search, definition_of, invoke], described) == [
        ("describe_tools", {"names": ["disk__read_file"]}),
        ("invoke_tool", {"name": "disk__read_file", "arguments": PATH}),
    ]
    assert asked(box, SEARCHES, [search]) == []


def test_a_name_in_the_system_prompt_is_called_and_one_in_a_sentence_is_not_read(box: Toolbox) -> None:
    blind = {"name": "search_tools", "description": "Find tools, for example to read_file or such"}

    assert asked(box, READS, [], prompt="All tools:\n[disk] read_file, write_file") == [("read_file", PATH)]
    assert asked(box, READS, [blind]) == []
    assert asked(box, SEARCHES, [blind]) == [("search_tools", {"query": "read a text file"})]


def test_the_luck_of_a_step_is_the_same_by_every_way(box: Toolbox, space: Workspace) -> None:
    task, likely = read(SMALL, {})[0], Rates(right=0.6, less=0.0, search=2.0, named=2.0)
    outcomes = {
        way: [bool(played(box, space, task, way, likely, seed)["undone"]) for seed in range(6)]
        for way in ("oracle", "all", "bm25")
    }

    assert outcomes["oracle"] == outcomes["all"] == outcomes["bm25"]
    assert len(set(outcomes["oracle"])) == 2


def test_every_task_can_be_read_and_has_checks_of_known_kinds_that_do_not_hold_before_it_is_played(
    space: Workspace,
) -> None:
    space.reset()
    found = tasks({"root": str(space.root), "pages": "http://localhost/pages"})

    assert len(found) == len({task.name for task in found}) >= 60
    assert [task.name for task in found if not checks.undone(task.checks, space, "")] == []


def test_checks_see_what_was_done_in_files_git_rows_and_the_memory(space: Workspace) -> None:
    space.reset()
    (space.root / "files" / "new.txt").write_text("a line", "utf-8")
    holds = [
        ("file", "files/new.txt", "a line"),
        ("absent", "files/old.txt"),
        ("folder", "files/notes"),
        ("branch", "feature/login"),
        ("head", "main"),
        ("subject", "Greet by name"),
        ("committed", "main.py"),
        ("staged", "README.md"),
        ("unstaged", "main.py"),
        ("rows", "SELECT count(*) FROM orders", "3"),
        ("remembered", "Mira", "works in Lisbon"),
        ("related", "Mira", "leads", "Falcon"),
        ("answer", "Yes"),
    ]
    fails = [
        ("file", "files/new.txt", "another"),
        ("branch", "none"),
        ("rows", "SELECT name FROM nothing", "3"),
        ("forgotten", "Mira"),
        ("not_related", "Mira", "leads", "Falcon"),
        ("not_remembered", "Mira", "works in Lisbon"),
        ("answer", "no"),
    ]

    assert checks.undone(holds, space, "yes.") == []
    assert len(checks.undone(fails, space, "yes.")) == len(fails)


def test_arguments_take_up_what_earlier_results_say() -> None:
    said = {"a": "<<1:sum=(\\d+)>>", "text": "is <<1:sum=\\d+>>", "lost": "<<2:x>>"}

    assert resolved(said, ["sum=36"]) == {"a": 36, "text": "is sum=36", "lost": "unknown"}


def test_the_fitted_rates_give_the_published_scores_back() -> None:
    mean, weak = rates()[MEAN], rates()["gpt-oss-120b"]
    steps = 1.66

    assert [round(mean.among(tools) ** steps, 2) for tools in (2, 64, 128)] == pytest.approx(
        [0.80, 0.77, 0.77], abs=0.015
    )
    assert (mean.among(5) * mean.search) ** steps == pytest.approx(0.63, abs=0.01)
    assert (mean.among(104) * mean.named) ** steps == pytest.approx(0.77, abs=0.01)
    assert weak.less > mean.less > 0
    assert rates()["kimi-k2"].search < rates()["kimi-k2"].named < 1.0


def test_distractors_are_of_other_servers_and_the_same_every_time() -> None:
    drawn = distractors(COUNT, {"filesystem", "git"}, {"create_issue"})

    assert sum(map(len, drawn.values())) == COUNT
    assert not drawn.keys() & {"filesystem", "git"}
    assert drawn == distractors(COUNT, {"filesystem", "git"}, {"create_issue"})


def test_the_local_site_is_a_model_an_mcp_server_and_a_page(box: Toolbox) -> None:
    task, tools = read(SMALL, {})[1], [definition(tool) for tool in distractors(3, (), ())["azure"][:1]]

    async def asked() -> tuple[Any, ...]:
        model = Model()
        model.begin(oracle(NoisyOracle(task, PERFECT, 0, box.ids)))
        body = {"messages": [{"role": "user", "content": task.ask}], "tools": box.functions()}
        async with (
            site(model, {"azure": tools}) as url,
            aiohttp.ClientSession() as session,
            Client(streamable_http_client(f"{url}/mcp/azure"), mode="legacy", cache=None) as client,
        ):
            answer = await (await session.post(f"{url}/v1/chat/completions", json=body)).json()
            text = await (await session.get(f"{url}/pages/prices")).text()
            return answer, text, await listed(client), await called(client, "anything", {}), model.sent

    answer, text, mine, refused, sent = asyncio.run(asked())

    assert answer["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "disk__read_file"
    assert "9312" in text
    assert [tool["name"] for tool in mine] == [tool["name"] for tool in tools]
    assert refused == REFUSAL
    assert len(sent.requests) == 1


def test_what_a_search_found_is_counted_where_it_stands_and_not_again_among_the_tools() -> None:
    tool = {"type": "function", "function": {"name": "tide", "description": "When the tide is high"}}
    body = {"tools": [tool], "messages": [{"role": "user", "content": "now?"}]}
    twice, once = Sent(), Sent()
    twice.add(body)
    once.add(body, ["tide"])

    assert twice.tokens > once.tokens
    assert (twice.requests[0][0], once.requests[0][0]) == (1, 0)


def test_a_selecting_model_names_each_tool_of_the_task_and_errs_as_the_model_would(box: Toolbox) -> None:
    task = read(SMALL, {})[0]

    assert picks(task, PERFECT, 0, box.functions()) == ["shop__read_query", "disk__write_file"]
    assert len(picks(task, NEVER, 0, box.functions())) in (1, 2)


def test_figures_are_paired_with_the_oracle_and_every_loss_is_listed_and_shown(box: Toolbox, space: Workspace) -> None:
    small = read(SMALL, {})
    plays = {
        board: {
            name: {0: [played(box, space, task, way) for task in small]}
            for name, way in (("oracle", "oracle"), ("all", "all"), ("bm25_search", "nothing"), ("llm_gateway", "all"))
        }
        for board in ("servers", "plus128")
    }

    figures, tables = summary.figures(plays), summary.tables(plays)

    assert (figures["success/oracle"], figures["success/bm25_search"]) == (1.0, 0.0)
    assert figures["success_minus_oracle_high/bm25_search/servers"] == -1.0
    assert figures["tokens_over_oracle/all/servers"] > 1
    assert figures["billed_over_all/all/gpt-5.4"] == 1.0
    assert [each["task"] for each in tables["losses"]["servers"]["bm25_search"]] == ["stock", "room"]
    machine = {"cores": 2, "cpu": "a", "python": "3"}
    about = {
        "rates": {"right": 0.9, "less": 0.0, "search": 0.9},
        "tasks": 2,
        "seeds": 1,
        "tools": {"servers": 5, "plus128": 133},
    }
    written = {"command": "make bench-tasks", "date": "2026-11-24", "commit": "c" * 40, "machine": machine}
    text = page.section(json.loads(json.dumps(written | {"figures": figures, "tables": about | tables})))
    assert "| all tools | 100.0%" in text
    assert "stock (shop/read_query was not shown" in text
    assert "held" in text


def test_a_user_who_asks_again_is_billed_less_for_what_the_cache_has(box: Toolbox, space: Workspace) -> None:
    long = {"blocks": [(1, 4000), (2, 50)], "sent": [(1, (0, 1))], "aside": []}
    play = played(box, space, read(SMALL, {})[1]) | {"kept": long}

    first, again = bills.billed([play, play], "gpt-5.4")

    assert again < first / 2


def test_a_play_has_an_end(box: Toolbox) -> None:
    task, model = read(SMALL, {})[1], Model()

    async def for_ever(_: Any) -> dict[str, Any]:
        call = {"id": "1", "type": "function", "function": {"name": SEARCH, "arguments": "{}"}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    model.begin(for_ever)
    door = VendorSearch(box, model, find=lambda _: [], kind="bm25")

    assert asyncio.run(converse(task, door, model, "")) == ""
    assert len(model.sent.requests) == most_requests(task)
