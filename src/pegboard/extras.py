"""Imports of optional packages, with errors that say how to install them."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

from pegboard.errors import ConfigError

MCP = (2, 3)
"""The MCP SDK version that gateways and connections to servers need. A board without servers does not use the SDK, so
Pegboard can be installed beside packages that need an older one."""


def required(module: str, extra: str) -> Any:
    """The module. Raises ConfigError with the install command if it cannot be imported."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"The package {module.partition('.')[0]!r} cannot be used: {error}.",
            remedy=f"Install it with `pip install 'pegboard[{extra}]'`.",
        ) from error


def required_mcp() -> None:
    """Raises ConfigError with the install command if the MCP SDK is missing or too old for servers and gateways."""
    try:
        there = metadata.version("mcp")
    except metadata.PackageNotFoundError:
        there = "not installed"
    numbers = tuple(int(part) for part in there.split(".")[:2] if part.isdigit())
    if numbers < MCP:
        least = ".".join(map(str, MCP))
        raise ConfigError(
            f"MCP servers and gateways need mcp {least} or later; installed is {there}.",
            remedy=f"Install it with `pip install 'mcp>={least}'`. If another package needs an older version, use a "
            "separate environment.",
        )
