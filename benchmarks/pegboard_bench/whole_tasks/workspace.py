"""The folder that tasks work on: files, a repository, a database and a memory, made anew for each play."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FILES: Mapping[str, str] = {
    "notes/shopping.txt": "milk\nbread\neggs\n",
    "notes/meeting.txt": "Meeting on 14 May in room 204. Chair: Ines Okafor.\n",
    "notes/todo.md": "- [ ] call the plumber\n- [x] pay the rent\n",
    "reports/2024.csv": "month,total\njan,120\nfeb,95\nmar,143\n",
    "reports/summary.txt": "Total revenue: 358\nBest month: mar\n",
    "config/app.ini": "[server]\nport = 8080\nhost = localhost\n",
    "drafts/letter.txt": "Dear Mr Lindqvist,\nthe goods arrived.\n",
    "drafts/poem.txt": "One leaf, and it is autumn.\n",
    "logs/monday.log": "06:00 ok\n07:10 ERROR disk full on srv-17\n08:00 ok\n",
}
COMMITS: Sequence[tuple[str, str, str, Mapping[str, str]]] = (
    ("main", "Ana Reyes", "First version", {"main.py": "print('hello')\n", "CHANGELOG.md": "- First version\n"}),
    ("main", "Ana Reyes", "Describe it", {"README.md": "# Greeter\n"}),
    ("main", "Tom Hale", "Greet by name", {"main.py": "name = input()\nprint('hello', name)\n"}),
    ("feature/login", "Ana Reyes", "Ask for a password", {"login.py": "password = input('password: ')\n"}),
)
"""Branch, author, subject and what the commit writes."""
STAGED = ("README.md", "# Greeter\nA greeting program\n")
CHANGED = ("main.py", "name = input()\nprint('good evening', name)\n")
UNTRACKED = ("notes.txt", "Translate the greeting.\n")
TABLES = """
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, price REAL, stock INTEGER);
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, product_id INTEGER, quantity INTEGER);
INSERT INTO products VALUES (1, 'desk lamp', 34.5, 3), (2, 'notebook', 3.8, 240), (3, 'chair', 96, 17);
INSERT INTO customers VALUES (1, 'Ana Dias', 'Lisbon'), (2, 'Per Holm', 'Oslo'), (3, 'Rui Costa', 'Lisbon');
INSERT INTO orders VALUES (1, 1, 2, 30), (2, 2, 1, 1), (3, 3, 2, 5);
"""
REMEMBERED = (
    {"type": "entity", "name": "Mira", "entityType": "person", "observations": ["works in Lisbon"]},
    {
        "type": "entity",
        "name": "Falcon",
        "entityType": "project",
        "observations": ["deadline is 3 June", "sponsored by the city"],
    },
    {"type": "entity", "name": "Oskar", "entityType": "person", "observations": ["buys for the shop"]},
    {"type": "relation", "from": "Mira", "to": "Falcon", "relationType": "leads"},
)
PAGES: Mapping[str, str] = {
    "prices": "<html><body><h1>Metals</h1><p>Copper: 9312 per tonne. Tin: 31050 per tonne.</p></body></html>",
    "library": "<html><body><p>Open from 10:00 to 18:00, closed on Sundays.</p></body></html>",
    "chair": "<html><body><p>Our chair was 96, and is now 89.</p></body></html>",
}
DATE = "2026-03-02T12:00:00+00:00"
"""Of all commits: hashes are the same in every run."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """``root`` is what servers are given and stays; its content is made anew by `reset`."""

    root: Path
    model: Path

    @classmethod
    def made(cls, folder: Path) -> Workspace:
        """A workspace in a folder, and beside it what it is reset to."""
        space = cls(root=folder / "work", model=folder / "model")
        space.root.mkdir(parents=True)
        _fill(space.model)
        space.reset()
        return space

    @property
    def database(self) -> Path:
        return self.root / "shop.db"

    @property
    def memory(self) -> Path:
        return self.root / "memory.jsonl"

    def reset(self) -> None:
        """As no task has touched it."""
        for path in self.root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.model, self.root, dirs_exist_ok=True)


def git(repository: Path, *arguments: str, author: str = "Ana Reyes") -> str:
    """What git says, without the end of the line; empty where it fails."""
    who = {
        f"GIT_{role}_{field}": value
        for role in ("AUTHOR", "COMMITTER")
        for field, value in (("NAME", author), ("EMAIL", "somebody@pegboard.invalid"), ("DATE", DATE))
    }
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments],  # noqa: S607
        env=os.environ | who,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.rstrip("\n") if done.returncode == 0 else ""


def _fill(folder: Path) -> None:
    for name, text in FILES.items():
        _write(folder / "files" / name, text)
    with sqlite3.connect(folder / "shop.db") as database:
        database.executescript(TABLES)
    database.close()
    _write(folder / "memory.jsonl", "\n".join(json.dumps(line) for line in REMEMBERED))
    _repository(folder / "repo")


def _repository(folder: Path) -> None:
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main", "--template=")
    for key, value in (("user.name", "Ana Reyes"), ("user.email", "ana@pegboard.invalid"), ("gc.auto", "0")):
        git(folder, "config", key, value)
    for branch, author, subject, written in COMMITS:
        if git(folder, "branch", "--show-current") != branch:
            git(folder, "checkout", "--quiet", "-b", branch)
        for name, text in written.items():
            _write(folder / name, text)
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", subject, author=author)
    git(folder, "checkout", "--quiet", "main")
    _write(folder / STAGED[0], STAGED[1])
    git(folder, "add", STAGED[0])
    for name, text in (CHANGED, UNTRACKED):
        _write(folder / name, text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
