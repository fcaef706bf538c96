"""Imports of optional packages, with errors that say how to install them."""

from __future__ import annotations

from importlib import import_module, metadata
from typing import Any

from pegboard.errors import ConfigError

MCP = (2, 3)
"""The MCP SDK version that gateways and connections to servers need. A board without servers does not use the SDK, so
Pegboard can be installed beside packages that need an older one."""
EXTRAS = {
    "aiohttp": "gateway",
    "backports": "gateway",
    "brotli": "gateway",
    "httptools": "gateway",
    "cryptography": "mcp",
    "filelock": "mcp",
    "httpx2": "remote",
    "jsonpath": "gateway",
    "jinja2": "ui",
    "jwt": "gateway",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "opentelemetry": "otel",
    "msgspec": "mcp",
    "prometheus_client": "gateway",
    "pyarrow": "parquet",
    "ray": "ray",
    "rich": "cli",
    "starlette": "gateway",
    "typer": "cli",
    "uvicorn": "gateway",
}
"""Top-level module to the least extra that brings it; the core installs none of them."""


def required(module: str, extra: str) -> Any:
    """The module. Raises ConfigError with the install command if it cannot be imported."""
    try:
        return import_module(module)
    except ImportError as error:
        raise _missing(module, extra, error) from error


def missing_extra(error: Exception) -> ConfigError | None:
    """What to install, if ``error`` is the failed import of a package that an extra brings; None for other errors."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    extra = EXTRAS.get(error.name.partition(".")[0])
    return None if extra is None else _missing(error.name, extra, error)


def _missing(module: str, extra: str, error: ImportError) -> ConfigError:
    return ConfigError(
        f"The package {module.partition('.')[0]!r} cannot be used: {error}.",
        remedy=f"Install it with `pip install 'pegboard[{extra}]'`.",
    )


def required_mcp(extra: str = "mcp") -> None:
    """Raises ConfigError with the install command if the MCP SDK is missing or too old for servers and gateways.

    ``extra`` brings everything that the caller needs besides.
    """
    try:
        there = metadata.version("mcp")
    except metadata.PackageNotFoundError as error:
        raise ConfigError(
            "MCP servers and gateways need the package mcp, which is not installed.",
            remedy=f"Install it with `pip install 'pegboard[{extra}]'`.",
        ) from error
    numbers = tuple(int(part) for part in there.split(".")[:2] if part.isdigit())
    if numbers < MCP:
        least = ".".join(map(str, MCP))
        raise ConfigError(
            f"MCP servers and gateways need mcp {least} or later; installed is {there}.",
            remedy=f"Install it with `pip install 'mcp>={least}'`. If another package needs an older version, use a "
            "separate environment.",
        )
