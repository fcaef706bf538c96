"""Whether a task was done: looks at files, git, rows, what is remembered, and what was answered; never at calls."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from pegboard_bench.whole_tasks.workspace import Workspace, git

Check = Callable[..., bool]


def undone(checks: Sequence[Sequence[str]], space: Workspace, answer: str) -> list[str]:
    """The checks that do not hold, as text. Raises KeyError for a kind that there is not."""
    return [" ".join(check) for check in checks if not KINDS[check[0]](space, answer, *check[1:])]


def _answer(space: Workspace, answer: str, said: str) -> bool:
    return said.casefold() in answer.casefold()


def _says(space: Workspace, answer: str, *texts: str) -> bool:
    """Whether one of the texts is there, wherever its lines break."""
    flat = " ".join(answer.split()).casefold()
    return any(" ".join(text.split()).casefold() in flat for text in texts)


def _about(space: Workspace, answer: str, number: str, tolerance: str) -> bool:
    """Whether a number of the answer is this one, but for so large a part of it."""
    wanted, *_ = _numbers(number)
    return any(abs(each - wanted) <= float(tolerance) * wanted for each in _numbers(answer))


def _numbers(text: str) -> list[float]:
    """Those of a text, with thousands apart or not."""
    return [float(each.replace(",", "")) for each in re.findall(r"\d+(?:,\d{3})*(?:\.\d+)?", text)]


def _file(space: Workspace, answer: str, name: str, text: str) -> bool:
    path = space.root / name
    return path.is_file() and text in path.read_text("utf-8", "replace")


def _absent(space: Workspace, answer: str, name: str) -> bool:
    return not (space.root / name).exists()


def _folder(space: Workspace, answer: str, name: str) -> bool:
    return (space.root / name).is_dir()


def _git(*arguments: str) -> Callable[[Workspace], list[str]]:
    return lambda space: git(space.root / "repo", *arguments).splitlines()


def _lists(*arguments: str) -> Check:
    """Whether a command of git prints a line."""
    return lambda space, answer, line: line in _git(*arguments)(space)


def _unstaged(space: Workspace, answer: str, name: str) -> bool:
    return name not in _git("diff", "--cached", "--name-only")(space)


def _rows(space: Workspace, answer: str, query: str, value: str) -> bool:
    """Whether the first row's first value is this one."""
    try:
        with closing(sqlite3.connect(space.database)) as database:
            row = database.execute(query).fetchone()
    except sqlite3.Error:
        return False
    return row is not None and str(row[0]) == value


def _remembered(space: Workspace, answer: str, name: str, said: str) -> bool:
    entities = (line for line in _memory(space) if line["type"] == "entity" and line["name"] == name)
    return any(said in entity["observations"] for entity in entities)


def _forgotten(space: Workspace, answer: str, name: str) -> bool:
    return all(line.get("name") != name for line in _memory(space))


def _related(space: Workspace, answer: str, one: str, how: str, other: str) -> bool:
    wanted = {"from": one, "relationType": how, "to": other}
    return any(wanted.items() <= line.items() for line in _memory(space))


def _not(check: Check) -> Check:
    return lambda *about: not check(*about)


def _memory(space: Workspace) -> Iterator[Mapping[str, Any]]:
    text = space.memory.read_text("utf-8") if space.memory.exists() else ""
    return (json.loads(line) for line in text.splitlines() if line.strip())


KINDS: Mapping[str, Check] = {
    "answer": _answer,
    "says": _says,
    "about": _about,
    "file": _file,
    "absent": _absent,
    "folder": _folder,
    "branch": _lists("branch", "--format=%(refname:short)"),
    "head": _lists("branch", "--show-current"),
    "subject": _lists("log", "-1", "--format=%s"),
    "committed": _lists("show", "--name-only", "--format="),
    "staged": _lists("diff", "--cached", "--name-only"),
    "unstaged": _unstaged,
    "rows": _rows,
    "remembered": _remembered,
    "not_remembered": _not(_remembered),
    "forgotten": _forgotten,
    "related": _related,
    "not_related": _not(_related),
}
