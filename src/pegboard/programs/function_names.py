"""The names of tools as Python functions."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable

SUFFIX = "_tool"
MODULES = frozenset({"asyncio", "datetime", "json", "math", "os", "pathlib", "re", "sys", "time", "typing"})
"""Modules that a program may import under their own names."""
TAKEN = frozenset(dir(builtins)) | frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | MODULES
"""Names that mean something else in a program."""
_ODD = re.compile(r"\W+", re.ASCII)


def function_names(names: Iterable[str]) -> dict[str, str]:
    """The function of each tool name, by function; it depends on the set of names alone.

    A name that is a Python identifier is its own function's. Others have their odd characters replaced; a name that is
    taken, in Python or by another tool, gets a suffix.

    >>> function_names(["read_file", "git-log", "print", "git_log"])
    {'git_log': 'git_log', 'read_file': 'read_file', 'git_log_2': 'git-log', 'print_tool': 'print'}
    """
    found: dict[str, str] = {}
    rest = []
    for name in sorted(set(names)):
        if name.isascii() and name.isidentifier() and name not in TAKEN and not name.startswith("__"):
            found[name] = name
        else:
            rest.append(name)
    for name in rest:
        function = first = _identifier(name)
        number = 1
        while function in found:
            number += 1
            function = f"{first}_{number}"
        found[function] = name
    return found


def _identifier(name: str) -> str:
    plain = _ODD.sub("_", name).strip("_") or "tool"
    plain = f"tool_{plain}" if plain[0].isdigit() else plain
    return f"{plain}{SUFFIX}" if plain in TAKEN else plain
