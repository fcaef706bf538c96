"""Operations of an OpenAPI document as tools: name, text and a schema of the parameters."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

METHODS = ("get", "put", "post", "delete", "patch")
TEXT_CHARACTERS = 400
"""Of a parameter's description: Kubernetes has essays there."""


def operations(
    document: Mapping[str, Any], *, keys: Collection[str], bodies: bool
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Name, description and input schema of every operation that has a name, in the order of the document.

    ``keys`` are those of a parameter's schema that are taken over; with ``bodies``, properties of JSON bodies are
    parameters too.
    """
    for path in document["paths"].values():
        for method, operation in path.items():
            if method in METHODS and "operationId" in operation:
                parameters = [*path.get("parameters", ()), *operation.get("parameters", ())]
                body = _body(operation) if bodies else {}
                yield operation["operationId"], _text(operation), _schema(parameters, body, keys)


def _text(operation: Mapping[str, Any]) -> str:
    """The summary as a sentence, then the description."""
    parts = operation.get("summary", "").strip().rstrip("."), operation.get("description", "").strip()
    return ". ".join(part for part in parts if part)


def _schema(parameters: list[Mapping[str, Any]], body: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    properties = {}
    required = []
    for each in parameters:
        properties[each["name"]] = _property(each.get("schema") or {}, each.get("description"), keys)
        if each.get("required"):
            required.append(each["name"])
    for name, schema in body.get("properties", {}).items():
        properties[name] = _property(schema, schema.get("description"), keys)
    return {"type": "object", "properties": properties, "required": required + list(body.get("required", ()))}


def _property(schema: Mapping[str, Any], text: str | None, keys: Collection[str]) -> dict[str, Any]:
    found = {key: schema[key] for key in keys if key in schema}
    if text:
        found["description"] = text[:TEXT_CHARACTERS]
    return found


def _body(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    schema: Mapping[str, Any] = content.get("application/json", {}).get("schema", {})
    return schema
