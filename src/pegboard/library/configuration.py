"""Settings from what a caller passes: a file, a mapping, an address, options."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pegboard.errors import ConfigError
from pegboard.settings import Settings, load_settings
from pegboard.settings.client_configs import servers_of
from pegboard.settings.server_spec import ServerSpec

LOGGER = logging.getLogger(__name__)

ANOTHER = "pegboard"
EVERYTHING = {"x-pegboard-exposure": "eager"}
"""Asks the other Pegboard to list its tools one by one: this board does the selection."""


OF_CLIENTS = frozenset({"mcpServers", "mcp", "projects", "inputs"})
"""Keys of clients' files, whose other keys are the client's own."""
BESIDE = OF_CLIENTS | {"servers", "pegboard", "$schema"}
"""Keys of a file that are no options of its own."""


MEMBERS: Mapping[str, Sequence[str]] = {
    "encoder": ("encode", "provider", "model"),
    "store": ("load", "save", "forget"),
    "events": ("emit",),
}
"""What each part that can be replaced must have."""


Config = Settings | str | Path | Mapping[str, Any] | None
"""Settings, the path of a settings file, or the content of such a file."""


def settings_of(config: Config, url: str | None, options: Mapping[str, Any]) -> Settings:
    """The settings, with the Pegboard at ``url`` added to the servers of ``config``. Raises ConfigError."""
    if isinstance(config, Settings):
        return _loaded(config, url, options)
    _check_names(options)
    files = [Path(config)] if isinstance(config, str | Path) else []
    said, content = dict(options), _options_in(config) if isinstance(config, Mapping) else {}
    servers = _servers_in(said.pop("servers", None) or {})
    if isinstance(config, Mapping) and not (content and config.keys().isdisjoint(OF_CLIENTS | {"servers"})):
        servers |= servers_of(config, Path("config"))
    if url is not None:
        servers[ANOTHER] = ServerSpec(name=ANOTHER, url=url, headers=EVERYTHING)
    if not servers:
        return load_settings(files, content=content, **said)
    of_files = load_settings(files, content=content, **said)
    return of_files.model_copy(update={"servers": {**of_files.servers, **servers}})


def check_parts(**parts: object) -> None:
    """Raises ConfigError for a part that cannot be one, such as the options of the configuration of that name."""
    for name, part in parts.items():
        missing = [each for each in MEMBERS[name] if not hasattr(part, each)]
        if part is not None and missing:
            options = f" Options go into config={{{name!r}: …}}." if name in Settings.model_fields else ""
            raise ConfigError(
                f"{name} is {type(part).__name__} without {missing[0]!r}.",
                remedy=f"Give an object as pegboard.protocols has it.{options}",
            )


def _servers_in(given: Any) -> dict[str, ServerSpec]:
    """Servers given as an option: specs, or entries as a file has them. Raises ConfigError."""
    if not isinstance(given, Mapping):
        return servers_of({"servers": given}, Path("servers"))
    specs = {name: each for name, each in given.items() if isinstance(each, ServerSpec)}
    entries = {name: each for name, each in given.items() if name not in specs}
    return specs | servers_of({"servers": entries}, Path("servers"))


def _options_in(content: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a file says besides its servers: a client's file in `pegboard`, where all other keys are the
    client's. Raises ConfigError."""
    within = content.get("pegboard")
    said = dict(within) if isinstance(within, Mapping) else {}
    others = {name: value for name, value in content.items() if name not in BESIDE}
    if OF_CLIENTS.isdisjoint(content):
        said |= others
    elif unread := sorted(others.keys() & Settings.model_fields.keys()):
        LOGGER.warning("Not read beside the servers of a client: %s. Options stand in 'pegboard'.", ", ".join(unread))
    _check_names(said)
    return said


def _loaded(settings: Settings, url: str | None, options: Mapping[str, Any]) -> Settings:
    if url is not None or options:
        given = ", ".join(sorted([*options, *(["url"] if url is not None else [])]))
        raise ConfigError(f"Board got loaded settings and also {given}.", remedy="Put everything into the settings.")
    return settings


def _check_names(options: Mapping[str, Any]) -> None:
    known = sorted(Settings.model_fields)
    for name in options.keys() - set(known):
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise ConfigError(f"Board has no option {name!r}.", remedy=f"{hint}Options are {', '.join(known)}.")
