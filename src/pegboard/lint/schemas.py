"""Rules on input schemas."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.lint.findings import Finding, Limits, Subject, listed
from pegboard.model import JsonObject

SHARE = 0.5
"""Share of the parameters without a description from which on that is a finding."""
FEWEST = 2


def long_schema(subject: Subject, limits: Limits) -> Finding | None:
    beyond = subject.schema - limits.schema
    if beyond <= 0:
        return None
    says = f"Its schema takes {subject.schema:,} tokens, {beyond:,} beyond {limits.schema:,}."
    remedy = "Split the tool, flatten what is nested, and shorten long lists of values."
    return subject.finding("long-schema", says, remedy, spare=beyond)


def undescribed_parameters(subject: Subject, limits: Limits) -> Finding | None:
    """Most parameters have no description, nor does the tool's own description mention them."""
    properties = _properties(subject.tool.input_schema)
    bare = [name for name, schema in properties.items() if not _described(schema)]
    unknown = [name for name in bare if name.casefold() not in subject.tool.description.casefold()]
    if len(unknown) < FEWEST or len(unknown) <= SHARE * len(properties):
        return None
    says = f"{len(unknown)} of {len(properties)} parameters have no description: {listed(unknown)}."
    return subject.finding("undescribed-parameters", says, "Say of each what it means, its unit and its format.")


def _properties(schema: JsonObject | None) -> Mapping[str, object]:
    properties = (schema or {}).get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _described(schema: object) -> bool:
    """By a description, a title that is not only the name, or values to choose from."""
    return isinstance(schema, Mapping) and any(schema.get(key) for key in ("description", "enum", "const", "$ref"))
