"""Which configuration files a command reads, and what they say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.apps.cli import consent
from pegboard.client_configs import OWN_NAME, is_pegboard, is_projects, own_file, usual_files
from pegboard.errors import ConfigError
from pegboard.server_spec import ServerSpec
from pegboard.settings import Settings, load_settings, read_file

RUNNERS = frozenset({"npx", "bunx", "uvx", "uv", "pipx", "run", "node", "python", "python3", "docker"})
"""Programs that start the one which is meant."""
SENDING = frozenset({"chroma", "encoder", "state"})
"""Options with an address, and with the names of variables whose values are sent there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """``files`` were used; ``notes`` say which were left out, and why."""

    settings: Settings
    files: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


def given(files: Sequence[Path], **flags: Any) -> Configured:
    """Exactly these files. Raises ConfigError for any that cannot be read."""
    return _without_us(Configured(settings=load_settings(files, **flags), files=tuple(files)))


def wrapped(command: Sequence[str]) -> dict[str, ServerSpec]:
    """The one server that a command starts, named after its program or package.

    >>> list(wrapped(["npx", "-y", "@modelcontextprotocol/server-everything"]))
    ['server-everything']
    """
    named = [word for word in command if "=" not in word and not word.startswith("-")]
    words = [word for word in named if Path(word).name not in RUNNERS] or list(command)
    name = Path(words[0]).name.partition("@")[0] or "server"
    return {name: ServerSpec(name=name, command=command[0], args=tuple(command[1:]), folder=str(Path.cwd()))}


def given_or_usual(files: Sequence[Path], **flags: Any) -> Configured:
    """These files; where there are none, those of the MCP clients on this machine that can be read.

    A project's own files count where the user has allowed it: they start whatever their author likes.
    Raises ConfigError where there are none at all.
    """
    if files:
        return given(files, **flags)
    usable, notes = [], []
    for path in usual_files(Path.home(), Path.cwd()):
        if elsewhere := _sends_elsewhere(path):
            notes.append(
                f"Left out: {str(path)!r} belongs to the project here and says where data and keys go "
                f"({', '.join(elsewhere)}); `--config {path}` uses it."
            )
            continue
        try:
            servers = load_settings([path]).servers
        except ConfigError as error:
            notes.append(f"Left out: {error.message}")
            continue
        if consent.may_start(path, servers):
            usable.append(path)
        else:
            notes.append(consent.refusal(path))
    if not usable:
        raise ConfigError(
            " ".join(["No configuration of an MCP client was found in its usual place.", *notes]),
            remedy="Name one with --config FILE, or a file of tools with --catalog FILE.",
        )
    configured = given(list(reversed(usable)), **flags)
    return Configured(settings=configured.settings, files=tuple(usable), notes=(*notes, *configured.notes))


def _sends_elsewhere(path: Path) -> list[str]:
    """Options of a project's own file by which its author would be sent what is the user's."""
    if not is_projects(path, Path.home(), Path.cwd()):
        return []
    try:
        return sorted(SENDING & read_file(path).keys())
    except ConfigError:
        return []  # said when it is loaded


def own_files() -> list[Path]:
    """The nearest pegboard.toml: the folder's, else the user's."""
    return [path for path in (Path(OWN_NAME), own_file()) if path.is_file()][:1]


def _without_us(configured: Configured) -> Configured:
    """A client that already has Pegboard names it as a server: starting it from here would never end."""
    servers = configured.settings.servers
    ours = [name for name, spec in servers.items() if is_pegboard(spec)]
    others = {name: spec for name, spec in servers.items() if name not in ours}
    return Configured(
        settings=configured.settings.model_copy(update={"servers": others}) if ours else configured.settings,
        files=configured.files,
        notes=(*configured.notes, *(f"Left out: server {name!r} is Pegboard itself." for name in ours)),
    )
