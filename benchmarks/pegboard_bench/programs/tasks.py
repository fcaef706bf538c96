"""The tasks: what is asked, the single calls that answer it, and the program that does.

Each family has the same calls in any number. Programs are written by hand, as are the answers that are read from the
results of single calls: what is compared is what both cost when they are right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pegboard_bench.programs.world import COUNT, NEEDLE, SIZES, World

NUMBERS = (1, 2, 4, 8)
"""Calls of a task."""
FITTED = frozenset({"files", "shows", "zones", "info"})
"""Families on which the rule's constants are fitted; the others show it."""
ZONES = (
    *("Europe/Oslo", "Asia/Tokyo", "America/Lima", "Africa/Cairo"),
    *("Asia/Kolkata", "America/Denver", "Asia/Dubai", "Europe/Lisbon"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A call: `server/name` of the tool, and its arguments."""

    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """``text`` is what the user asks, ``search`` what the model searches for, ``steps`` the single calls.
    ``independent`` is whether they could be made at the same time. ``look`` is a first program that shows the form of
    a result where the tool's definition does not; ``program`` has `TOOL` for the tool's function."""

    family: str
    size: str
    text: str
    search: str
    steps: Sequence[Step]
    program: str
    answer: str
    independent: bool = True
    look: str = ""

    @property
    def name(self) -> str:
        return f"{self.family}-{self.size}-{len(self.steps)}"


def tasks(world: World) -> list[Task]:
    found = [make(world, size, number) for make in MAKERS for size in SIZES for number in NUMBERS]
    return [task for task in found if task is not None]


def _files(world: World, size: str, number: int) -> Task:
    paths = [world.path("logs", size, f"log{at}.txt") for at in range(number)]
    return Task(
        family="files",
        size=size,
        text=f"How many lines with ERROR do log0.txt to log{number - 1}.txt in {world.path('logs', size)} have in all?",
        search="read a text file",
        steps=[Step(tool="filesystem/read_text_file", arguments={"path": path}) for path in paths],
        program="import asyncio\n"
        f"paths = [f'{world.path('logs', size)}/log{{i}}.txt' for i in range({number})]\n"
        "texts = await asyncio.gather(*[TOOL(path=p) for p in paths])\n"
        "print(sum(t['content'].count('ERROR') for t in texts))",
        answer=str(sum(world.truth["errors", size, at] for at in range(number))),
    )


def _info(world: World, size: str, number: int) -> Task | None:
    if size == "large":
        return None
    paths = [world.path("logs", "large", f"log{at}.txt") for at in range(number)]
    return Task(
        family="info",
        size=size,
        text=f"How many bytes do log0.txt to log{number - 1}.txt in {world.path('logs', 'large')} have in all?",
        search="size of a file",
        steps=[Step(tool="filesystem/get_file_info", arguments={"path": path}) for path in paths],
        program="import asyncio, re\n"
        f"paths = [f'{world.path('logs', 'large')}/log{{i}}.txt' for i in range({number})]\n"
        "infos = await asyncio.gather(*[TOOL(path=p) for p in paths])\n"
        "print(sum(int(re.search(r'size: (\\d+)', t['content']).group(1)) for t in infos))",
        answer=str(sum(world.truth["bytes", "large", at] for at in range(number))),
        look=f"str(await TOOL(path='{paths[0]}'))[:300]",
    )


def _directories(world: World, size: str, number: int) -> Task:
    paths = [world.path("stock", size, f"shelf{at}") for at in range(number)]
    return Task(
        family="directories",
        size=size,
        text=f"How many files are in shelf0 to shelf{number - 1} of {world.path('stock', size)} in all?",
        search="list the files of a directory",
        steps=[Step(tool="filesystem/list_directory", arguments={"path": path}) for path in paths],
        program="import asyncio\n"
        f"paths = [f'{world.path('stock', size)}/shelf{{i}}' for i in range({number})]\n"
        "lists = await asyncio.gather(*[TOOL(path=p) for p in paths])\n"
        "print(sum(t['content'].count('[FILE]') for t in lists))",
        answer=str(sum(world.truth["entries", size, at] for at in range(number))),
        look=f"str(await TOOL(path='{paths[0]}'))[:300]",
    )


def _logs(world: World, size: str, number: int) -> Task:
    paths = [world.path("repositories", size, f"service{at}") for at in range(number)]
    return Task(
        family="logs",
        size=size,
        text=f"How many of the last 30 commits of service0 to service{number - 1} in "
        f"{world.path('repositories', size)} are Ann's, in all?",
        search="show the commit log of a git repository",
        steps=[Step(tool="git/git_log", arguments={"repo_path": path, "max_count": 30}) for path in paths],
        program="import asyncio\n"
        f"paths = [f'{world.path('repositories', size)}/service{{i}}' for i in range({number})]\n"
        "logs = await asyncio.gather(*[TOOL(repo_path=p, max_count=30) for p in paths])\n"
        "print(sum(str(log).count('Ann') for log in logs))",
        answer=str(sum(world.truth["commits", size, at] for at in range(number))),
        look=f"(await TOOL(repo_path='{paths[0]}', max_count=2))[:300]",
    )


def _shows(world: World, size: str, number: int) -> Task:
    path, commits = world.path("repositories", f"changes-{size}"), world.commits[size][:number]
    return Task(
        family="shows",
        size=size,
        text=f"How many of these commits of {path} mention “{NEEDLE}”: {', '.join(each[:10] for each in commits)}?",
        search="show the contents of a git commit",
        steps=[Step(tool="git/git_show", arguments={"repo_path": path, "revision": each[:10]}) for each in commits],
        program=f"revisions = '{' '.join(each[:10] for each in commits)}'.split()\n"
        f"shown = [await TOOL(repo_path='{path}', revision=r) for r in revisions]\n"
        f"print(sum('{NEEDLE}' in text for text in shown))",
        answer=str(sum(world.truth["needle", size, at] for at in range(number))),
        look=f"(await TOOL(repo_path='{path}', revision='{commits[0][:10]}'))[:300]",
    )


def _zones(_world: World, size: str, number: int) -> Task | None:
    if size == "large":
        return None
    zones, base = ZONES[:number], {"source_timezone": "UTC", "time": "12:00"}
    return Task(
        family="zones",
        size=size,
        text=f"How many of these have passed midnight, or are in the evening from 18:00 on, when it is 12:00 UTC: "
        f"{', '.join(zones)}?",
        search="convert a time between timezones",
        steps=[Step(tool="time/convert_time", arguments=base | {"target_timezone": zone}) for zone in zones],
        program=f"zones = '{' '.join(zones)}'.split()\n"
        "found = [await TOOL(source_timezone='UTC', time='12:00', target_timezone=z) for z in zones]\n"
        "print(sum(int(f['target']['datetime'][11:13]) >= 18 for f in found))",
        answer=str(sum(zone == "Asia/Tokyo" for zone in zones)),
    )


def _graph(world: World, size: str, number: int) -> Task:
    names = [f"customer-{size}-{at}" for at in range(number)]
    return Task(
        family="graph",
        size=size,
        text=f"How many invoices of customer-{size}-0 to customer-{size}-{number - 1} are paid, in all?",
        search="open nodes of the knowledge graph by name",
        steps=[Step(tool="memory/open_nodes", arguments={"names": [name]}) for name in names],
        program=f"total = 0\nfor i in range({number}):\n"
        f"    found = await TOOL(names=[f'customer-{size}-{{i}}'])\n"
        "    total += sum(' paid:' in note for e in found['entities'] for note in e['observations'])\n"
        "print(total)",
        answer=str(sum(world.truth["paid", size, at] for at in range(number))),
    )


def _chain(_world: World, size: str, number: int) -> Task | None:
    if size == "large":
        return None
    values = [7 * at + 3 for at in range(number)]
    sums = [sum(values[:at]) for at in range(number)]
    return Task(
        family="chain",
        size=size,
        text=f"Add these with the calculator, one after the other, from 0 on: {values}.",
        search="add two numbers",
        steps=[
            Step(tool="everything/get-sum", arguments={"a": start, "b": value})
            for start, value in zip(sums, values, strict=True)
        ],
        program=f"import re\ntotal = 0\nfor value in {values}:\n"
        "    said = await TOOL(a=total, b=value)\n"
        "    total = int(re.findall(r'-?\\d+', said)[-1])\n"
        "print(total)",
        answer=str(sum(values)),
        independent=False,
        look="await TOOL(a=1, b=2)",
    )


MAKERS: Sequence[Callable[[World, str, int], Task | None]] = (
    *(_files, _info, _directories, _logs, _shows, _zones, _graph, _chain),
)
assert max(NUMBERS) <= COUNT  # noqa: S101
