"""The public skills: folders with a `SKILL.md`, from git repositories at a commit, written where they are measured.

They are read from their sources on the machine that uses them, and are not passed on. Nothing was fitted on them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pegboard_bench.sets.recipe import Repository
from pegboard_bench.sets.repositories import Repositories

AGENTS = Repository(
    name="wshobson/agents",
    commit="367cb6a4a182cf7e9b0a17c9429f7411ddd9cf35",
    date="2026-08-18",
    licence="MIT",
)
ANTHROPIC = Repository(
    name="anthropics/skills",
    commit="9d2f1ae187231d8199c64b5b762e1bdf2244733d",
    date="2026-07-01",
    licence="Apache-2.0",
)
FOLDERS: Mapping[Repository, str] = {AGENTS: "plugins", ANTHROPIC: "skills"}
NOT_OPEN = ("doc-coauthoring", "docx", "pdf", "pptx", "xlsx")
"""Skills of Anthropic's repository that are not under its open licence, or have no licence beside them."""
MANIFEST = "SKILL.md"
REQUESTS = Path(__file__).with_name("requests.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request, and the folders of the skills of which each would do."""

    text: str
    skills: tuple[str, ...]


def requests() -> list[Request]:
    rows = tomllib.loads(REQUESTS.read_text("utf-8"))["requests"]
    return [Request(text=row["text"], skills=tuple(row["skills"])) for row in rows]


def write_skills(folder: Path, repositories: Repositories) -> list[str]:
    """Write every skill as ``folder/NAME/SKILL.md``, and return the names, sorted. Raises ConfigError if a repository
    cannot be had."""
    names: list[str] = []
    for repository, place in FOLDERS.items():
        files = repositories.open(repository)
        paths = [path for path in files.paths(place) if _is_skill(path)]
        for path, content in zip(paths, files.read_all(paths), strict=True):
            name = PurePosixPath(path).parent.name
            (folder / name).mkdir()
            (folder / name / MANIFEST).write_bytes(content)
            names.append(name)
    return sorted(names)


def without_bodies(folder: Path, to: Path) -> None:
    """The same skills with their front matter alone: what a client shows of them before it loads one."""
    for manifest in folder.rglob(MANIFEST):
        lines = manifest.read_text("utf-8-sig").splitlines()
        end = lines.index("---", 1)
        (to / manifest.parent.name).mkdir()
        (to / manifest.parent.name / MANIFEST).write_text("\n".join(lines[: end + 1]) + "\n", "utf-8")


def unknown(asked: Sequence[Request], names: Sequence[str]) -> set[str]:
    """Labels that no skill has."""
    return {skill for request in asked for skill in request.skills} - set(names)


def _is_skill(path: str) -> bool:
    found = PurePosixPath(path)
    return found.name == MANIFEST and found.parent.name not in NOT_OPEN
