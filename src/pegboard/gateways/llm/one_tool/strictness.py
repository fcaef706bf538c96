"""Tools that cannot be called through another one."""

from __future__ import annotations

from pegboard.gateways.llm.codec import Request
from pegboard.gateways.llm.reading import object_of, read, text_of

WORDS = (b'"strict"', b'"custom"', b'"allowed_callers"')


def unfit(request: Request) -> str:
    """Why; empty where all can. What the provider enforces of a definition, it enforces only where it has it."""
    for tool in request.tools:
        if tool.stays or not any(word in tool.definition for word in WORDS):
            continue
        said = object_of(read(request.text[slice(*tool.span)]))
        if said.get("strict") is True or object_of(said.get("function")).get("strict") is True:
            return f"{tool.name!r} is strict"
        if text_of(said.get("type")) == "custom" and "input_schema" not in said:
            return f"{tool.name!r} takes free text"
        if said.get("allowed_callers"):
            return f"{tool.name!r} is called by other tools"
    return ""
