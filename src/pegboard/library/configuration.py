"""What people say of servers and options, as settings."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pegboard.client_configs import servers_of
from pegboard.errors import ConfigError
from pegboard.server_spec import ServerSpec
from pegboard.settings import Settings, load_settings

ANOTHER = "pegboard"
EVERYTHING = {"x-pegboard-exposure": "eager"}
"""Asks another Pegboard for its tools one by one: it is this board that picks among them."""


def settings_of(config: str | Path | Mapping[str, Any] | None, url: str | None, options: Mapping[str, Any]) -> Settings:
    """``config`` is a file, or what one says; its servers are joined by the Pegboard at ``url``. Raises ConfigError."""
    _check_names(options)
    files = [Path(config)] if isinstance(config, str | Path) else []
    said = dict(options)
    servers: dict[str, ServerSpec] = dict(said.pop("servers", None) or {})
    if isinstance(config, Mapping):
        servers |= servers_of(config, Path("config"))
    if url is not None:
        servers[ANOTHER] = ServerSpec(name=ANOTHER, url=url, headers=EVERYTHING)
    if not servers:
        return load_settings(files, **said)
    of_files = load_settings(files, **said)
    return of_files.model_copy(update={"servers": {**of_files.servers, **servers}})


def _check_names(options: Mapping[str, Any]) -> None:
    known = sorted(Settings.model_fields)
    for name in options.keys() - set(known):
        near = get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        raise ConfigError(f"Board has no option {name!r}.", remedy=f"{hint}There are {', '.join(known)}.")
