"""Compares the bounds of all requirements with the newest versions that pip finds, and raises upper bounds.

python scripts/update_dependencies.py            # a table: bound, newest version, whether the bound admits it
python scripts/update_dependencies.py --check    # exit code 1 if the bound of any requirement excludes the newest
python scripts/update_dependencies.py --write    # raise those upper bounds; then install and run the tests
python scripts/update_dependencies.py mcp numpy  # only these packages

Reads every pyproject.toml of the repository and scripts/*requirements*.txt. Only pip talks to the index, with its own
configuration (`pip config list`); it offers the versions that this Python can install. Lower bounds stay as they are.
Exit code 2: pip could not be asked, or a file could not be read.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import Specifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PIP = (sys.executable, "-m", "pip")
OWN = frozenset({"pegboard", "pegboard-bench"})
AT_ONCE = 4
"""Packages that pip is asked about at once."""
SECONDS = 120
"""How long pip may take for one package."""
UPPER = ("<", "<=", "==", "~=")
"""Operators that can exclude a newer version. `!=` and `===` name single versions on purpose."""


class Failed(Exception):  # noqa: N818 - a finding, and no error of this program
    """What was wrong, and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One requirement as a file has it. ``text`` is its exact spelling there."""

    file: Path
    text: str
    name: str
    specifier: SpecifierSet

    @property
    def shown(self) -> str:
        return ",".join(sorted(map(str, self.specifier), key=lambda each: not each.startswith(">"))) or "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    bound: Bound
    newest: Version

    @property
    def is_inside(self) -> bool:
        return self.bound.specifier.contains(self.newest, prereleases=True)

    @property
    def raised(self) -> str:
        """The requirement's text with upper bounds that admit the newest version."""
        text = self.bound.text
        for each in self.bound.specifier:
            if each.operator in UPPER and not each.contains(self.newest, prereleases=True):
                old = re.compile(rf"{re.escape(each.operator)}\s*{re.escape(each.version)}(?![\w.*])")
                text = old.sub(_raised(each, self.newest), text, count=1)
        return text


def _raised(bound: Specifier, newest: Version) -> str:
    """The bound moved to the newest version, with as many numbers as it had.

    >>> _raised(Specifier("<3"), Version("3.1.4")), _raised(Specifier("<0.4"), Version("0.4.2"))
    ('<4', '<0.5')
    >>> _raised(Specifier("==1.2.*"), Version("2.0.1")), _raised(Specifier("==1.2.0"), Version("2.0.1"))
    ('==2.0.*', '==2.0.1')
    """
    if bound.operator in ("<=", "==") and not bound.version.endswith(".*"):
        return f"{bound.operator}{newest}"
    length = len(Version(bound.version.removesuffix(".*")).release)
    numbers = [*newest.release, *[0] * length][:length]
    if bound.operator == "<":
        numbers[-1] += 1
    wildcard = ".*" if bound.version.endswith(".*") else ""
    return f"{bound.operator}{'.'.join(map(str, numbers))}{wildcard}"


def files(root: Path) -> list[Path]:
    return [
        *(path for path in (root / "pyproject.toml", root / "benchmarks" / "pyproject.toml") if path.is_file()),
        *sorted((root / "scripts").glob("*requirements*.txt")),
    ]


def bounds(path: Path) -> list[Bound]:
    """The requirements of one file that are not Pegboard's own. Raises Failed naming the file."""
    try:
        text = path.read_text("utf-8")
        texts = _of_toml(tomllib.loads(text)) if path.suffix == ".toml" else _of_lines(text)
        found = [(each, Requirement(each)) for each in dict.fromkeys(texts)]
    except (OSError, ValueError, InvalidRequirement) as error:
        raise Failed(f"{path} cannot be read: {error}. Correct the file.") from error
    return [
        Bound(file=path, text=text, name=canonicalize_name(each.name), specifier=each.specifier)
        for text, each in found
        if canonicalize_name(each.name) not in OWN and each.url is None
    ]


def _of_toml(document: dict[str, Any]) -> Iterator[str]:
    project = document.get("project", {})
    yield from document.get("build-system", {}).get("requires", [])
    yield from project.get("dependencies", [])
    for group in (*project.get("optional-dependencies", {}).values(), *document.get("dependency-groups", {}).values()):
        yield from (each for each in group if isinstance(each, str))  # a table includes another group


def _of_lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        requirement = re.split(r"(?:^|\s)#", line)[0].strip()
        if requirement and not requirement.startswith("-"):
            yield requirement


def newest(name: str, pip: Sequence[str] = PIP) -> Version:
    """The newest release of a package that pip offers to this Python. Raises Failed with what pip said."""
    command = [*pip, "--disable-pip-version-check", "index", "versions", "--json", name]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(f"pip did not answer about {name!r}: {error}.") from error
    if asked.returncode != 0:
        said = asked.stderr.strip().splitlines()
        raise Failed(f"pip found no version of {name!r}: {said[-1] if said else 'it gave no reason'}")
    try:
        return Version(json.loads(asked.stdout)["latest"])
    except (ValueError, LookupError, TypeError) as error:
        raise Failed(f"pip gave no version of {name!r}. Update pip: `pip install --upgrade pip`.") from error


def rows(wanted: Iterable[Bound], ask: Callable[[str], Version]) -> list[Row]:
    """Each requirement with the newest version, every package asked for once. Raises Failed naming all that failed."""
    wanted = list(wanted)
    names = sorted({each.name for each in wanted})
    versions: dict[str, Version] = {}
    failures: list[str] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, asked in [(name, pool.submit(ask, name)) for name in names]:
            try:
                versions[name] = asked.result()
            except Failed as error:
                failures.append(str(error))
    if failures:
        raise Failed(
            "\n".join(failures)
            + "\nIs the index that pip is configured for within reach? `pip config list` shows it; nothing was changed."
        )
    return [Row(bound=each, newest=versions[each.name]) for each in wanted]


def table(made: Sequence[Row], root: Path) -> str:
    lines = [("name", "file", "bound", "newest", "inside bound")]
    lines += [
        (
            row.bound.name,
            row.bound.file.relative_to(root).as_posix(),
            row.bound.shown,
            str(row.newest),
            "yes" if row.is_inside else f"no: {row.raised}",
        )
        for row in made
    ]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def write(made: Iterable[Row]) -> list[Row]:
    """Raise the upper bounds in the files, and leave every other character alone; the rows that were raised."""
    raised = [row for row in made if not row.is_inside and row.raised != row.bound.text]
    for row in raised:
        text = row.bound.file.read_text("utf-8")
        whole = re.compile(rf"(?<![\w.-]){re.escape(row.bound.text)}(?![\w.])")
        row.bound.file.write_text(whole.sub(lambda _, text=row.raised: text, text), "utf-8")
    return raised


def main(words: Sequence[str] | None = None, *, root: Path = ROOT, pip: Sequence[str] = PIP) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only these packages")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bound excludes the newest version")
    parser.add_argument("--write", action="store_true", help="raise the upper bounds that exclude the newest version")
    options = parser.parse_args(words)
    chosen = {canonicalize_name(name) for name in options.names}
    try:
        found = [each for path in files(root) for each in bounds(path) if not chosen or each.name in chosen]
        if missing := chosen - {each.name for each in found}:
            raise Failed(f"Nothing requires {sorted(missing)[0]!r}. Name packages as the requirements do.")
        made = rows(found, lambda name: newest(name, pip))
    except Failed as error:
        print(error, file=sys.stderr)
        return 2
    print(table(made, root))
    outside = [row for row in made if not row.is_inside]
    if options.write:
        for row in write(outside):
            print(f"{row.bound.file.relative_to(root).as_posix()}: {row.bound.text} -> {row.raised}")
        return 0
    return 1 if options.check and outside else 0


if __name__ == "__main__":
    sys.exit(main())
