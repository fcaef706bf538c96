"""Environments of their own for servers, clients and peers: what one needs, another is not given."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

QUIET = ("--silent", "--no-fund", "--no-audit")
BRIEF = ("--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=60000")
"""Where npm's registry cannot be reached, that is soon known."""
EXACT = re.compile(r"\d+\.\d+\.\d+.*")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def has(*programs: str) -> bool:
    return all(shutil.which(program) is not None for program in programs)


def from_pypi(environment: Path, requirement: str, program: str) -> Path | None:
    """The path of a program in an environment with the requirement installed; None where that failed.

    A second call installs nothing.
    """
    found = programs(environment) / program
    if found.exists():
        return found
    say(f"installing {requirement} …")
    venv.create(environment, with_pip=True)
    python = str(found.with_name("python"))
    return found if succeeds([python, "-m", "pip", "install", "--quiet", requirement]) else None


def with_packages(
    environment: Path, *groups: Sequence[str], beside: Path | None = None, uv: Path | None = None
) -> bool:
    """Whether an environment has the packages now; a second call with the same ones installs nothing.

    Each group is the arguments of one ``pip install``, which ``uv`` does in seconds where it is given.
    What the environment ``beside`` has can be imported here too.
    """
    wanted = "".join(" ".join(group) + "\n" for group in groups)
    installed = environment / "installed.txt"
    known = installed.exists() and installed.read_text("utf-8") == wanted
    if not known:
        say(f"installing {wanted.strip()} …")
        venv.create(environment, with_pip=uv is None, clear=True)
    if beside is not None:  # every time: the folder may have been moved
        (site_packages(environment) / "beside.pth").write_text(f"{site_packages(beside.absolute())}\n", "utf-8")
    if known:
        return True
    python = str(programs(environment) / "python")
    pip = [python, "-m", "pip", "install"] if uv is None else [str(uv), "pip", "install", "--python", python]
    if not all(succeeds([*pip, "--quiet", *group]) for group in groups):
        return False
    installed.write_text(wanted, "utf-8")
    return True


def programs(environment: Path) -> Path:
    return environment / ("Scripts" if sys.platform == "win32" else "bin")


def site_packages(environment: Path) -> Path:
    """Where an environment of this Python has its packages."""
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(environment), "platbase": str(environment)}))


def from_npm(folder: Path, packages: Sequence[str]) -> bool:
    """Whether the packages, each with `@VERSION` or without, are in the folder now; a second call installs the rest."""
    missing = [package for package in packages if not _has(folder, package)]
    if not missing:
        return True
    if not has("npm", "node"):
        return False
    say(f"installing {', '.join(missing)} …")
    return succeeds(["npm", "install", *QUIET, *BRIEF, "--prefix", str(folder), *missing])


def _has(folder: Path, package: str) -> bool:
    """Whether a package is there, and in its version where that is said to the last digit."""
    name, _, version = package.rpartition("@") if "@" in package[1:] else (package, "", "")
    try:
        document = json.loads((folder / "node_modules" / name / "package.json").read_text("utf-8"))
    except FileNotFoundError:
        return False
    return document["version"] == version if EXACT.fullmatch(version) else True


def binary(folder: Path, name: str) -> Path:
    """A program of a package from npm."""
    return folder / "node_modules" / ".bin" / name


def succeeds(command: Sequence[str]) -> bool:
    """Run it, and say on stderr why it failed where it did."""
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    if finished.returncode:
        say(f"{' '.join(command)} failed:\n{finished.stdout}{finished.stderr}")
    return finished.returncode == 0
