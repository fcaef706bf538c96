"""Decides which schema checks are certainly quick, so that they can run on the event loop.

The check is simulated first: every part of the schema that would be applied to a part of the value, as often as
jsonschema would. The simulation gives up once it takes too many steps, and at keywords of unknown cost. So it ends soon
for thirty definitions that each refer twice to the next, and for a schema that refers to itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

STEPS = 1_500
"""Maximum steps, of 5 to 10 µs each."""
DEEPEST = 40
LARGEST = 20_000
"""Maximum parts of a value."""
QUOTED = 5_000
"""Characters that cost as much as a step, because error messages quote the value."""

SPECIAL = r"\\^$.|?*+()\[\]{}"
ITEM = rf"(?:[^{SPECIAL}]|\.|\\[dwsDWS{SPECIAL}/-]|\[\^?(?:[^\\\[\]]|\\[dwsDWS{SPECIAL}/-])+\])"
VARYING = r"(?:[?*+]|\{\d{1,2},\d{0,2}\})"
PLAIN = re.compile(rf"\^?(?:{ITEM}(?:\{{\d{{1,2}}\}})?)*(?:{ITEM}{VARYING}(?:{ITEM}(?:\{{\d{{1,2}}\}})?)*)?\$?")
"""A pattern of characters and character classes, of which at most one repeats a variable number of times."""
LONGEST_PATTERN = 200
MATCHED = 20_000
"""Squared characters of a text that cost as much as a step, an upper bound for a search with such a pattern."""


class _HeavyError(Exception):
    """The check may be slow, or its cost is unknown."""


def is_light(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether checking this value against this schema takes at most a few milliseconds.

    >>> is_light({"properties": {"day": {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}$"}}}, {"day": "2026-07"})
    True
    >>> is_light({"properties": {"a": {"pattern": "^(a+)+$"}}}, {"a": "aaaaaaaaaaaaaaaaaaaaaaaaaaaa!"})
    False
    """
    try:
        _Walk(schema, value).through(schema, value, 0)
    except _HeavyError:
        return False
    return True


class _Walk:
    def __init__(self, root: Mapping[str, Any], value: Any) -> None:
        self._root = root
        self._left = STEPS
        self._sizes: dict[int, int] = {}
        self._parts = 0
        self._measure(value, 0)

    def through(self, schema: Any, value: Any, depth: int) -> None:
        """Simulate checking a part of the value against a part of the schema."""
        self._spend(1 + self._size(value) // QUOTED)
        if not isinstance(schema, Mapping):
            return
        if depth > DEEPEST or "$id" in schema or "id" in schema:  # they change the meaning of references
            raise _HeavyError
        self._spend(len(schema) // 10)
        for keyword, said in schema.items():
            if keyword in HEAVY:
                raise _HeavyError
            if (walk := WALKS.get(keyword)) is not None:
                walk(self, schema, said, value, depth + 1)

    def _measure(self, value: Any, depth: int) -> int:
        """Approximate characters needed to quote a value; cached for objects and arrays."""
        self._parts += 1
        if self._parts > LARGEST or depth > DEEPEST:
            raise _HeavyError
        if isinstance(value, Mapping):
            size = sum(len(str(name)) + self._measure(each, depth + 1) for name, each in value.items())
        elif isinstance(value, list):
            size = sum(self._measure(each, depth + 1) for each in value)
        else:
            return self._size(value)
        self._sizes[id(value)] = size + 2
        return size + 2

    def _size(self, value: Any) -> int:
        return len(value) if isinstance(value, str) else self._sizes.get(id(value), 8)

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _HeavyError

    def _reference(self, _schema: Any, said: Any, value: Any, depth: int) -> None:
        if not isinstance(said, str) or not said.startswith("#") or "%" in said:
            raise _HeavyError
        found: Any = self._root
        for step in said.split("/")[1:]:
            found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
        if found is None or said[1:2] not in ("", "/"):
            raise _HeavyError
        self._spend(5)  # to resolve it
        self.through(found, value, depth)

    def _every(self, _schema: Any, said: Any, value: Any, depth: int) -> None:
        for each in said if isinstance(said, list) else (said,):
            self.through(each, value, depth)

    def _one_of(self, schema: Any, said: Any, value: Any, depth: int) -> None:
        """jsonschema checks every alternative twice, to see whether more than one matches."""
        self._every(schema, said, value, depth)
        self._every(schema, said, value, depth)

    def _properties(self, _schema: Any, said: Any, value: Any, depth: int) -> None:
        if isinstance(said, Mapping) and isinstance(value, Mapping):
            self._spend(len(said) // 10)
            for name in said.keys() & value.keys():
                self.through(said[name], value[name], depth)

    def _dependencies(self, _schema: Any, said: Any, value: Any, depth: int) -> None:
        if isinstance(said, Mapping) and isinstance(value, Mapping):
            self._spend(len(said) // 10)
            for name in said.keys() & value.keys():
                self.through(said[name], value, depth)

    def _others(self, schema: Any, said: Any, value: Any, depth: int) -> None:
        if isinstance(value, Mapping):
            self._spend(len(value) // 10)
            known = schema.get("properties")
            for name in value.keys() - (known.keys() if isinstance(known, Mapping) else ()):
                self.through(said, value[name], depth)

    def _names(self, _schema: Any, said: Any, value: Any, depth: int) -> None:
        for name in value if isinstance(value, Mapping) else ():
            self.through(said, name, depth)

    def _items(self, _schema: Any, said: Any, value: Any, depth: int) -> None:
        if not isinstance(value, list):
            return
        if isinstance(said, list):
            for each, item in zip(said, value, strict=False):
                self.through(each, item, depth)
        else:
            for item in value:
                self.through(said, item, depth)

    def _values(self, _schema: Any, said: Any, _value: Any, _depth: int) -> None:
        for each in said if isinstance(said, list) else (said,):
            if isinstance(each, list | Mapping):
                raise _HeavyError
        if isinstance(said, list):
            self._spend(len(said) // 20 + sum(map(self._size, said)) // QUOTED)

    def _pattern(self, _schema: Any, said: Any, value: Any, _depth: int) -> None:
        if not isinstance(said, str) or len(said) > LONGEST_PATTERN or not PLAIN.fullmatch(said):
            raise _HeavyError
        if isinstance(value, str):
            self._spend(len(said) * len(value) // MATCHED + len(value) ** 2 // MATCHED)

    def _unique(self, _schema: Any, _said: Any, value: Any, _depth: int) -> None:
        if isinstance(value, list):
            self._spend(len(value) ** 2 // 10)


Keyword = Callable[[_Walk, Any, Any, Any, int], None]

WALKS: Mapping[str, Keyword] = {
    "$ref": _Walk._reference,
    "additionalItems": _Walk._items,
    "additionalProperties": _Walk._others,
    "allOf": _Walk._every,
    "anyOf": _Walk._every,
    "const": _Walk._values,
    "contains": _Walk._items,
    "dependencies": _Walk._dependencies,
    "dependentSchemas": _Walk._dependencies,
    "else": _Walk._every,
    "enum": _Walk._values,
    "if": _Walk._every,
    "items": _Walk._items,
    "not": _Walk._every,
    "oneOf": _Walk._one_of,
    "pattern": _Walk._pattern,
    "prefixItems": _Walk._items,
    "properties": _Walk._properties,
    "propertyNames": _Walk._names,
    "required": _Walk._values,
    "then": _Walk._every,
    "type": _Walk._values,
    "uniqueItems": _Walk._unique,
}
"""Keywords that may be costly. Every keyword not here nor in `HEAVY` is a simple comparison or no constraint."""
HEAVY = frozenset(
    {
        *("$dynamicRef", "$recursiveRef", "patternProperties", "unevaluatedItems", "unevaluatedProperties"),
        *("disallow", "extends"),
    }
)
"""Keywords whose cost cannot be predicted."""
