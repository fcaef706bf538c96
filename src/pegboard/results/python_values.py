"""Rows as servers in Python print them: a list of dictionaries, read as the same values in JSON."""

from __future__ import annotations

import ast
import math
from typing import Any

LONGEST = 120_000
"""Characters of a text that is read: Python's parser takes some 100 ms for them."""


def parsed_python(text: str) -> list[dict[str, Any]] | None:
    """The rows that a text holds, if it is a list of dictionaries of what JSON has too; None for anything else.

    >>> parsed_python("[{'id': 7, 'end': None}]"), parsed_python("[{'id': b'7'}]"), parsed_python('[{"id": 7}]')
    ([{'id': 7, 'end': None}], None, None)
    """
    stripped = text.strip()
    if not stripped.startswith("[{'") or not stripped.endswith("}]") or len(stripped) > LONGEST:
        return None
    if "\ue000" in stripped or "\ue001" in stripped:
        return None
    try:
        value = ast.literal_eval(stripped)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if _is_json(value) and repr(value) == stripped else None


def _is_json(value: Any) -> bool:
    """Whether JSON has the value, and Python prints it in one way."""
    if isinstance(value, dict):
        return all(type(key) is str and _is_json(each) for key, each in value.items())
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or type(value) in (str, bool, int) or (type(value) is float and math.isfinite(value))
