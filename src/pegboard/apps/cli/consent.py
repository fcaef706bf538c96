"""Asks for consent before using a project's files that start servers or change what is permitted, once per file
content, as editors do."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import typer
from platformdirs import user_state_path

from pegboard import operating_system
from pegboard.settings.client_configs import is_pegboard
from pegboard.settings.client_files import is_projects
from pegboard.settings.client_import import masked
from pegboard.settings.server_spec import ServerSpec

LOGGER = logging.getLogger(__name__)
ALLOWED = "allowed.json"


def may_use(path: Path, servers: Mapping[str, ServerSpec], options: Collection[str] = (), *, asks: bool = True) -> bool:
    """True for the user's own files, for files of a project that were allowed with exactly this content, and for those
    with neither servers to start nor ``options`` to ask about.

    On a terminal the user is asked, if it ``asks``; elsewhere the answer is no.
    """
    starting = [spec for spec in servers.values() if not (spec.disabled or is_pegboard(spec))]
    if not (starting or options) or not is_projects(path, Path.home(), Path.cwd()):
        return True
    if _allowed().get(str(path.absolute())) == _digest(path):
        return True
    if not (asks and sys.stdin.isatty() and sys.stderr.isatty() and _asked(path, starting, options)):
        return False
    remember([path])
    return True


def remember(paths: Iterable[Path]) -> None:
    """Allow these files, with their current content, to be used. Where that cannot be written, they are used once."""
    known = _allowed() | {str(path.absolute()): _digest(path) for path in paths}
    file = memory()
    temporary = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary.touch(mode=0o600)
        temporary.write_text(json.dumps(known, indent=2), "utf-8")
        operating_system.replace_file(temporary, file)
    except OSError as error:
        LOGGER.warning("Your answer is not remembered: %s cannot be written: %s.", file, error.strerror or error)


def refusal(path: Path) -> str:
    return f"Left out: {path} belongs to the current project. `--config {path}` uses it."


def _asked(path: Path, starting: Collection[ServerSpec], options: Collection[str]) -> bool:
    if starting:
        typer.echo(f"{path} belongs to the current project and would start:", err=True)
    for spec in starting:
        typer.echo(f"  {spec.name!r}: {_what(spec)!r}", err=True)
    if options:
        typer.echo(f"{path} belongs to the current project and sets {', '.join(sorted(options))}.", err=True)
    return typer.confirm("Use it?" if options else "Start them?", default=False, err=True)


def _what(spec: ServerSpec) -> str:
    """The command with its arguments, or the URL, with secrets masked."""
    shown = masked({"args": [spec.command, *spec.args]} if spec.command else {"args": [spec.url or ""]})
    return " ".join(shown["args"]) + (f" with {', '.join(spec.references)}" if spec.references else "")


def _allowed() -> dict[str, str]:
    try:
        known = json.loads(memory().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def memory() -> Path:
    """The file of the answers."""
    return user_state_path("pegboard", appauthor=False) / ALLOWED
