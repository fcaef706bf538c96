"""Reads the servers of a registry from files: list answers, arrays of servers, single ones, and lines of either."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pegboard.errors import CatalogError, ConfigError
from pegboard.home_path import home_path

MOST_BYTES = 512 * 1024 * 1024
"""Of one file. The official registry's whole list was 4 MB in January 2026."""
NAMES = ("*.json", "*.jsonl")


def registry_files(name: str) -> list[Path]:
    """The file, or the files of a folder and of those in it, in order. Raises ConfigError if there is none."""
    source = home_path(name)
    if source.is_file():
        return [source]
    found = (
        sorted(each for pattern in NAMES for each in source.rglob(pattern) if each.is_file()) if source.is_dir() else []
    )
    if not found:
        what = "has no file that ends in .json or .jsonl" if source.is_dir() else "is neither a file nor a folder"
        raise ConfigError(f"{str(source)!r} {what}.", remedy="Name a file, a folder, or the URL of a registry.")
    return found


def read_servers(path: Path) -> Iterator[Any]:
    """The servers of a file as JSON values, unchecked. Raises CatalogError that says where the file is broken."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise CatalogError(f"{str(path)!r} is larger than {MOST_BYTES:,} bytes.", remedy="Divide it.")
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise CatalogError(f"Cannot read {str(path)!r}: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise CatalogError(f"{str(path)!r} is not UTF-8: {error.reason} at byte {error.start:,}.") from None
    if path.suffix == ".jsonl":
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                yield from servers_of(_parsed(line, f"{str(path)!r}, line {number}"), str(path))
    else:
        yield from servers_of(_parsed(text, repr(str(path))), str(path))


def servers_of(value: Any, where: str) -> list[Any]:
    """The servers in a list answer, an array, or one server. Raises CatalogError for anything else."""
    if isinstance(value, list):
        return value
    if isinstance(value, Mapping) and "servers" in value:
        servers = value["servers"]
        if isinstance(servers, list):
            return servers
    elif isinstance(value, Mapping) and ("server" in value or "name" in value):
        return [value]
    raise CatalogError(
        f"{where!r} has no list of servers.",
        remedy='It should be a `server.json`, or {"servers": […]} as `GET /v0/servers` answers.',
    )


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise CatalogError(f"{where} is nested too deeply.", remedy="Get it again.") from None
    except json.JSONDecodeError as error:
        raise CatalogError(
            f"{where} is no JSON: {error.msg} at line {error.lineno}, column {error.colno}.", remedy="Get it again."
        ) from None
    except ValueError:
        raise CatalogError(f"{where} has a number with too many digits.", remedy="Get it again.") from None
