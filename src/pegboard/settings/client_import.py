"""Plans how the servers of many clients move into one pegboard.toml. This module reads and writes no files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from pegboard.errors import ConfigError
from pegboard.settings.client_configs import is_pegboard, servers_of
from pegboard.settings.client_files import Client
from pegboard.settings.server_spec import UNKNOWN, VARIABLE, ServerSpec, secret_arguments

JsonObject = Mapping[str, Any]

ENTRY_NAME = "pegboard"
SUFFIXES: Mapping[str, str] = {"user": "", "project": "-project", "local": "-local"}
ENTRY_NAMES: Mapping[str, str] = {scope: ENTRY_NAME + suffix for scope, suffix in SUFFIXES.items()}
"""By scope. The names differ because of two entries with one name, clients start only the nearest."""
FOLDER = "${workspaceFolder}"
EDITOR_ONLY = frozenset({"workspaceFolder", "workspaceFolderBasename", "pathSeparator"})
"""Variables that only editors expand."""
CARRIED = frozenset(
    {"command", "args", "env", "cwd", "url", "serverUrl", "headers", "type", "disabled", "enabled", "description"}
    | {"envFile", "env_file", "bearer_token_env_var", "env_http_headers", "oauth", "auth"}
)
"""Fields of an entry that Pegboard supports or can ignore."""
PLACEHOLDER = re.compile(rf"{UNKNOWN.pattern}|\$\{{[\w:./-]+\}}|\$\{{\{{[^}}]*\}}\}}|\{{file:[^}}]*\}}")
"""A variable without a default. Any other text that begins with `${` is not a variable and may be secret."""
OBSTACLE = "It is remote and without a token, and a sign-in (OAuth) through Pegboard is not sure to work: {}."
NOT_ASKED = "nobody has asked it"
OFF = "pegboard.toml has it, disabled."
CURSOR = {"CLIENT_ID": "client_id", "CLIENT_SECRET": "client_secret", "scopes": "scopes"}
"""Fields of Cursor's `auth`."""
HIDDEN = "***"
VALUED = frozenset({"--log-level", "--log-format", "--profile", "--exposure"})
FLAGS = frozenset({"--no-attach", "--verbose"})
"""Options of an entry that leave the servers of its file as they are: those with a value, and those without."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFile:
    """A client's file with its server entries as written. ``place`` are the keys that lead to them, ``folder`` is the
    project's or the file's."""

    client: Client
    path: Path
    place: tuple[str, ...]
    folder: Path
    text: str
    entries: JsonObject

    @property
    def own(self) -> set[str]:
        """The entries that point at a pegboard.toml."""
        return {name for name in self.entries if self.board(name)}

    def board(self, name: str) -> str:
        """The pegboard.toml with which an entry starts Pegboard; empty for another server."""
        try:
            return started_board(self.client.common(self.entries[name]))
        except ConfigError:
            return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A server of a client and its ``name`` in pegboard.toml; ``left`` are the fields that are not carried over."""

    server: str
    name: str
    file: ClientFile
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stays:
    """A server that stays in its client's file, and the reason."""

    server: str
    file: ClientFile
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``new`` are the servers to add to one pegboard.toml."""

    new: Mapping[str, JsonObject]
    moved: tuple[Moved, ...]
    stays: tuple[Stays, ...]


def plan(
    existing: Mapping[str, JsonObject],
    files: Iterable[ClientFile],
    obstacle: Callable[[JsonObject], str] = lambda definition: NOT_ASKED,
) -> Plan:
    """Decide which servers move and which stay. ``existing`` are the servers of pegboard.toml, with resolved paths.

    A server that exists already, under any name, is not added again, and stays if it is disabled there. If another
    server has the name, the client's name is appended. A remote server without a token stays if there is an
    ``obstacle`` to signing in, unless it exists already.
    """
    known = {identity(entry): name for name, entry in existing.items() if not entry.get("disabled")}
    disabled = {identity(entry) for entry in existing.values()} - known.keys()
    taken = set(existing)
    new: dict[str, JsonObject] = {}
    moved: list[Moved] = []
    stays: list[Stays] = []
    for file in files:
        for server, entry in file.entries.items():
            if server in file.own:
                continue
            try:
                made = definition(server, entry, file)
            except ConfigError as error:
                stays.append(Stays(server=server, file=file, reason=error.message))
                continue
            same = identity(made)
            if same in disabled:
                stays.append(Stays(server=server, file=file, reason=OFF))
                continue
            if same not in known and may_sign_in(made) and (why := obstacle(made)):
                stays.append(Stays(server=server, file=file, reason=OBSTACLE.format(why)))
                continue
            if same not in known:
                known[same] = name = _free(server, file.client.name, taken)
                taken.add(name)
                new[name] = made
            left = tuple(sorted(set(file.client.common(entry)) - CARRIED - {*file.client.spelling}))
            moved.append(Moved(server=server, name=known[same], file=file, left=left))
    return Plan(new=new, moved=tuple(moved), stays=tuple(stays))


def definition(name: str, entry: Any, file: ClientFile) -> JsonObject:
    """The entry for pegboard.toml, without relative paths. Raises ConfigError with the reason if it cannot move."""
    spec = servers_of({"mcpServers": {name: _with_oauth(file.client.common(entry))}}, file.path, file.folder)[name]
    if is_pegboard(spec):
        raise ConfigError("It is Pegboard itself.")
    if spec.disabled:
        raise ConfigError("It is disabled.")
    made = resolved(spec, in_project=file.client.scope != "user")
    if foreign := _foreign(made):
        raise ConfigError(f"It uses {foreign}, which only its client knows.")
    return made


def _with_oauth(entry: JsonObject) -> JsonObject:
    """The entry with its client's options for signing in as ours; other ways to sign in than OAuth are no option."""
    if not isinstance(entry, Mapping):
        return entry
    kept = {key: value for key, value in entry.items() if key not in ("auth", "oauth")}
    oauth, auth = entry.get("oauth"), entry.get("auth")
    if isinstance(auth, Mapping):
        oauth = {ours: auth[theirs] for theirs, ours in CURSOR.items() if theirs in auth}
    return kept | ({"oauth": oauth} if isinstance(oauth, Mapping) and oauth.get("enabled", True) else {})


def without_tokens(files: Iterable[ClientFile]) -> list[JsonObject]:
    """The definitions of remote servers that may want a sign-in."""
    found = []
    for file in files:
        for server, entry in file.entries.items():
            with suppress(ConfigError):
                made = definition(server, entry, file)
                found += [made] if may_sign_in(made) else []
    return found


def may_sign_in(definition: JsonObject) -> bool:
    """Whether it is a remote server without credentials; only the server knows whether it needs a sign-in."""
    spec = ServerSpec(name=ENTRY_NAME, **definition)
    return spec.is_remote and not spec.has_credentials


def resolved(spec: ServerSpec, *, in_project: bool) -> dict[str, Any]:
    """The fields that are set, with absolute paths. A project's server runs in the project folder."""
    folder = Path(spec.folder)

    def here(text: str) -> str:
        return text.replace(FOLDER, spec.folder) if in_project else text

    def path(text: str | None) -> str | None:
        return str(folder / here(text)) if text and not text.startswith(("~", "${")) else text and here(text)

    is_path = spec.command and "/" in spec.command
    made: dict[str, Any] = {
        "command": path(spec.command) if is_path and not spec.cwd else spec.command and here(spec.command),
        "args": [here(each) for each in spec.args],
        "env": {key: here(value) for key, value in spec.env.items()},
        "cwd": path(spec.cwd) or (spec.folder if in_project and spec.command else None),
        "env_file": path(spec.env_file),
        "type": "sse" if spec.type == "sse" else "",
        "url": spec.url,
        "headers": dict(spec.headers),
        "oauth": _oauth(spec),
        "description": spec.description,
    }
    return {key: value for key, value in made.items() if value}


def _oauth(spec: ServerSpec) -> dict[str, Any]:
    """The options for signing in that are set."""
    return {} if spec.oauth is None else spec.oauth.model_dump(mode="json", exclude_defaults=True)


def entry_for(client: Client, name: str, command: Sequence[str], target: Path) -> dict[str, Any]:
    """The entry by which a client starts Pegboard with the configuration ``target``."""
    return client.entry(name, [*command, "mcp", "--config", str(target)])


def started_board(entry: Any) -> str:
    """The TOML file with which an entry starts Pegboard, as `entry_for` writes it; empty for another server.

    Options may have been added behind the file, but nothing that changes its servers: a command to wrap replaces them.
    """
    if not isinstance(entry, Mapping) or not isinstance(entry.get("args"), list):
        return ""
    args = tuple(map(str, entry["args"]))
    at = next((at for at, pair in enumerate(pairwise(args)) if pair == ("mcp", "--config")), len(args))
    board, options = "".join(args[at + 2 : at + 3]), args[at + 3 :]
    if not board.endswith(".toml") or not _leaves_servers(options):
        return ""
    return board if is_pegboard(ServerSpec(name=ENTRY_NAME, command=str(entry.get("command")), args=args)) else ""


def _leaves_servers(options: Iterable[str]) -> bool:
    rest = iter(options)
    return all(
        option in FLAGS
        or (option in VALUED and next(rest, None) is not None)
        or (option.partition("=")[0] in VALUED and "=" in option)
        for option in rest
    )


def boards(file: ClientFile) -> dict[str, str]:
    """The entries of Pegboard in a file and what each starts."""
    return {name: board for name in file.entries if (board := file.board(name))}


def free_name(name: str, taken: Iterable[str]) -> str:
    """The name, or a similar one that is not taken."""
    return _free(name, "", set(taken))


def entry_name(file: ClientFile, target: Path, users: Mapping[str, str]) -> str:
    """The name of Pegboard's entry in this file. ``users`` are the boards that the client's user file starts, by name.

    If an entry there starts the same board, both get the same name, so that the client starts the board once.
    """
    same = [name for name, board in users.items() if board == str(target)] if file.client.scope != "user" else []
    return same[0] if same else ENTRY_NAMES[file.client.scope]


def hiding(users: Mapping[str, str], nearer: Mapping[str, str]) -> list[str]:
    """Names under which the entry of a nearer file hides one that starts Pegboard with another configuration."""
    return [name for name, board in users.items() if name in nearer and nearer[name] != board]


def masked(definition: JsonObject) -> dict[str, Any]:
    """The definition without secrets, fit to be shown: values of env and headers, and credentials in URLs and flags,
    are masked (M30)."""
    shown = dict(definition)
    for key in ("env", "headers"):
        if key in shown:
            shown[key] = dict.fromkeys(shown[key], HIDDEN)
    if isinstance(oauth := shown.get("oauth"), Mapping):
        shown["oauth"] = {key: HIDDEN if "secret" in key.lower() else value for key, value in oauth.items()}
    if "url" in shown:
        shown["url"] = re.sub(r"(?<=://)[^/@]*@|(?<=\?).*", HIDDEN, shown["url"], flags=re.DOTALL)
    if "args" in shown:
        shown["args"] = list(_masked_args(shown["args"]))
    return shown


def _masked_args(args: Sequence[str]) -> Iterable[str]:
    for shown, secret in secret_arguments(args):
        if secret:
            yield shown + HIDDEN
        elif "=" in shown and "://" in shown:
            yield shown.partition("=")[0] + "=" + HIDDEN
        else:
            yield re.sub(r"(?<=://)[^/@\s]*@|(?<=\?).*", HIDDEN, shown) if "://" in shown else shown


def _foreign(value: Any) -> str | None:
    """The first variable in any string of the value that only an editor can expand."""
    if isinstance(value, str):
        return next((found.group() for found in PLACEHOLDER.finditer(value) if _is_editors(found.group())), None)
    if isinstance(value, bool | int | float):
        return None
    inner = value.values() if isinstance(value, Mapping) else value
    return next(filter(None, map(_foreign, inner)), None)


def _is_editors(placeholder: str) -> bool:
    variable = VARIABLE.fullmatch(placeholder)
    return variable is None or variable.group(1) in EDITOR_ONLY


def identity(entry: JsonObject) -> str:
    """Equal for two definitions of the same server."""
    told = {key: value for key, value in entry.items() if key not in ("description", "disabled")}
    return json.dumps(told, sort_keys=True)


def _free(name: str, suffix: str, taken: set[str]) -> str:
    """The name, or a similar one that is not taken."""
    wanted = f"{name}-{suffix}" if suffix and name in taken else name
    numbered = (f"{wanted}-{number}" for number in count(2))
    return wanted if wanted not in taken else next(each for each in numbered if each not in taken)


def existing_servers(document: JsonObject, path: Path) -> dict[str, JsonObject]:
    """The servers of a pegboard.toml with their paths resolved, as `plan` compares them."""
    if "servers" not in document:
        return {}
    return {
        name: resolved(spec, in_project=False) | ({"disabled": True} if spec.disabled else {})
        for name, spec in servers_of(document, path).items()
    }
