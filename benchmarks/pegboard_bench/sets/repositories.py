"""Public git repositories at a commit: from a mirror, or fetched once into a cache, that commit alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from pegboard.errors import ConfigError
from pegboard_bench.sets.recipe import Files, Repository

FETCH_SECONDS = 1800
"""Longest that git may take for one repository; the largest has some hundred megabytes."""


class Repositories:
    """Gives the files of repositories. ``mirror`` has local clones, bare or not, as OWNER/NAME or
    OWNER/NAME.git; ``tell`` is called with a line before something is fetched."""

    def __init__(
        self, cache: Path, mirror: Path | None = None, *, tell: Callable[[str], None] = lambda line: None
    ) -> None:
        _program()
        self._cache = cache
        self._mirror = mirror
        self._tell = tell

    def open(self, repository: Repository) -> Snapshot:
        """Raises ConfigError if the repository or the commit cannot be had."""
        if self._mirror is not None:
            return Snapshot(_mirrored(self._mirror, repository), repository)
        folder = self._cache / f"{repository.name}.git"
        if not _has(folder, repository.commit):
            self._tell(f"fetching {repository.url} at {repository.commit[:12]}")
            _fetch(folder, repository)
        return Snapshot(folder, repository)


class Snapshot(Files):
    """The files of a repository at its commit."""

    def __init__(self, folder: Path, repository: Repository) -> None:
        super().__init__(repository)
        self._folder = folder
        self._repository = repository

    def paths(self, folder: str) -> list[str]:
        listed = _git(self._folder, "ls-tree", "-r", "-z", "--name-only", self._repository.commit, "--", folder)
        return sorted(listed.decode().split("\0")[:-1])

    def contents(self, paths: Sequence[str]) -> list[bytes]:
        """By one process of git."""
        wanted = "".join(f"{self._repository.commit}:{path}\n" for path in paths)
        output = _git(self._folder, "cat-file", "--batch", stdin=wanted.encode())
        found = []
        start = 0
        for path in paths:
            line, _, _ = output[start : start + 4096].partition(b"\n")
            if line.split()[1:2] != [b"blob"]:
                raise ConfigError(
                    f"{self._repository.name} has no file {path!r} at commit {self._repository.commit}.",
                    remedy="The recipe and the commit do not fit: please report it.",
                )
            start += len(line) + 1
            size = int(line.rsplit(b" ", 1)[1])
            found.append(output[start : start + size])
            start += size + 1
        return found


def _mirrored(mirror: Path, repository: Repository) -> Path:
    """The clone in a mirror. Raises ConfigError if it is not there or does not have the commit."""
    places = (mirror / repository.name, mirror / f"{repository.name}.git")
    folder = next((place for place in places if place.is_dir()), None)
    if folder is None:
        raise ConfigError(
            f"{repository.name} is not in the mirror {str(mirror)!r}.",
            remedy=f"Clone it to {mirror / repository.name}, or leave out --mirror.",
        )
    if not _has(folder, repository.commit):
        raise ConfigError(
            f"The clone {str(folder)!r} does not have commit {repository.commit}.",
            remedy=f"Run `git -C {folder} fetch origin {repository.commit}`.",
        )
    return folder


def _fetch(folder: Path, repository: Repository) -> None:
    """Exactly one commit. A fetch that was broken off is done again; what arrived whole is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    _git(folder, "init", "--quiet", "--bare", ".")
    words = ("fetch", "--quiet", "--depth", "1", "--no-tags", f"{repository.url}.git", repository.commit)
    try:
        _git(folder, *words, seconds=FETCH_SECONDS)
    except ConfigError as error:
        raise ConfigError(
            f"{repository.url} at commit {repository.commit} cannot be fetched: {error.message}",
            remedy="Check the network, then run the same command again: what is done is kept. If the repository is "
            "gone, clone a copy of it and name its folder with --mirror.",
        ) from error


def _has(folder: Path, commit: str) -> bool:
    """Whether a folder is a clone that has this commit with its files."""
    if not folder.is_dir():
        return False
    try:
        _git(folder, "ls-tree", "--name-only", commit)
    except ConfigError:
        return False
    return True


def _program() -> str:
    found = shutil.which("git")
    if found is None:
        raise ConfigError("git is not installed.", remedy="Install git 2.20 or newer.")
    return found


def _git(folder: Path, *words: str, stdin: bytes = b"", seconds: float = 120) -> bytes:
    """Runs git in exactly this folder, without the user's prompts. Raises ConfigError with what git said."""
    place = folder / ".git" if (folder / ".git").exists() else folder
    settings = ("-c", "safe.directory=*", "-c", "core.quotePath=false")
    environment = {**os.environ, "GIT_DIR": str(place), "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [_program(), *settings, *words],
            cwd=folder,
            input=stdin,
            capture_output=True,
            env=environment,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"git {words[0]} took longer than {seconds:.0f} s.") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"git {words[0]} failed"]
        raise ConfigError(said[-1])
    return done.stdout
