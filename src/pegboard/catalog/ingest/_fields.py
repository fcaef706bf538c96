"""Reads fields of untrusted JSON, with errors that name the tool and the field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.errors import CatalogError
from pegboard.model import JsonObject

NAME_REMEDY = "Every tool needs a non-empty string as its name."


def mapping(value: object, where: str) -> JsonObject:
    if not isinstance(value, Mapping):
        raise CatalogError(f"{where} is {type(value).__name__}, not a JSON object.", remedy="Check the file's format.")
    return value


def optional_mapping(value: object, where: str) -> JsonObject | None:
    return None if value is None else mapping(value, where)


def sequence(value: object, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise CatalogError(f"{where} is {type(value).__name__}, not a JSON array.", remedy="Check the file's format.")
    return value


def tool_name(definition: JsonObject, where: str) -> str:
    name = definition.get("name")
    if not isinstance(name, str) or not name:
        raise CatalogError(f"{where} has the name {name!r}.", remedy=NAME_REMEDY)
    return name


def text(value: object) -> str:
    """The value if it is a string, else empty: servers do send null and numbers."""
    return value if isinstance(value, str) else ""
