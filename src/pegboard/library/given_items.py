"""Skills, agents, prompts and resources that the caller passes beside tools."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pegboard.board_items import BoardItem, ItemKind
from pegboard.errors import CatalogError
from pegboard.home_path import home_path
from pegboard.library.skill_folders import skills_in

FORMS: Mapping[ItemKind, str] = {
    "skill": "Give a folder of SKILL.md files, or a list of folders.",
    "agent": "Give A2A agent cards, as mappings or as paths of JSON files.",
    "prompt": "Give prompts as `prompts/list` of MCP has them.",
    "resource": "Give resources as `resources/list` of MCP has them.",
}


def given_items(
    skills: object = (), agents: object = (), prompts: object = (), resources: object = ()
) -> tuple[BoardItem, ...]:
    """All of them, by kind. Raises CatalogError for what cannot be read."""
    return (
        *(item for each in _each("skill", skills) for item in _skills(each)),
        *(_agent(_fields("agent", each)) for each in _each("agent", agents)),
        *(_prompt(_fields("prompt", each)) for each in _each("prompt", prompts)),
        *(_resource(_fields("resource", each)) for each in _each("resource", resources)),
    )


def _each(kind: ItemKind, given: object) -> Iterator[object]:
    """One, or those of a sequence."""
    if isinstance(given, str | Path | Mapping | BoardItem) or hasattr(given, "model_dump"):
        yield given
    elif isinstance(given, Iterable):
        yield from given
    else:
        raise _unreadable(kind, given)


def _skills(given: object) -> list[BoardItem]:
    if isinstance(given, str | Path):
        return skills_in(home_path(given))
    raise _unreadable("skill", given)


def _fields(kind: ItemKind, given: object) -> Mapping[str, Any]:
    """The fields of a mapping, of an SDK's object, or of an agent card's file; it has to have a name."""
    said: Any = given
    if hasattr(given, "model_dump"):
        said = given.model_dump(mode="json", by_alias=True, exclude_none=True)
    elif kind == "agent" and isinstance(given, str | Path):
        said = _from_file(home_path(given))
    if not isinstance(said, Mapping) or not isinstance(said.get("name"), str) or not said["name"]:
        raise _unreadable(kind, given)
    return said


def _from_file(path: Path) -> object:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise CatalogError(f"The agent card {str(path)!r} cannot be read: {error}.", remedy=FORMS["agent"]) from error


def _agent(card: Mapping[str, Any]) -> BoardItem:
    """An A2A agent card: its URL (0.3) or that of its first interface (1.0), and what it says of its skills."""
    interfaces = [each for each in card.get("supportedInterfaces") or () if isinstance(each, Mapping)]
    address = card.get("url") or next((each.get("url") for each in interfaces), None)
    skills = [each for each in card.get("skills") or () if isinstance(each, Mapping)]
    said = (_texts(each, "name", "description", "tags", "examples") for each in skills)
    return BoardItem(
        kind="agent",
        name=card["name"],
        description=str(card.get("description") or ""),
        address=str(address or ""),
        text="\n".join(said),
    )


def _prompt(prompt: Mapping[str, Any]) -> BoardItem:
    """A prompt of MCP; the names and descriptions of its arguments are searched too."""
    arguments = [each for each in prompt.get("arguments") or () if isinstance(each, Mapping)]
    text = "\n".join(_texts(each, "name", "description") for each in arguments)
    return BoardItem(kind="prompt", name=prompt["name"], description=_texts(prompt, "title", "description"), text=text)


def _resource(resource: Mapping[str, Any]) -> BoardItem:
    """A resource of MCP; the words of its URI are searched too."""
    address = str(resource.get("uri") or resource.get("uriTemplate") or "")
    description = _texts(resource, "title", "description")
    return BoardItem(kind="resource", name=resource["name"], description=description, address=address, text=address)


def _texts(said: Mapping[str, Any], *keys: str) -> str:
    """The texts of these fields, and of the lists among them."""
    values = (said.get(key) for key in keys)
    listed = (each for value in values for each in (value if isinstance(value, list | tuple) else [value]))
    return " ".join(each for each in listed if isinstance(each, str) and each)


def _unreadable(kind: ItemKind, given: object) -> CatalogError:
    why = " without a name" if isinstance(given, Mapping) else ""
    return CatalogError(f"One of the {kind}s was given as {type(given).__name__}{why}.", remedy=FORMS[kind])
