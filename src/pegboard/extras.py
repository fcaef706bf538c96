"""Packages that only some parts need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pegboard.errors import ConfigError


def required(module: str, extra: str) -> Any:
    """The module; raises ConfigError that says how to install it where it is not."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"The package {module.partition('.')[0]!r} cannot be used: {error}.",
            remedy=f"Install it with `pip install 'pegboard[{extra}]'`.",
        ) from error
