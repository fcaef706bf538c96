"""Skills, prompts and resources, found by the same search as tools, and read for a model that can only call tools."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from threading import Lock
from typing import Any

import mcp_types as types

from pegboard.board_items import ItemKind
from pegboard.gateways.mcp.resources.resource_listing import KINDS, Kind
from pegboard.gateways.mcp.resources.resources import ServerResources, Visible, everything
from pegboard.gateways.mcp.resources.skills import SkillLibrary
from pegboard.library.item_search import MOST, HowToRead, ItemSearch, shown_items
from pegboard.model import JsonObject
from pegboard.retrieval.document_index import DocumentIndex, Documents

Result = dict[str, Any]

MOST_FOUND = MOST
"""Of each kind, beside tools, unless the configuration says otherwise."""
MOST_SEARCHED = 2_000
"""Documents of each kind; a board with more of them is searched by these."""
MOST_INDEXES = 8
"""Indexes of each kind: callers with different rights search different documents."""
MOST_CHARACTERS = 50_000
"""Of a resource that is read for a model."""
PARTS: Mapping[Kind, str] = {
    "skills": "read_skill",
    "prompts": "read_prompt",
    "resources": "read_resource",
    "resourceTemplates": "read_resource",
}
"""The part of an answer that says how to read what was found."""
ITEMS: Mapping[Kind, ItemKind] = {
    "skills": "skill",
    "prompts": "prompt",
    "resources": "resource",
    "resourceTemplates": "resource",
}
"""The kinds of lists to those by which a configuration limits them."""
OF_THE_USER = "It needs arguments: its user starts it in the client (prompts/get)."


class BuiltIndex:
    """An index of documents that its first search builds, in any thread."""

    def __init__(self, documents: Documents) -> None:
        self.documents = documents
        self._index: DocumentIndex | None = None
        self._building = Lock()

    def best(self, query: str) -> list[int]:
        """Places of the documents that match, best first."""
        with self._building:
            if self._index is None:
                self._index = DocumentIndex(self.documents)
        return [place for place, _ in self._index.best(query)]


class ContentSearch:
    """What servers offer besides tools. Searches know the lists of running servers, and start none."""

    def __init__(self, resources: ServerResources, skills: SkillLibrary, own: ItemSearch | None = None) -> None:
        self._resources = resources
        self._skills = skills
        self.own = own or ItemSearch(())
        self._indexes: dict[Kind, deque[BuiltIndex]] = {}

    async def found(
        self,
        query: str,
        how: HowToRead,
        visible: Visible = everything,
        *,
        kind: ItemKind | None = None,
        most: int | None = None,
        place: AbstractAsyncContextManager[None] | None = None,
    ) -> Result:
        """By list, or of the lists of one ``kind``, what matches a query, best first, at most ``most`` of each, by
        default as configured; and how to read the first. It is computed off the event loop, within ``place``."""
        found: Result = {}
        kinds = [each for each, of in ITEMS.items() if kind in (None, of)]
        lists = await asyncio.gather(*(self._resources.listed(kind, visible, running=True) for kind in kinds))
        searched = [every[:MOST_SEARCHED] for every in lists]
        documented = [
            [self._document(each, item) for item in items] for each, items in zip(kinds, searched, strict=True)
        ]
        async with place if place is not None and any(searched) else nullcontext():
            ranked = [await self._best(*of, query) for of in zip(kinds, documented, strict=True)]
        for each, items, documents, best_first in zip(kinds, searched, documented, ranked, strict=True):
            likely = best_first[: self.own.most_of(ITEMS[each]) if most is None else most]
            shown = [_entry(each, items[at], documents[at]) for at in likely]
            fitting = self.own.fitting(ITEMS[each], shown)
            if best := [likely[place] for place in fitting]:
                found[each] = [shown[place] for place in fitting]
                if each != "resourceTemplates":
                    found[PARTS[each]] = how(items[best[0]][KINDS[each].identity])
        return found

    def configured(self, query: str, kinds: Collection[ItemKind], how: HowToRead) -> Result:
        """Skills and agents of the configuration that match a query, best first, and how to read the first skill."""
        return shown_items(self.own.found(query, kinds), how)

    async def loaded(self, name: str, visible: Visible = everything) -> tuple[str, JsonObject] | None:
        """The kind and content of a skill, a resource or a prompt; None where nothing of this name is listed.

        Raises MCPError as its server does, and for a skill that is not what its listing says.
        """
        if (own := self.own.skill_at(name)) is not None:
            return "skills", {"uri": name, "name": own.name, "text": own.text}
        if "://" in name:
            skill = await self._skills.loaded(name, visible)
            if skill is not None:
                return "skills", skill
            if not await self._resources.lists(name, visible):
                return None
            read = await self._resources.read(types.ReadResourceRequestParams(uri=name), visible)
            return "resources", {"uri": name, "contents": [_readable(each) for each in read.get("contents") or ()]}
        prompts = await self._resources.listed("prompts", visible)
        prompt = next((each for each in prompts if each["name"] == name), None)
        if prompt is None:
            return None
        if any(each.get("required") for each in prompt.get("arguments") or ()):
            return "prompts", {**prompt, "how": OF_THE_USER}
        got = await self._resources.prompt(types.GetPromptRequestParams(name=name), visible)
        return "prompts", {"name": name, "messages": got.get("messages", [])}

    async def _best(self, kind: Kind, documents: Documents, query: str) -> list[int]:
        """Places of the documents that match, best first."""
        if not documents:
            return []
        kept = self._indexes.setdefault(kind, deque(maxlen=MOST_INDEXES))
        index = next((each for each in kept if each.documents == documents), None)
        if index is None:
            index = BuiltIndex(documents)
        else:
            kept.remove(index)
        kept.append(index)  # the one that was not used for longest leaves
        return await asyncio.to_thread(index.best, query)

    def _document(self, kind: Kind, item: JsonObject) -> dict[str, str]:
        if kind == "skills":
            return self._skills.document(item)
        said = (item.get("title"), item.get("description"))
        address = str(item.get("uri") or item.get("uriTemplate") or "")
        name = str(item.get("name") or address)
        return {"name": name, "description": " ".join(str(each) for each in said if each), "body": address}


def _entry(kind: Kind, item: JsonObject, document: Mapping[str, str]) -> Result:
    """An item as a search shows it; an optional argument of a prompt ends in a question mark."""
    identity = KINDS[kind].identity
    shown = {key: document[key] for key in ("name", "description") if document[key]} | {identity: item[identity]}
    arguments = [each for each in item.get("arguments") or () if isinstance(each, Mapping)]
    named = [f"{each.get('name')}{'' if each.get('required') else '?'}" for each in arguments]
    return shown | ({"arguments": named} if named else {})


def _readable(part: JsonObject) -> Result:
    """A part of a resource for a model: long texts are cut, and bytes are left with the client."""
    kept = {key: part[key] for key in ("uri", "mimeType") if key in part}
    if not isinstance(part.get("text"), str):
        return kept | {"omitted": "binary content; the client reads it with resources/read"}
    text = part["text"]
    cut = {"cut": f"{len(text):,} characters; the client reads all with resources/read"}
    return kept | {"text": text[:MOST_CHARACTERS]} | (cut if len(text) > MOST_CHARACTERS else {})
