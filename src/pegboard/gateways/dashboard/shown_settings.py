"""The settings as the dashboard shows them: numbers, switches and names; nothing that could be a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from pegboard.settings import Settings

HIDDEN = "hidden"
SECRET_PARTS = frozenset({"args", "env", "hash", "headers", "preset", "previous", "state"})
"""Names whose texts are hidden, with all that is below them."""
SECRET_NAMES = re.compile(r"secret|token|password|credential|api_?key|authorization|cookie", re.IGNORECASE)
NAMES_VARIABLE = re.compile(r"_env$")
ADDRESS = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
REFERENCE = re.compile(r"\$\{")


def shown_settings(settings: Settings) -> dict[str, str]:
    """Each option by its name, as text; options without a value are left out."""
    found = settings.model_dump(mode="json")
    return {".".join(path): text for path, value in _leaves(found) if (text := shown(path, value)) != ""}


def shown_options(now: Mapping[str, str], later: Mapping[str, str]) -> dict[str, str]:
    """Each option that is in force, with what it will be after a restart where that is something else.

    >>> shown_options({"k": "5", "port": "1"}, {"k": "5", "port": "2"})
    {'k': '5', 'port': '1 (after a restart: 2)'}
    """
    both = {name: (now.get(name, "none"), later.get(name, "none")) for name in (*now, *later)}
    return {name: one if one == other else f"{one} (after a restart: {other})" for name, (one, other) in both.items()}


def shown(path: tuple[str, ...], value: Any) -> str:
    """
    >>> shown(("servers", "a", "env", "TOKEN"), "x"), shown(("port",), 7332)
    ('hidden', '7332')
    >>> shown(("servers", "a", "url"), "https://u:p@example.com/s/SECRET/mcp?key=1")
    'https://example.com'
    """
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, list):
        return ", ".join(shown(path, each) for each in value)
    text = str(value)
    if not text:
        return ""
    if _is_secret(path) or REFERENCE.search(text):
        return HIDDEN
    if ADDRESS.match(text):
        parts = urlsplit(text)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    return PurePath(text).name if path[-1] == "command" else text


def _is_secret(path: tuple[str, ...]) -> bool:
    if NAMES_VARIABLE.search(path[-1]):
        return False
    return bool(SECRET_PARTS & set(path)) or any(SECRET_NAMES.search(part) for part in (path[0], path[-1]))


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _leaves(each, (*path, str(name)))
    elif isinstance(value, list) and any(isinstance(each, Mapping | list) for each in value):
        for place, each in enumerate(value):
            yield from _leaves(each, (*path, str(place)))
    else:
        yield path, value
