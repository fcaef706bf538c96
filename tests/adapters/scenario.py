"""What an agent of any framework does behind its adapter; runs in the framework's own environment.

A driver (`drive_….py`) has one class with an agent's run; this module has two hundred tools, the asks, and a model that
is a function of what it is shown. The result is one JSON document on standard output.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
import traceback
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pegboard import Board

TOPICS = (
    *("invoice", "customer", "ticket", "calendar_event", "email", "contract", "warehouse_item", "shipment"),
    *("employee", "payroll_run", "campaign", "dashboard", "recipe", "sensor", "photo_album", "parking_space"),
    *("passport", "vaccine", "playlist", "telescope"),
)
VERBS = {
    "create": "Create a new {topic}",
    "get": "Fetch one {topic} by its id",
    "list": "List every {topic}",
    "update": "Change fields of a {topic}",
    "delete": "Remove a {topic} for good",
    "export": "Write a {topic} into a file",
    "approve": "Approve a {topic}",
    "archive": "Move a {topic} to the archive",
    "share": "Share a {topic} with a colleague",
    "translate": "Translate the text of a {topic}",
}
"""Ten, with twenty topics: two hundred tools."""
ASKS = tuple((f"get_{topic}", f"Fetch the {topic.replace('_', ' ')} with id 7") for topic in TOPICS)
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"id": {"type": "string"}}}
RIGHTS: tuple[tuple[str, ...], ...] = (
    tuple(VERBS),
    ("get", "list"),
    ("get", "list", "create", "update"),
    ("get", "translate", "share"),
)
PARALLEL = int(os.environ.get("TEST_PARALLEL", "200"))
"""Requests at once, fifty of them under way."""
K = 8
RUN = 120.0
"""Seconds after which a run counts as one that does not end."""
ROUNDS = 15
"""Of twenty turns each, in `added_time`."""
SOURCE = '''
def {name}(id: str = "") -> str:
    """{about}.

    Args:
        id: The id of the {topic}.
    """
    CALLS.append("{name}")
    return "ok {name} " + str(id)
'''
CALLS: list[str] = []
"""The tools that ran, in order."""


@dataclass
class Call:
    """A call; ``arguments`` may be text that is no JSON object, where a model sends text."""

    name: str
    arguments: Any = field(default_factory=lambda: {"id": "7"})

    @property
    def text(self) -> str:
        """The arguments as a model sends them."""
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


Reply = Call | str
"""A model's answer: a call, or a text that ends the run."""


@dataclass
class Script:
    """A model: each step is a reply, or a function of the names of the tools that it is shown. ``shown`` has those of
    each request, ``results`` the tool results that came back, ``streamed`` the parts of answers that the agent's user
    got while the agent was at work."""

    steps: Sequence[Reply | Callable[[Sequence[str]], Reply]]
    shown: list[list[str]] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    streamed: list[str] = field(default_factory=list)

    def reply(self, tools: Sequence[str], results: Sequence[str] = ()) -> Reply:
        self.shown.append(list(tools))
        self.results = list(results)
        step = self.steps[min(len(self.shown), len(self.steps)) - 1]
        return step if isinstance(step, (str, Call)) else step(tools)


Functions = Sequence[Callable[..., str]]


def halves(text: str) -> tuple[str, str]:
    """A text in two parts, as a model streams it."""
    middle = len(text) // 2
    return text[:middle], text[middle:]


class Driver:
    """One framework's agent. ``run`` makes one with these functions as tools, behind the adapter, and lets it work on
    ``ask``; the answer is its last text. With ``stream`` it notes in ``script.streamed`` what its user is given before
    the end."""

    def __init__(self, board: Board) -> None:
        raise NotImplementedError

    async def run(self, ask: str, script: Script, functions: Functions, *, stream: bool = False) -> str:
        raise NotImplementedError

    async def run_forced(self, ask: str, script: Script, functions: Functions, name: str) -> str:
        """As `run`; each request says that the model must call this tool."""
        raise NotImplementedError

    async def run_with_handoff(self, ask: str, script: Script, functions: Functions) -> str:
        """Two agents, the first of which can hand off to the second."""
        raise NotImplementedError

    def tools(self, functions: Functions) -> Sequence[object]:
        """The framework's tool objects."""
        raise NotImplementedError

    def messages(self, ask: str) -> Sequence[object]:
        """The ask, a call of `get_invoice`, its result and a text, as the framework's messages."""
        raise NotImplementedError

    async def select(self, ask: str, tools: Sequence[object]) -> object:
        """What the adapter does for one turn, without the framework, to be timed."""
        raise NotImplementedError


def functions(verbs: Sequence[str] = tuple(VERBS)) -> Functions:
    """The tools as functions of this module."""
    made = []
    for topic in TOPICS:
        for verb in verbs:
            name, words = f"{verb}_{topic}", topic.replace("_", " ")
            source = SOURCE.format(name=name, about=VERBS[verb].format(topic=words), topic=words)
            space: dict[str, Any] = {"__name__": __name__, "CALLS": CALLS}
            exec(source, space)  # noqa: S102 - our own text
            made.append(space[name])
    return made


async def twenty_turns(driver: Driver) -> dict[str, Any]:
    offered, largest, ended = 0, 0, 0
    for name, ask in ASKS:
        CALLS.clear()
        script = Script([Call(name), "done"])
        said = await driver.run(ask, script, functions())
        offered += name in script.shown[0]
        largest = max(largest, len(script.shown[0]))
        ended += said == "done" and [name] == CALLS
    return {"turns": len(ASKS), "offered": offered, "largest": largest, "ended": ended}


async def gate(driver: Driver) -> dict[str, Any]:
    CALLS.clear()
    script = Script([Call("delete_telescope"), "done"])
    said = await driver.run(ASKS[0][1], script, functions())
    return {
        "shown": "delete_telescope" in script.shown[0],
        "ran": list(CALLS),
        "result": script.results[-1] if script.results else "",
        "said": said,
    }


async def way_back(driver: Driver) -> dict[str, Any]:
    CALLS.clear()
    search = Call("search_tools", {"query": "translate the text of a telescope"})
    script = Script([search, Call("translate_telescope"), "done"])
    said = await driver.run(ASKS[0][1], script, functions())
    return {
        "offered": ["search_tools" in shown for shown in script.shown],
        "found": ["translate_telescope" in shown for shown in script.shown],
        "ran": list(CALLS),
        "said": said,
    }


async def forced(driver: Driver) -> dict[str, Any]:
    """A request that names a tool that the conversation is not about."""
    script = Script(["done"])
    said = await driver.run_forced(ASKS[0][1], script, functions(), "delete_telescope")
    return {"shown": "delete_telescope" in script.shown[0], "number": len(script.shown[0]), "said": said}


async def wrong_search(driver: Driver) -> dict[str, Any]:
    """What a model is told whose call of `search_tools` has no arguments that can be read; its run goes on."""
    results = []
    for arguments in ('{"query": "translate the', '["telescope"]', "7"):
        script = Script([Call("search_tools", arguments), "done"])
        async with asyncio.timeout(RUN):
            await driver.run(ASKS[0][1], script, functions())
        results.append(script.results[-1])
    return {"results": results}


async def parallel(driver: Driver) -> dict[str, Any]:
    """Each request has rights of its own, and its model tries a tool that it has no right to."""
    CALLS.clear()
    sets = [functions(verbs) for verbs in RIGHTS]
    slots = asyncio.Semaphore(50)

    async def one(number: int) -> tuple[int, int, int]:
        rights = RIGHTS[number % len(RIGHTS)]
        name, ask = ASKS[number % len(ASKS)]
        script = Script([Call("delete_invoice"), Call(name), "done"])
        async with slots:
            said = await driver.run(ask, script, sets[number % len(sets)])
        allowed = {f"{verb}_{topic}" for verb in rights for topic in TOPICS} | {"search_tools"}
        leaks = sum(tool not in allowed for shown in script.shown for tool in shown if tool in EVERY)
        return leaks, said != "done", "delete_invoice" in script.shown[0]

    outcomes = await asyncio.gather(*(one(number) for number in range(PARALLEL)), return_exceptions=True)
    errors = [each for each in outcomes if isinstance(each, BaseException)]
    good = [each for each in outcomes if not isinstance(each, BaseException)]
    deleted = sum(name.startswith("delete_") for name in CALLS)
    return {
        "requests": PARALLEL,
        "leaks": sum(each[0] for each in good),
        "not_ended": sum(each[1] for each in good),
        "errors": [f"{type(each).__name__}: {each}"[:300] for each in errors][:5],
        "deleted_unshown": deleted - sum(each[2] for each in good),
        "ran": len(CALLS),
    }


EVERY = frozenset(f"{verb}_{topic}" for verb in VERBS for topic in TOPICS)


async def streaming(driver: Driver) -> dict[str, Any]:
    CALLS.clear()
    name, ask = ASKS[3]
    script = Script([Call("delete_telescope"), Call(name), "done"])
    said = await driver.run(ask, script, functions(), stream=True)
    return {
        "said": said,
        "parts": [part for part in script.streamed if part],
        "ran": list(CALLS),
        "offered": name in script.shown[0],
        "largest": max(map(len, script.shown)),
    }


async def several_agents(driver: Driver) -> dict[str, Any]:
    CALLS.clear()
    name, ask = ASKS[5]
    control: list[str] = []

    def hand_off(tools: Sequence[str]) -> Reply:
        control.extend(tool for tool in tools if tool not in EVERY and tool != "search_tools")
        return Call(control[0], {}) if control else "no handoff is offered"

    script = Script([hand_off, Call(name), "done"])
    said = await driver.run_with_handoff(ask, script, functions())
    return {
        "control": control,
        "said": said,
        "ran": list(CALLS),
        "largest": max(map(len, script.shown)),
        "offered": name in script.shown[1] if len(script.shown) > 1 else False,
    }


async def board(driver: Driver) -> dict[str, Any]:
    from pegboard import Call as BoardCall

    CALLS.clear()
    with Board(driver.tools(functions(("get",))), k=K) as own:
        decision = await own.route(driver.messages(ASKS[0][1]))
        result = await own.execute(BoardCall(name="get_invoice", arguments={"id": "7"}), decision)
        schema = next(tool.input_schema for tool in own.catalog.tools if tool.name == "get_invoice")
        return {
            "tools": len(own.catalog),
            "query": decision.query,
            "active": [tool.name for tool in decision.active],
            "text": result.text,
            "properties": sorted((schema or {}).get("properties", {})),
        }


async def added_time(driver: Driver) -> dict[str, Any]:
    """Milliseconds that the adapter adds to a turn over 200 tools: each ask in its turn, the encoder has answered
    before. Of the processor, that is of all threads; ``wall_ms`` has the quartiles of the single turns."""
    tools = driver.tools(functions())
    for _, ask in ASKS:
        await driver.select(ask, tools)
    rounds, walls = [], []
    for _ in range(ROUNDS):
        began_round = time.process_time()
        for _, ask in ASKS:
            began = time.perf_counter()
            await driver.select(ask, tools)
            walls.append(1e3 * (time.perf_counter() - began))
        rounds.append(1e3 * (time.process_time() - began_round) / len(ASKS))
    return {
        "processor_ms": statistics.median(rounds),
        "processor_ms_rounds": [min(rounds), max(rounds)],
        "wall_ms": statistics.quantiles(walls, n=4),
        "turns": len(walls),
    }


Part = Callable[[Any], Awaitable[dict[str, Any]]]
PARTS: dict[str, Part] = {
    "twenty_turns": twenty_turns,
    "gate": gate,
    "way_back": way_back,
    "parallel": parallel,
    "streaming": streaming,
    "several_agents": several_agents,
    "board": board,
}


async def every_part(
    make: Callable[[Board], Driver], parts: Mapping[str, Part], names: Sequence[str]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async with Board(k=K) as shared:
        driver = make(shared)
        for name in names:
            try:
                found[name] = await parts[name](driver)
            except Exception:
                found[name] = {"failed": traceback.format_exc()[-3000:]}
    return found


def main(make: Callable[[Board], Driver], **own: Part) -> None:
    """Prints what every part found, or those named on the command line; ``own`` are parts of this framework alone."""
    warnings.simplefilter("ignore")
    parts = {**PARTS, "added_time": added_time, "wrong_search": wrong_search, "forced": forced, **own}
    found = asyncio.run(every_part(make, parts, sys.argv[1:] or list(PARTS)))
    sys.stdout.write("\n" + json.dumps(found) + "\n")
