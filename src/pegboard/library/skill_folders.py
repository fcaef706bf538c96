"""Skills in folders: a `SKILL.md` each, with YAML front matter (Agent Skills specification)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import yaml

from pegboard.board_items import BoardItem
from pegboard.errors import CatalogError

MANIFEST = "SKILL.md"
FENCE = "---"
FORM = "A SKILL.md begins with a line of ---, `name: …` and `description: …`, and a second line of ---."


def skills_in(folder: Path) -> list[BoardItem]:
    """The skills in and below a folder, by path. Raises CatalogError if there is none, or one cannot be read."""
    if not folder.is_dir():
        raise CatalogError(f"There is no folder {str(folder)!r}.", remedy="Give a folder of skills.")
    if not (found := manifests(folder)):
        raise CatalogError(
            f"No folder in or below {str(folder)!r} has a {MANIFEST}.", remedy="Give the folder that holds the skills."
        )
    return [read_skill(path) for path in found]


def manifests(folder: Path) -> list[Path]:
    """The files of the skills in and below a folder, by path, each once; not those of folders that cannot be read, or
    go away meanwhile. A link to a folder may be a skill, but nothing below it is: it may lead anywhere."""
    linked: list[Path] = []
    own: list[Path] = []
    for each, folders, files in os.walk(folder):
        links = (path for path in (Path(each, name) for name in folders) if _holds(path.is_symlink))
        linked += [path / MANIFEST for path in links]
        own += [Path(each, MANIFEST)] if MANIFEST in files else []
    last_first = sorted(linked, reverse=True)  # of several links the first is kept, unless the skill itself is there
    return sorted({path.resolve(): path for path in (*last_first, *own) if _holds(path.exists)}.values())


def _holds(test: Callable[[], bool]) -> bool:
    """False where the folder may not be searched: paths of many versions of Python raise PermissionError."""
    try:
        return test()
    except OSError:
        return False


def read_skill(path: Path) -> BoardItem:
    """The skill of a manifest. Raises CatalogError."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CatalogError(f"The skill {str(path)!r} cannot be read: {error}.", remedy="Save it as UTF-8.") from error
    head, body = _parts(text, path)
    said = _front_matter(head)
    description = said.get("description", "").strip()
    if not description:
        raise CatalogError(f"The skill {str(path)!r} has no description.", remedy=FORM)
    name = said.get("name", "").strip() or path.parent.name
    return BoardItem(kind="skill", name=name, description=description, address=str(path), text=body.strip())


def _parts(text: str, path: Path) -> tuple[str, str]:
    lines = text.splitlines()
    marks = [at for at, line in enumerate(lines) if line.rstrip() == FENCE][:2]
    if len(marks) < 2 or marks[0] != 0:
        raise CatalogError(f"The skill {str(path)!r} has no front matter.", remedy=FORM)
    return "\n".join(lines[1 : marks[1]]), "\n".join(lines[marks[1] + 1 :])


def _front_matter(head: str) -> dict[str, str]:
    """Its texts, as they are written: `on` and `1.10` are names, too. Many skills have a colon in an unquoted
    description, which YAML forbids: those are read by line."""
    try:
        said = yaml.load(head, Loader=yaml.BaseLoader)  # noqa: S506  # it makes nothing but texts
    except yaml.YAMLError:
        return dict(_by_line(head))
    texts = said.items() if isinstance(said, Mapping) else ()
    return {str(key): str(each) for key, each in texts if each is not None}


def _by_line(head: str) -> Iterator[tuple[str, str]]:
    for line in head.splitlines():
        key, colon, value = line.partition(":")
        if colon and key.isidentifier():
            yield key, value.strip().strip("\"'")
