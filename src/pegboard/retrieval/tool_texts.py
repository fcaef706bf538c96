"""The texts of a tool that are matched against a query."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Literal

from pegboard.model import Server, Tool
from pegboard.retrieval.words import split_identifier

SENTENCE_END = re.compile(r"(?<=[.!?。])\s")
SENTENCE, DESCRIPTION, PARAMETERS, PARAMETER = 200, 600, 12, 80
"""Maximum characters of a sentence and a description, number of parameters, and characters of a parameter's text."""
SEPARATORS = re.compile(r"[-./:]+")

TextKind = Literal["summary", "definition"]


def summary(tool: Tool) -> str:
    """s_i of Tool Attention: name and a description of at most 60 tokens."""
    return tool.summary


def name_and_description(tool: Tool) -> str:
    """`"<name>: <description>"`, as the gateway article embeds a tool; the name alone without one (P16)."""
    return f"{tool.name}: {tool.description}" if tool.description else tool.name


def server_profile(server: Server) -> str:
    return f"{server.name}: {server.description or server.instructions}".rstrip(": ")


def short(tool: Tool) -> str:
    """Server, name and first sentence: what a tool is for. The encoder was tuned on this form."""
    sentence = SENTENCE_END.split(_flat(tool.description), maxsplit=1)[0][:SENTENCE]
    names = " ".join(_spaced(name) for name in (tool.server, tool.name, *tool.aliases))
    return f"{names}: {sentence}".removesuffix(": ")


def full(tool: Tool) -> str:
    """Server, name, description and parameters: how a tool does it."""
    return f"{tool.server} {_spaced(tool.name)}: {_flat(tool.description)[:DESCRIPTION]} {_parameters(tool)}".strip(
        ": "
    )


def _parameters(tool: Tool) -> str:
    properties = (tool.input_schema or {}).get("properties")
    if not isinstance(properties, Mapping):
        return ""
    return "; ".join(_parameter(str(name), schema) for name, schema in islice(properties.items(), PARAMETERS))


def _parameter(name: str, schema: object) -> str:
    description = schema.get("description") if isinstance(schema, Mapping) else None
    return f"{split_identifier(name)} {description[:PARAMETER] if isinstance(description, str) else ''}".strip()


def _flat(text: str) -> str:
    return " ".join(text.split())


def _spaced(identifier: str) -> str:
    """
    >>> _spaced("git-server.createIssue")
    'git server create Issue'
    """
    return split_identifier(SEPARATORS.sub(" ", identifier))


TEXTS: Mapping[TextKind, Callable[[Tool], str]] = {"summary": summary, "definition": name_and_description}


def fields(tool: Tool, server: Server | None) -> dict[str, str]:
    """The fields of BM25F."""
    return {
        "name": " ".join((tool.name, tool.title or "", *tool.aliases)),
        "description": tool.description,
        "parameters": " ".join(parameter_words(tool)),
        "server": " ".join((tool.server, tool.category or "", server.description if server else "")),
    }


def parameter_words(tool: Tool) -> Iterable[str]:
    """Parameter names, their descriptions and enum values, one level deep."""
    properties = (tool.input_schema or {}).get("properties")
    if not isinstance(properties, Mapping):
        return
    for name, schema in properties.items():
        yield split_identifier(str(name))
        if isinstance(schema, Mapping):
            yield from _described(schema)


def _described(schema: Mapping[str, Any]) -> Iterable[str]:
    if isinstance(schema.get("description"), str):
        yield schema["description"]
    if isinstance(schema.get("enum"), list):
        yield " ".join(str(value) for value in schema["enum"])
