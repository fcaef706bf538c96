"""The data that the tasks are about: files, repositories and a graph, made by rule, and the servers over them."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pegboard_bench.programs import listed_server

SIZES = ("small", "large")
COUNT = 8
"""Files, folders, repositories, commits and nodes of each size."""
LINES = {"small": 4, "large": 220}
ENTRIES = {"small": 4, "large": 120}
COMMITS = {"small": 3, "large": 30}
DIFF = {"small": 4, "large": 150}
NOTES = {"small": 2, "large": 60}
WORDS = [
    "order",
    "invoice",
    "parcel",
    "branch",
    "review",
    "queue",
    "worker",
    "cache",
    "index",
    "budget",
    "harbour",
    "ticket",
    "stock",
    "route",
    "pump",
    "valve",
]
AUTHORS = ("Ann", "Bob", "Eve")
REAL_SERVERS = ("git", "time", "filesystem", "memory", "everything")
NEEDLE = "calibration drift"
RECORDED = Path(__file__).parents[1] / "fleet" / "fleet_tools.jsonl.gz"


@dataclass(slots=True)
class World:
    """Where everything is, and what is true of it: counts by kind, size and number."""

    folder: Path
    truth: dict[tuple[str, str, int], Any] = field(default_factory=dict)
    commits: dict[str, list[str]] = field(default_factory=dict)

    def path(self, *parts: str) -> str:
        return str(self.folder.joinpath(*parts))


def make(folder: Path, seed: int) -> World:
    world, chance = World(folder), random.Random(seed)  # noqa: S311 - data for tasks
    for size in SIZES:
        for number in range(COUNT):
            _file(world, chance, size, number)
            _directory(world, size, number)
            _repository(world, chance, size, number)
        _changes(world, chance, size)
    _graph(world, chance)
    return world


def servers(world: World, demo: Path, padding: int) -> dict[str, dict[str, Any]]:
    """The entries of the configuration: real servers over the world, and so many recorded tools."""
    config = json.loads((demo / "mcp.json").read_text())["mcpServers"]
    real = {name: dict(config[name]) for name in REAL_SERVERS}
    real["filesystem"] |= {"args": [str(world.folder)], "cwd": str(world.folder)}
    real["memory"] |= {"env": {"MEMORY_FILE_PATH": world.path("memory.jsonl")}}
    left_out = ",".join(real)
    more = [listed_server.__file__, str(RECORDED), left_out, str(padding)]
    return real | {"office": {"command": sys.executable, "args": more}}


def _file(world: World, chance: random.Random, size: str, number: int) -> None:
    levels = [chance.choice(("INFO", "INFO", "INFO", "WARN", "ERROR")) for _ in range(LINES[size])]
    lines = [f"2026-03-{at % 28 + 1:02d} {level} {_words(chance, 8)}" for at, level in enumerate(levels)]
    path = world.folder / "logs" / size / f"log{number}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines))
    world.truth["errors", size, number] = levels.count("ERROR")
    world.truth["bytes", size, number] = path.stat().st_size


def _directory(world: World, size: str, number: int) -> None:
    folder = world.folder / "stock" / size / f"shelf{number}"
    folder.mkdir(parents=True, exist_ok=True)
    for at in range(ENTRIES[size] + number):
        (folder / f"part-{number}-{at}.csv").write_text("id\n")
    world.truth["entries", size, number] = ENTRIES[size] + number


def _repository(world: World, chance: random.Random, size: str, number: int) -> None:
    folder = world.folder / "repositories" / size / f"service{number}"
    folder.mkdir(parents=True, exist_ok=True)
    _git(folder, "init", "--quiet")
    authors = [chance.choice(AUTHORS) for _ in range(COMMITS[size])]
    for at, author in enumerate(authors):
        _git(folder, "commit", "--quiet", "--allow-empty", "-m", f"{_words(chance, 6)} ({at})", author=author)
    world.truth["commits", size, number] = authors.count("Ann")


def _changes(world: World, chance: random.Random, size: str) -> None:
    """A repository whose last commits are shown; every second one of them has the needle in it."""
    folder = world.folder / "repositories" / f"changes-{size}"
    folder.mkdir(parents=True, exist_ok=True)
    _git(folder, "init", "--quiet")
    world.commits[size] = []
    for number in range(COUNT):
        lines = [_words(chance, 9) for _ in range(DIFF[size])]
        if number % 2:
            lines[chance.randrange(len(lines))] = NEEDLE
        (folder / f"module{number}.txt").write_text("\n".join(lines) + "\n")
        _git(folder, "add", ".")
        _git(folder, "commit", "--quiet", "-m", f"Change module {number}", author="Ann")
        world.commits[size].append(_git(folder, "rev-parse", "HEAD").strip())
        world.truth["needle", size, number] = number % 2


def _graph(world: World, chance: random.Random) -> None:
    entities = []
    for size in SIZES:
        for number in range(COUNT):
            paid = [chance.random() < 0.5 for _ in range(NOTES[size])]
            notes = [f"invoice {at} {'paid' if each else 'open'}: {_words(chance, 5)}" for at, each in enumerate(paid)]
            entities.append({"name": f"customer-{size}-{number}", "entityType": "customer", "observations": notes})
            world.truth["paid", size, number] = sum(paid)
    lines = [json.dumps({"type": "entity"} | entity) for entity in entities]
    (world.folder / "memory.jsonl").write_text("\n".join(lines))


def _words(chance: random.Random, count: int) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(count))


def _git(folder: Path, *arguments: str, author: str = "Demo") -> str:
    who: Mapping[str, str] = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", author), ("EMAIL", f"{author.lower()}@pegboard.invalid"))
    }
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, env=dict(who), capture_output=True, text=True, check=True).stdout
