"""Finds the configuration files that a command reads, and combines them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.apps.cli import consent
from pegboard.errors import ConfigError
from pegboard.settings import Settings, load_settings, read_file
from pegboard.settings.client_configs import is_pegboard
from pegboard.settings.client_files import OWN_NAME, client_of, is_projects, own_file, usual_files
from pegboard.settings.server_spec import ServerSpec

RUNNERS = frozenset({"npx", "bunx", "uvx", "uv", "pipx", "run", "node", "python", "python3", "docker"})
"""Programs that run another program, after which a server is named."""
SENDING = frozenset({"chroma", "encoder", "otel", "pgvector", "qdrant", "state"})
"""Options with a URL, and with names of variables whose values are sent to it."""
HARMLESS = frozenset(
    {"aliases", "always_available", "budget", "call_timeout", "categories", "category_descriptions"}
    | {"category_patterns", "connect_timeout", "eager_tokens", "eager_tools", "encoder_threads", "exposure"}
    | {"health_timeout", "idle_stop", "index_wait", "instruction_tokens", "k", "lazy", "list_budget", "log_format"}
    | {"often_used", "pool", "profile", "push", "query", "recall", "search_wait", "servers", "session_tools"}
    | {"start_wait", "threshold", "toolsets"}
)
"""Options that choose among tools or say how long to wait. All others may read, write, send or permit something, and so
do toolsets with presets (`_asked_about`)."""
OURS = "is Pegboard itself."
ASKED = "On a terminal, you are asked whether it may be used."


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """Settings and the ``files`` they come from; ``notes`` say what was left out, and why."""

    settings: Settings
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def given(files: Sequence[Path], **flags: Any) -> Configured:
    """Settings from exactly these files. Raises ConfigError for a file that cannot be read."""
    return _without_us(Configured(settings=load_settings(files, **flags), files=tuple(files)))


def wrapped(command: Sequence[str]) -> dict[str, ServerSpec]:
    """The one server that a command starts, named after the program or package.

    >>> list(wrapped(["npx", "-y", "@modelcontextprotocol/server-everything"]))
    ['server-everything']
    """
    named = [word for word in command if "=" not in word and not word.startswith("-")]
    words = [word for word in named if Path(word).name not in RUNNERS] or list(command)
    name = Path(words[0]).name.partition("@")[0] or "server"
    return {name: ServerSpec(name=name, command=command[0], args=tuple(command[1:]), folder=str(Path.cwd()))}


def given_or_usual(files: Sequence[Path], **flags: Any) -> Configured:
    """Settings from these files or, if there are none, from the readable files of MCP clients on this machine.

    Files of the current project need the user's consent where they start servers, or set what is not `HARMLESS`: their
    author could start any program, or take a sandbox away.
    Raises ConfigError if there is no file at all.
    """
    if files:
        return given(files, **flags)
    usable, notes = [], []
    for path in usual_files(Path.home(), Path.cwd()):
        if elsewhere := _sends_elsewhere(path):
            notes.append(_left_out(path, elsewhere))
            continue
        try:
            servers = load_settings([path]).servers
        except ConfigError as error:
            notes.append(f"Left out: {error.message}")
            continue
        options = _asked_about(path)
        if not (servers or options) and (client := client_of(path)) and client.differs:
            continue  # settings of a program that has no servers
        if consent.may_use(path, servers, options):
            usable.append(path)
        else:
            notes.append(consent.refusal(path))
    if not usable:
        raise ConfigError(
            " ".join(["No usable configuration of an MCP client was found in the usual places.", *notes]),
            remedy="Name one with --config FILE, or a file of tools with --catalog FILE.",
        )
    configured = given(list(reversed(usable)), **flags)
    return Configured(settings=configured.settings, files=tuple(usable), notes=(*notes, *configured.notes))


def for_tools(config: Sequence[Path] | None, catalogs: Sequence[Path] | None, **flags: Any) -> Configured:
    """The settings of a command on tools: the files of --config, or the usual ones if there is no --catalog either."""
    return given(config or [], **flags) if catalogs else given_or_usual(config or [], **flags)


def _asked_about(path: Path) -> set[str]:
    """The options in a file that need consent: presets of toolsets may have values of variables."""
    document = read_file(path)
    toolsets = document.get("toolsets")
    chosen = toolsets.values() if isinstance(toolsets, Mapping) else ()
    presets = {"toolsets"} if any(isinstance(each, Mapping) and "preset" in each for each in chosen) else set()
    return ((document.keys() - HARMLESS) | presets) - _overridden(document)


def _overridden(names: Iterable[str]) -> set[str]:
    """The options that the environment sets, whatever a file says."""
    return {name for name in names if f"PEGBOARD_{name.upper()}" in os.environ}


def _sends_elsewhere(path: Path) -> list[str]:
    """Options in a file of the current project that could send the user's data to the file's author."""
    if not is_projects(path, Path.home(), Path.cwd()):
        return []
    try:
        named = SENDING & read_file(path).keys()
        return sorted(named - _overridden(named))
    except ConfigError:
        return []  # reported when the file is loaded


def _left_out(path: Path, elsewhere: Sequence[str]) -> str:
    return (
        f"Left out: {str(path)!r} belongs to the current project and sets where data and keys are sent "
        f"({', '.join(elsewhere)}); `--config {path}` uses it."
    )


def own_files() -> list[Path]:
    """The nearest pegboard.toml: in the current folder, else the user's; empty if there is none."""
    return [path for path in (Path(OWN_NAME), own_file()) if path.is_file()][:1]


def own_files_allowed() -> Configured:
    """As `own_files`, for what a client starts in whatever folder it is in: without a file of the current project that
    needs the user's consent and does not have it. Raises ConfigError where nothing else is left."""
    notes: list[str] = []
    for path in (Path(OWN_NAME), own_file()):
        if not path.is_file():
            continue
        if refused := why_refused(path):
            notes.append(refused)
            continue
        return Configured(settings=load_settings([path]), files=(path,), notes=tuple(notes))
    if notes:
        raise ConfigError(" ".join(notes), remedy=ASKED)
    return Configured(settings=load_settings())


def why_refused(path: Path) -> str:
    """Why a pegboard.toml that nobody has named is not used; empty if it is. On a terminal, the user may be asked.

    Raises ConfigError if it cannot be read.
    """
    whole = path.absolute()
    if elsewhere := _sends_elsewhere(whole):
        return _left_out(whole, elsewhere)
    may = consent.may_use(whole, load_settings([path]).servers, _asked_about(path))
    return "" if may else consent.refusal(whole)


def own_files_agreed(*, starts: bool = False, asks: bool = True) -> list[Path]:
    """As `own_files`, for a command that reads or changes what is kept: the file names the store. Servers and presets
    alone are asked about only if the command ``starts`` servers, but an answer is for the whole file. Raises
    ConfigError for a file of the current project that is not harmless and that the user has not allowed, on a terminal
    when it ``asks``."""
    for path in own_files():
        whole, remedy = path.absolute(), f"`--config {path}` uses it; in another folder, your own configuration counts."
        if elsewhere := _sends_elsewhere(whole):
            raise ConfigError(
                f"{str(path)!r} belongs to the current project and sets where data and keys are sent "
                f"({', '.join(elsewhere)}).",
                remedy=remedy,
            )
        options = _asked_about(path)
        if not (starts or options - {"toolsets"}):
            continue
        if not consent.may_use(whole, load_settings([path]).servers, options, asks=asks):
            what = f"sets {', '.join(sorted(options))}" if options else "starts servers"
            raise ConfigError(
                f"{str(path)!r} belongs to the current project and {what}, which you have not allowed.",
                remedy=f"{remedy} {ASKED}",
            )
    return own_files()


def _without_us(configured: Configured) -> Configured:
    """Without servers that are Pegboard itself: starting those from here would never end."""
    servers = configured.settings.servers
    ours = [name for name, spec in servers.items() if is_pegboard(spec)]
    others = {name: spec for name, spec in servers.items() if name not in ours}
    return Configured(
        settings=configured.settings.model_copy(update={"servers": others}) if ours else configured.settings,
        files=configured.files,
        notes=(*configured.notes, *(f"Left out: server {name!r} {OURS}" for name in ours)),
    )


def is_ours(note: str) -> bool:
    """Whether a note says that a client starts Pegboard, which is as it should be after `pegboard init`."""
    return note.endswith(OURS)
