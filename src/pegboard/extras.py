"""Packages that only some parts need."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

from pegboard.errors import ConfigError

MCP = (2, 3)
"""What gateways and connections to servers need of the MCP SDK. A board without servers needs none of it, so that
Pegboard can be installed beside what needs an earlier one."""


def required(module: str, extra: str) -> Any:
    """The module; raises ConfigError that says how to install it where it is not."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"The package {module.partition('.')[0]!r} cannot be used: {error}.",
            remedy=f"Install it with `pip install 'pegboard[{extra}]'`.",
        ) from error


def required_mcp() -> None:
    """Raises ConfigError that says how to get it where the MCP SDK is missing, or too old for servers and gateways."""
    try:
        there = metadata.version("mcp")
    except metadata.PackageNotFoundError:
        there = "not installed"
    numbers = tuple(int(part) for part in there.split(".")[:2] if part.isdigit())
    if numbers < MCP:
        least = ".".join(map(str, MCP))
        raise ConfigError(
            f"MCP servers and gateways need mcp {least} or later, and what is here is {there}.",
            remedy=f"Install it with `pip install 'mcp>={least}'`; where another package needs an earlier one, in an "
            "environment of its own.",
        )
