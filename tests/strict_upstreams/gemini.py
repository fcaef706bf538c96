"""`generateContent`: function calling, its modes, and cached content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from strict_upstreams.checks import badly_named, listed, repeated, unfit_schema

NAME = r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"
LISTED_MODES = ("ANY", "VALIDATED")


def problems(body: Mapping[str, Any]) -> list[str]:
    return list(_problems(_camel(body)))


def _camel(value: Any) -> Any:
    """With every key in camel case: both are taken."""
    if isinstance(value, list):
        return [_camel(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {_spelled(key): each if key in ("args", "response") else _camel(each) for key, each in value.items()}


def _spelled(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _problems(body: Mapping[str, Any]) -> Iterator[str]:
    _, wrong = listed(body, "contents")
    yield from wrong if "contents" in body else ["contents is missing"]
    tools, wrong = listed(body, "tools")
    yield from wrong
    declared: list[Mapping[str, Any]] = []
    for tool in tools:
        if not tool:
            yield "tools: an entry is empty"
        declarations, wrong = listed(tool, "functionDeclarations")
        yield from wrong
        declared += declarations
    yield from badly_named([each.get("name") for each in declared], NAME)
    yield from repeated(str(each.get("name")) for each in declared)
    for each in declared:
        yield from unfit_schema(str(each.get("name")), each.get("parameters"), required=False)
    yield from _config(body, {str(each.get("name")) for each in declared})
    if "cachedContent" in body and {"tools", "toolConfig", "systemInstruction"} & body.keys():
        yield "cachedContent cannot be used with tools, toolConfig or systemInstruction"


def _config(body: Mapping[str, Any], names: set[str]) -> Iterator[str]:
    if "toolConfig" not in body:
        return
    if not body["toolConfig"]:
        yield "toolConfig is empty"
    config = body["toolConfig"].get("functionCallingConfig")
    if config is None:
        return
    if not names:
        yield "function calling config is set without function_declarations"
    allowed = config.get("allowedFunctionNames")
    if allowed is not None and config.get("mode") not in LISTED_MODES:
        yield f"allowedFunctionNames is set in mode {config.get('mode')!r}"
    if allowed is not None and not allowed:
        yield "allowedFunctionNames is empty"
    for name in allowed or ():
        if name not in names:
            yield f"allowedFunctionNames: {name!r} is not declared"
