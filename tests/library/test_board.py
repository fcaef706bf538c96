from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import thread as futures
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any

import pytest

from gateway_processes import GatewayProcess
from pegboard import AgentState, Board, Call, Outcome, ToolId
from pegboard.compose import board_parts
from pegboard.errors import ArgumentsInvalid, CatalogError, ConfigError, StoreError, ToolNotAvailable
from pegboard.model import Decision, Server, ServerName, Session, Turn
from pegboard.retrieval.index.exact import ExactVectors
from pegboard.settings.server_spec import ServerSpec
from pegboard.stores import MemorySessions
from pegboard.testing import FakeClock, FakeEncoder, fake_tool
from processes import alive, descendants, eventually
from upstream_specs import SCRIPTED

TIDE = "when is high tide in Bergen?"


def tide(harbour: str, day: int = 1) -> dict[str, Any]:
    """When the tide comes in at a harbour"""
    return {"harbour": harbour, "hour": 16 + day}


async def loan(book: str) -> str:
    """Renew the loan of a book"""
    return f"{book} renewed"


@pytest.fixture
def board_with(tmp_path: Path) -> Iterator[Callable[..., Board]]:
    made: list[Board] = []

    def make(*tools: Any, **options: Any) -> Board:
        fast = {"encoder": FakeEncoder(), "cache_dir": tmp_path / "cache", "state_dir": tmp_path / "state"}
        given = tools[0] if len(tools) == 1 and not callable(tools[0]) else tools
        made.append(Board(given, **(fast | options)))
        return made[-1]

    yield make
    for board in made:
        board.close()


def names(decision: Decision) -> list[str]:
    return [tool.name for tool in decision.active]


def test_boards_with_tools_of_their_own_do_not_remove_one_anothers_vectors_from_an_index_that_they_share(
    board_with: Callable[..., Board], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared: dict[str, ExactVectors] = {}

    def index(board: str) -> ExactVectors:
        return shared.setdefault(board, ExactVectors(FakeEncoder().dimensions))

    monkeypatch.setattr(board_parts, "indexes", lambda *_: index)
    sea, library, again = board_with(tide), board_with(loan), board_with(tide)
    for board, tool in ((sea, "tide"), (library, "loan"), (again, "tide"), (sea, "tide")):
        assert "cosine" in board.route_now(f"a {tool}").candidates[0].parts
        assert board.route_now(f"a {tool}").candidates[0].tool == ToolId("local", tool)

    board_with(servers={}).route_now(TIDE)
    assert [sorted(each.name for each in asyncio.run(of.ids())) for of in shared.values()] == [["tide"], ["loan"], []]
    assert [*shared][2] == ""


def test_nothing_starts_before_the_first_use(board_with: Callable[..., Board]) -> None:
    before = threading.active_count()
    board_with(tide, servers={"none": {"command": "no-such-program"}})

    assert threading.active_count() == before


def test_functions_are_described_by_their_signature_and_docstring(board_with: Callable[..., Board]) -> None:
    tool = board_with(tide).catalog.tools[0]

    assert (str(tool.id), tool.description) == ("local/tide", "When the tide comes in at a harbour")
    assert tool.input_schema is not None
    assert tool.input_schema["required"] == ["harbour"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "function", "function": {"name": "tide", "parameters": {"type": "object"}}},
        {"type": "function", "name": "tide", "parameters": {"type": "object"}},
        {"name": "tide", "input_schema": {"type": "object"}},
        {"name": "tide", "inputSchema": {"type": "object"}},
        {"functionDeclarations": [{"name": "tide", "parameters": {"type": "object"}}]},
        fake_tool("tide", server="local"),
    ],
    ids=["openai", "responses", "anthropic", "mcp", "gemini", "tool"],
)
def test_schemas_of_every_provider_are_tools_and_can_be_given_what_to_call(
    schema: Any, board_with: Callable[..., Board]
) -> None:
    board = board_with([(schema, lambda **said: f"called with {said}")])

    result = board.execute_now(Call(name="tide", arguments={"a": 1}), board.route_now(TIDE))

    assert (str(result.tool), result.text) == ("local/tide", "called with {'a': 1}")


def test_a_partial_is_described_as_its_function_and_an_object_as_its_class(board_with: Callable[..., Board]) -> None:
    class Ferry:
        """Book a ferry"""

        def __call__(self, harbour: str) -> str:
            return f"to {harbour}"

    board = board_with(partial(tide, "Bergen"), Ferry())

    assert [(tool.name, tool.description) for tool in board.catalog.tools] == [
        ("tide", tide.__doc__),
        ("Ferry", "Book a ferry"),
    ]
    assert board.call_now(ToolId("local", "Ferry"), {"harbour": "Bergen"}).text == "to Bergen"


def test_a_partial_may_have_a_name_and_description_of_its_own(board_with: Callable[..., Board]) -> None:
    def sail(harbour: str) -> str:
        """Sail somewhere"""
        return f"to {harbour}"

    home, away = partial(sail, "Bergen"), partial(sail, "Oslo")
    home.__name__, away.__name__ = "sail_home", "sail_away"  # type: ignore[attr-defined]
    away.__doc__ = "Leave for Oslo"
    board = board_with(home, away, partial(update_wrapper(partial(sail), sail), "Rome"))

    assert [(tool.name, tool.description) for tool in board.catalog.tools] == [
        ("sail_home", "Sail somewhere"),
        ("sail_away", "Leave for Oslo"),
        ("sail", "Sail somewhere"),
    ]
    assert [board.call_now(tool.id, {}).text for tool in board.catalog.tools] == ["to Bergen", "to Oslo", "to Rome"]


def test_an_object_that_can_be_called_may_have_a_name_and_be_in_a_partial(board_with: Callable[..., Board]) -> None:
    class Ferry:
        """Book a ferry"""

        def __call__(self, persons: int, harbour: str) -> str:
            return f"{persons} to {harbour}"

    named = Ferry()
    named.__name__ = "boat"  # type: ignore[attr-defined]
    board = board_with(named, partial(Ferry(), 1))

    assert [(tool.name, tool.description) for tool in board.catalog.tools] == [
        ("boat", "Book a ferry"),
        ("Ferry", "Book a ferry"),
    ]
    assert board.call_now(ToolId("local", "boat"), {"persons": 2, "harbour": "Bergen"}).text == "2 to Bergen"
    assert board.call_now(ToolId("local", "Ferry"), {"harbour": "Bergen"}).text == "1 to Bergen"


def test_a_function_that_has_no_schema_is_refused_by_its_name() -> None:
    class Harbour: ...

    def unknown(harbour: Harbour) -> None: ...
    def undefined(harbour: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    for function in (unknown, undefined):
        with pytest.raises(CatalogError, match=f"'{function.__name__}' has no schema.*pair a schema"):
            Board([function])


@pytest.mark.parametrize("tools", [7, {"name": "tide"}, [7]])
def test_what_is_no_tool_is_refused_with_what_to_give(tools: Any) -> None:
    with pytest.raises(CatalogError, match="Give"):
        Board(tools)


def test_a_catalogs_path_is_enough(board_with: Callable[..., Board]) -> None:
    board = board_with(str(Path(__file__).parents[2] / "examples" / "tools.json"))

    assert len(board.catalog) > 1


@pytest.mark.parametrize("provider", ["openai", "responses", "anthropic", "gemini", "mcp"])
def test_a_decision_speaks_each_providers_format_under_names_they_all_take(
    provider: Any, board_with: Callable[..., Board]
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    tools = [fake_tool("notes.find", "find notes", server=server, schema=schema) for server in ("one", "two")]

    shown = board_with(tools).route_now("find notes").tools_for(provider)

    match provider:
        case "openai":
            entries = [each["function"] for each in shown]
        case "gemini":
            entries = shown[0]["functionDeclarations"]
        case _:
            entries = shown
    assert [each["name"] for each in entries] == ["one__notes_find", "two__notes_find"]
    keys = {"anthropic": "input_schema", "gemini": "parametersJsonSchema", "mcp": "inputSchema"}
    assert all(each[keys.get(provider, "parameters")] == schema for each in entries)


@pytest.mark.requirement("C4")
@pytest.mark.parametrize("tools", [[tide], []])
def test_a_format_that_is_not_known_is_an_error_that_says_which_are(
    tools: Any, board_with: Callable[..., Board]
) -> None:
    decision = board_with(tools).route_now(TIDE)

    with pytest.raises(ValueError, match="'openai', 'responses', 'anthropic', 'gemini'"):
        decision.tools_for("watsonx")  # type: ignore[arg-type]


def test_a_call_by_the_name_that_was_shown_finds_its_server(board_with: Callable[..., Board]) -> None:
    board = board_with([fake_tool("find", "find notes", server=server) for server in ("one", "two")])
    decision = board.route_now("find notes")

    assert board.check(Call(name="two__find"), decision) == ToolId("two", "find")
    with pytest.raises(ToolNotAvailable) as caught:
        board.check(Call(name="find"), decision)
    assert caught.value.available == ("one__find", "two__find")


def test_the_prompt_has_summaries_and_full_definitions_together_or_alone(board_with: Callable[..., Board]) -> None:
    decision = board_with(tide).route_now(TIDE)

    assert decision.prompt(phase=1) == "[local]\ntide: When the tide comes in at a harbour"
    assert json.loads(decision.prompt(phase=2))["inputSchema"]["required"] == ["harbour"]
    assert decision.prompt() == f"{decision.prompt(phase=1)}\n\n{decision.prompt(phase=2)}"


async def test_async_and_sync_give_the_same_where_a_loop_runs_as_in_a_notebook(
    board_with: Callable[..., Board],
) -> None:
    board = board_with(tide, loan)

    awaited, now = await board.route(TIDE), board.route_now(TIDE)
    results = [await board.execute(Call(name="loan", arguments={"book": "a"}), awaited)]
    results.append(board.execute_now(Call(name="loan", arguments={"book": "a"}), now))

    assert awaited.active == now.active
    assert [each.text for each in results] == ["a renewed", "a renewed"]


def test_boards_of_other_tools_share_servers_and_store_and_nothing_else(board_with: Callable[..., Board]) -> None:
    """Each has just its tools, at once; what they share ends with the last of them, or with `close`."""
    first = board_with(
        tide, config={"mcpServers": {"scripted": {"command": sys.executable, "args": [SCRIPTED]}}}, start_wait=60, k=50
    )
    other = first.with_tools([loan, {"name": "tide", "description": "What another tenant means by it"}])
    of_first, of_other = first.route_now(TIDE), other.route_now("renew the loan of a book, echo a text")

    assert {"tide", "loan", "echo"} & {tool.name for tool in first.catalog.tools} == {"tide", "echo"}
    assert {"tide", "loan", "echo"} <= {tool.name for tool in other.catalog.tools}
    assert first.catalog[ToolId("local", "tide")].description != other.catalog[ToolId("local", "tide")].description
    assert first.execute_now(Call(name="loan", arguments={"book": "a"}), of_first).is_error
    assert other.execute_now(Call(name="loan", arguments={"book": "a"}), of_other).text == "a renewed"
    assert other.execute_now(Call(name="echo", arguments={"text": "hello"}), of_other).text == "hello"


def test_a_board_of_other_tools_works_where_nobody_has_the_first_any_more(tmp_path: Path) -> None:
    other = Board([tide], encoder=FakeEncoder(), cache_dir=tmp_path).with_tools([loan])
    gc.collect()

    with other:
        assert names(other.route_now("renew a loan")) == ["loan"]


def test_a_board_that_is_collected_waits_for_nobody(tmp_path: Path) -> None:
    """The collector may run where a pool starts a thread, with the lock that closing the board needs."""
    board = Board([tide], encoder=FakeEncoder(), cache_dir=tmp_path)
    before = {each for each in threading.enumerate() if each.name == "pegboard"}
    board.observe(Outcome(tool=ToolId("local", "tide"), success=True, latency_ms=1))
    (thread,) = {each for each in threading.enumerate() if each.name == "pegboard"} - before

    with futures._global_shutdown_lock:
        del board
        gc.collect()

    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.requirement("C8")
@pytest.mark.parametrize(("wrong", "near"), [("kk", "Did you mean 'k'?"), ("profil", "'profile'"), ("zzz", "")])
def test_an_option_that_there_is_not_is_named_with_those_that_there_are(wrong: str, near: str) -> None:
    with pytest.raises(ConfigError) as told:
        Board([], **{wrong: 3})

    assert f"no option {wrong!r}" in str(told.value)
    assert near in str(told.value)
    assert " k, " in str(told.value)


@pytest.mark.requirement("C8")
def test_an_option_of_a_wrong_type_is_not_blamed_on_the_environment() -> None:
    with pytest.raises(ConfigError, match="The given options: k: Input should be a valid integer"):
        Board([], k="many")


RULES = [{"tools": "*/loan", "scope": "reader"}]
SERVERS = {"none": {"command": "no-such-program"}}


@pytest.mark.parametrize(
    "content",
    [
        {"rules": RULES, "k": 3},
        {"servers": SERVERS, "rules": RULES, "k": 3},
        {"mcp": {"servers": SERVERS}, "editor.fontSize": 12, "pegboard": {"rules": RULES, "k": 3}},
    ],
    ids=["options alone", "a settings file", "a client's file with a part for Pegboard"],
)
def test_the_content_of_a_settings_file_says_more_than_servers(
    content: dict[str, Any], board_with: Callable[..., Board]
) -> None:
    settings = board_with(tide, loan, config=content)._settings

    assert (settings.k, [rule.scope for rule in settings.rules]) == (3, ["reader"])
    assert set(settings.servers) <= {"none"}
    assert bool(settings.servers) is (len(content) > 2)


def test_other_keys_of_a_clients_file_are_the_clients(
    board_with: Callable[..., Board], caplog: pytest.LogCaptureFixture
) -> None:
    content = {"mcpServers": SERVERS, "rules": ["be nice"], "profile": "work", "pegboard": {"k": 3}, "theme": "dark"}
    settings = board_with(tide, loan, config=content)._settings

    assert (settings.k, settings.rules, set(settings.servers)) == (3, (), {"none"})
    assert "Not read beside the servers of a client: profile, rules." in caplog.text


def test_servers_may_be_given_as_a_file_has_them(board_with: Callable[..., Board]) -> None:
    spec = ServerSpec(name="spec", command="none")
    settings = board_with(tide, loan, servers={"spec": spec, **SERVERS})._settings

    assert list(settings.servers) == ["spec", *SERVERS]
    assert settings.servers["spec"] is spec
    assert settings.servers["none"].command == SERVERS["none"]["command"]


@pytest.mark.parametrize(
    ("servers", "said"), [({"x": {"comand": "none"}}, "'x'"), ({"x": "none"}, "'x'"), (["none"], "not an object")]
)
def test_servers_that_cannot_be_read_are_named_at_once(servers: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Board([tide], servers=servers)


@pytest.mark.parametrize("content", [{"servers": SERVERS, "rulez": RULES}, {"pegboard": {"rulez": RULES}}])
def test_a_key_of_a_settings_file_that_there_is_not_is_refused(content: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="no option 'rulez'"):
        Board([], config=content)


def test_the_content_of_a_file_is_what_the_environment_overrides(
    board_with: Callable[..., Board], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_K", "7")

    assert board_with(tide, config={"k": 3, "pins": "warn"})._settings.k == 7
    with pytest.raises(ConfigError, match="The given options: pins"):
        Board([], config={"pins": "never mind"})


def test_a_server_that_has_the_name_of_the_boards_own_tools_is_refused_where_it_has_some() -> None:
    spec = {"command": "no-such-program"}
    alone = Board(servers={"local": spec})

    for refused in (
        lambda: Board([tide], servers={"local": spec}),
        lambda: Board(servers={"pegboard-results": spec}, results="handle"),
        lambda: alone.add_tools([tide]),
        lambda: alone.replace_tools([tide]),
        lambda: alone.with_tools([tide]),
    ):
        with pytest.raises(ConfigError, match="Give the server another name"):
            refused()
    assert not alone._opened.given.groups
    Board([tide], servers={"local": {**spec, "disabled": True}})


def places(low: int, high: int = 9, /, *, step: int = 1) -> str:
    """Numbers between two"""
    return f"{low} to {high} by {step}"


@pytest.mark.parametrize("paired", [False, True])
def test_arguments_that_a_function_takes_by_place_alone_are_given_by_name(
    paired: bool, board_with: Callable[..., Board]
) -> None:
    described = board_with(places).catalog.tools[0].input_schema
    assert described is not None
    assert (described["type"], [*described["properties"]]) == ("object", ["low", "high", "step"])
    board = board_with([({"name": "places", "inputSchema": described}, places)] if paired else [places])
    decision = board.route_now("numbers between two")

    found = [
        board.execute_now(Call(name="places", arguments=arguments), decision)
        for arguments in ({"low": 3}, {"high": 5, "low": 4, "step": 2}, {"high": 5})
    ]

    assert [each.text for each in found[:2]] == ["3 to 9 by 1", "4 to 5 by 2"]
    assert "arguments_invalid" in found[2].text


def test_a_function_whose_arguments_have_no_names_is_refused() -> None:
    def total(*numbers: int) -> int:
        return sum(numbers)

    with pytest.raises(CatalogError, match="'total' takes any number of arguments without names"):
        Board([total])


async def test_all_that_a_generator_yields_is_its_result_wherever_it_runs(board_with: Callable[..., Board]) -> None:
    loops: list[Any] = []

    def harbours() -> Iterator[str]:
        """Harbours with a tide"""
        yield from (tool.name for tool in board.catalog.tools)  # a function may use the board

    async def hours() -> AsyncIterator[int]:
        """Hours of the tide"""
        loops.append(asyncio.get_running_loop())
        yield 4
        yield 16

    async def broken() -> AsyncIterator[str]:
        """Harbours that are broken"""
        yield "first"
        raise ValueError("the harbour went away")

    board = board_with(harbours, hours, broken)
    decision = await board.route("harbours and hours that are broken")
    calls = [Call(name=name) for name in ("harbours", "hours", "broken")]

    awaited = [await board.execute(call, decision) for call in calls]
    found = [board.execute_now(call, decision) for call in calls]

    for each in (awaited, found):
        assert [result.structured for result in each] == [["harbours", "hours", "broken"], [4, 16], None]
        assert "the harbour went away" in each[2].text
    assert loops[0] is asyncio.get_running_loop()


async def test_async_functions_run_on_the_callers_loop(board_with: Callable[..., Board]) -> None:
    loops: list[Any] = []

    async def where() -> str:
        """Where am I"""
        loops.append(asyncio.get_running_loop())
        return "here"

    board = board_with(where)
    await board.execute(Call(name="where"), await board.route("where am I"))

    assert loops == [asyncio.get_running_loop()]


def test_a_board_serves_threads_side_by_side(board_with: Callable[..., Board]) -> None:
    board, found = board_with(tide, loan, k=1, profile="attention", threshold=0.0), {}

    def ask(number: int) -> None:
        found[number] = names(board.route_now(TIDE if number % 2 else "renew the loan of a book"))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == {number: ["tide" if number % 2 else "loan"] for number in range(8)}


def test_arguments_are_checked_and_converted_before_a_function_sees_them(board_with: Callable[..., Board]) -> None:
    board = board_with(tide)
    decision = board.route_now(TIDE)

    with pytest.raises(ArgumentsInvalid):
        board.check(Call(name="tide", arguments={"harbour": 7}), decision)
    wrong = board.execute_now(Call(name="tide", arguments={"harbour": 7}), decision)
    right = board.execute_now(Call(name="tide", arguments={"harbour": "Bergen"}), decision)

    assert (wrong.is_error, json.loads(wrong.text)["error"], wrong.tool) == (True, "arguments_invalid", None)
    assert right.structured == {"harbour": "Bergen", "hour": 17}


@pytest.mark.requirement("000.hallucination-gate")
def test_a_call_of_a_tool_that_is_not_active_is_a_result_that_says_so(board_with: Callable[..., Board]) -> None:
    board = board_with(tide, loan, k=1, profile="attention", threshold=0.0)
    decision = board.route_now(TIDE)

    said = json.loads(board.execute_now(Call(name="loan", arguments={"book": "a"}), decision).text)

    assert (said["error"], said["available"]) == ("tool_not_available", ["tide"])


def test_a_function_that_raises_is_a_result_that_says_so_and_is_observed(board_with: Callable[..., Board]) -> None:
    def breaks() -> None:
        """Breaks"""
        raise OSError("no water")

    board = board_with(breaks)
    result = board.execute_now(Call(name="breaks"), board.route_now("breaks"))

    assert (result.is_error, json.loads(result.text)) == (True, {"error": "OSError", "message": "no water"})


def test_a_function_that_ends_the_program_or_its_iterator_is_answered(board_with: Callable[..., Board]) -> None:
    def leave() -> None:
        sys.exit("bye")

    async def leave_later() -> None:
        sys.exit(3)

    def leave_within() -> dict[str, Any]:
        return {"rows": (sys.exit(4) for _ in [1])}

    def first() -> str:
        return next(iter([]))

    tools = (leave, leave_later, leave_within, first)
    board = board_with(*tools)
    decision = board.route_now("leave", whole_if_small=True)
    results = {tool.__name__: board.execute_now(Call(name=tool.__name__), decision) for tool in tools}

    assert {name: (result.is_error, json.loads(result.text)["message"]) for name, result in results.items()} == {
        "leave": (True, "The tool called sys.exit('bye')."),
        "leave_later": (True, "The tool called sys.exit(3)."),
        "leave_within": (True, "The tool called sys.exit(4)."),
        "first": (True, "The tool raised StopIteration."),
    }


@pytest.mark.parametrize("error", [StoreError("the store is not there", remedy=""), OSError("no route to host")])
def test_a_tool_that_has_run_is_no_error_where_the_store_fails_afterwards(
    error: Exception, board_with: Callable[..., Board], caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(MemorySessions):
        async def save(self, session: Session) -> None:
            raise error

    board = board_with(tide, store=Failing(FakeClock()))
    result = board.execute_now(Call(name="tide", arguments={"harbour": "a"}), board.route_now(TIDE, session="ada"))

    assert (result.is_error, result.structured) == (False, {"harbour": "a", "hour": 17})
    assert "A call of local/tide was made and could not be recorded" in caplog.text


def test_a_function_that_returns_bytes_which_are_no_text_has_not_failed(board_with: Callable[..., Board]) -> None:
    def picture() -> bytes:
        """A picture"""
        return b"\x89PNG"

    result = board_with(picture).call_now(ToolId("local", "picture"), {})

    assert (result.is_error, result.text) == (False, "\ufffdPNG")


def test_a_schema_alone_can_be_routed_and_checked_but_not_called(board_with: Callable[..., Board]) -> None:
    board = board_with([{"name": "tide"}])
    decision = board.route_now(TIDE)

    assert board.check(Call(name="tide"), decision).name == "tide"
    assert "neither a function nor a server" in board.execute_now(Call(name="tide"), decision).text


def test_without_a_decision_the_latest_one_counts_and_without_any_nothing_passes(
    board_with: Callable[..., Board],
) -> None:
    board = board_with(tide)

    with pytest.raises(ToolNotAvailable, match="Route a turn first"):
        board.check(Call(name="tide", arguments={"harbour": "a"}))
    board.route_now(TIDE)
    assert board.check(Call(name="tide", arguments={"harbour": "a"})).name == "tide"


@pytest.mark.parametrize(
    ("gate", "passes"),
    [("active", False), ("reachable", True), (lambda call, decision: ToolId("local", "loan"), True)],
)
def test_the_gate_is_the_callers_to_choose(gate: Any, passes: bool, board_with: Callable[..., Board]) -> None:
    board = board_with(tide, loan, k=1, profile="attention", threshold=0.0, gate=gate)

    result = board.execute_now(Call(name="loan", arguments={"book": "a"}), board.route_now(TIDE))

    assert result.is_error is not passes


def test_from_the_second_refusal_on_the_selection_doubles(board_with: Callable[..., Board]) -> None:
    tools = [fake_tool(f"tide_{number}", "high tide", server="local") for number in range(8)]
    board = board_with(tools, k=1, profile="attention", threshold=0.0)

    wider = [names(board.route_now(TIDE, refused=["tide_7"] * times)) for times in range(4)]

    assert [len(each) for each in wider] == [1, 1, 2, 4]
    assert "tide_7" in wider[2]
    assert "tide_7" not in wider[1]


def test_what_the_caller_may_not_use_is_not_widened_to(board_with: Callable[..., Board]) -> None:
    board = board_with(tide, loan, rules=[{"tools": "*/loan", "scope": "reader"}])

    assert names(board.route_now(TIDE, refused=["loan"] * 5)) == ["tide"]
    assert "loan" in names(board.route_now(TIDE, refused=["loan"] * 5, scopes=frozenset({"reader"})))


@pytest.mark.parametrize("given", [{"provider": "openai"}, "openai"])
@pytest.mark.parametrize("part", ["encoder", "store", "events"])
def test_a_part_that_cannot_be_one_is_an_error_that_says_what_can(part: str, given: object) -> None:
    said = rf"{part} is {type(given).__name__} without '\w+'\. Give an object"
    with pytest.raises(ConfigError, match=said) as raised:
        Board(**{part: given})

    assert ("config={'encoder': …}" in str(raised.value)) == (part == "encoder")


@pytest.mark.parametrize("gate", ["activ", None, 7])
def test_a_gate_that_there_is_not_is_an_error(gate: Any) -> None:
    with pytest.raises(ConfigError, match=rf"There is no gate {gate!r}\. Give active or reachable, or a function\."):
        Board(gate=gate)


@pytest.mark.parametrize(("said", "passes"), [({}, True), ({"scopes": frozenset()}, False)], ids=["nothing", "none"])
def test_a_caller_without_scopes_does_not_get_those_of_the_process(
    said: dict[str, Any], passes: bool, board_with: Callable[..., Board]
) -> None:
    board = board_with(tide, loan, rules=[{"tools": "*/loan", "scope": "reader"}], scopes=("reader",))

    of_fields, of_turn = board.route_now(TIDE, **said), board.route_now(Turn.ask(TIDE, **said))

    assert [("loan" in names(each)) for each in (of_fields, of_turn)] == [passes, passes]
    assert ("loan" in [each.name for each in board.search_now("renew the loan of a book", **said).tools]) is passes


def test_a_named_session_remembers_which_tools_have_answered(board_with: Callable[..., Board]) -> None:
    store = MemorySessions(FakeClock())
    board = board_with(tide, loan, store=store, rules=[{"tools": "*/loan", "requires": ["has_prior_tool_output:tide"]}])

    before = board.route_now("renew the loan of a book", session="ada")
    board.execute_now(Call(name="tide", arguments={"harbour": "a"}), board.route_now(TIDE, session="ada"))
    after = board.route_now("renew the loan of a book", session="ada")
    other = board.route_now("renew the loan of a book", session="eve")

    assert [("loan" in names(each)) for each in (before, after, other)] == [False, True, False]


def test_facts_and_messages_of_any_provider_make_a_turn(board_with: Callable[..., Board]) -> None:
    board = board_with(tide, loan, rules=[{"tools": "*/loan", "requires": ["milestone_reached:card"]}])
    said = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "renew the loan of a book"}]},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "tide"}}]},
        {"role": "tool", "content": "17"},
        {"role": "user", "content": [{"type": "tool_result", "content": "17"}]},
    ]

    decision = board.route_now(said, state=AgentState(milestones=frozenset({"card"})))

    assert (decision.query, "loan" in names(decision)) == ("renew the loan of a book", True)
    assert "loan" not in names(board.route_now(said))
    with pytest.raises(ConfigError, match="the role 'wizard', which is none of system"):
        board.route_now([{"role": "wizard"}])


def test_tools_can_be_replaced_between_turns(board_with: Callable[..., Board]) -> None:
    board = board_with(tide)
    decision = board.route_now(TIDE)
    board.replace_tools([loan])

    assert names(board.route_now("renew the loan")) == ["loan"]
    assert json.loads(board.execute_now(Call(name="tide", arguments={"harbour": "a"}), decision).text)["error"] == (
        "tool_not_available"
    )


def test_what_was_observed_is_what_prices_go_by(board_with: Callable[..., Board]) -> None:
    board = board_with(tide, breakers={"failures": 1})
    board.observe(Outcome(tool=ToolId("local", "tide"), success=False, latency_ms=1, failure="server"))

    assert board.routing.allowed(Turn.ask("x")) == {ToolId("local", "tide")}


@pytest.mark.requirement("001.eq8")
def test_what_one_process_observed_another_goes_by(board_with: Callable[..., Board]) -> None:
    first, second = board_with(tide), board_with(tide)
    decision = first.route_now(TIDE)
    for _ in range(5):
        assert not first.execute_now(Call(name="tide", arguments={"harbour": "Bergen"}), decision).is_error
    first.close()

    [offer] = asyncio.run(second.routing.offers(TIDE)).tools

    assert offer.success > 0.9, "0.855 is what is assumed before any call"


@pytest.mark.requirement("M13")
def test_servers_of_a_configuration_are_started_called_and_ended(
    board_with: Callable[..., Board], tmp_path: Path
) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"scripted": {"command": sys.executable, "args": [SCRIPTED]}}}))
    before = set(descendants(_me()))
    board = board_with(tide, config=config, start_wait=60, k=20, recall=1.0)

    decision = board.route_now("add two numbers")
    started = set(descendants(_me())) - before
    added = board.execute_now(Call(name="add", arguments={"a": 1, "b": 2}), decision)
    picture = board.execute_now(Call(name="picture"), decision)
    failed = board.execute_now(Call(name="fails"), decision)
    raised = board.execute_now(Call(name="raises"), decision)
    board.close()

    assert (added.text, added.structured) == ("3", {"sum": 3})
    assert {block["type"] for block in picture.content} == {"image", "resource_link"}
    assert (failed.is_error, raised.is_error) == (True, True)
    assert started
    assert eventually(lambda: not any(map(alive, started)))


def test_a_closed_board_opens_again(board_with: Callable[..., Board]) -> None:
    config = {"mcpServers": {"scripted": {"command": sys.executable, "args": [SCRIPTED]}}}
    board = board_with(config=config, start_wait=60)

    for _ in range(2):
        assert any(tool.name == "echo" for tool in board.catalog.tools)
        board.close()


async def test_another_pegboard_is_reached_by_its_address(board_with: Callable[..., Board], tmp_path: Path) -> None:
    gateway = GatewayProcess(tmp_path / "gateway")
    gateway.start()
    try:
        async with board_with(tide, url=gateway.url, start_wait=60) as board:
            decision = await board.route("echo a text back")
            result = await board.execute(Call(name="echo", arguments={"text": "hello"}), decision)
    finally:
        gateway.end()

    assert ToolId("pegboard", "echo") in decision.active
    assert result.text == "hello"


def test_work_of_the_board_cannot_wait_for_the_board(board_with: Callable[..., Board]) -> None:
    async def asks() -> str:
        """Ask again"""
        board.route_now("x")
        return "never"

    board = board_with(asks)

    assert "use the async method" in board.execute_now(Call(name="asks"), board.route_now("ask again")).text


def test_servers_and_catalogs_keep_their_names(board_with: Callable[..., Board]) -> None:
    from pegboard import Catalog

    catalog = Catalog.build([(Server(name=ServerName("harbour")), [fake_tool("tide", server="harbour")])])

    assert board_with(catalog).catalog.servers.keys() == {"harbour"}
    assert Session().id == "default"


def _me() -> int:
    import os

    return os.getpid()
