"""Skills of all servers (SEP-2640): listed, and loaded with their digests checked."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types
from mcp import MCPError

from pegboard.gateways.mcp.resources.resources import ServerResources, Visible
from pegboard.model import JsonObject
from pegboard.upstreams import Upstream
from pegboard.upstreams.extension_requests import SKILLS, ExtensionRequest, extensions_of

MANIFEST = "/SKILL.md"
MOST_BODIES = 500
MOST_CHARACTERS = 50_000

Result = dict[str, Any]


class SkillLibrary:
    """The skills among ``resources``.

    A skill's files are read when somebody asks for them and not before: hosts must not fetch ahead of need (SEP-2640).
    A body is searched from then on; until then a search knows what the listing says.
    """

    def __init__(self, resources: ServerResources) -> None:
        self._resources = resources
        self._bodies: OrderedDict[str, str] = OrderedDict()
        resources.on_read = self._read

    async def entry(self, params: JsonObject, visible: Visible) -> Result:
        """The answer to `skills/get`. Raises MCPError for an unknown skill, and as its server does."""
        return await self._asked("skills/get", params, visible, {})

    async def directory(self, params: JsonObject, visible: Visible) -> Result:
        """The answer to `resources/directory/read`. Raises MCPError."""
        return await self._asked("resources/directory/read", params, visible, {"directoryRead": True})

    async def loaded(self, uri: str, visible: Visible) -> Result | None:
        """The skill with its text, for a model; None where no listed skill has this address.

        Raises MCPError for content that is not what the listing says (SEP-2640, verification).
        """
        skills = await self._resources.listed("skills", visible) if "://" in uri else []
        entry = next((each for each in skills if each["uri"] == uri), None)
        if entry is None:
            return None
        read = await self._resources.read(types.ReadResourceRequestParams(uri=uri), visible)
        text = next((each["text"] for each in read.get("contents") or () if isinstance(each.get("text"), str)), None)
        if text is None or (why := unverified(entry, uri, text)):
            raise MCPError(types.INTERNAL_ERROR, f"The skill {uri} is not used: {why if text else 'it has no text'}.")
        others = [each["uri"] for each in _files(entry) if each.get("uri") != uri]
        return {"uri": uri, "text": text} | ({"files": others} if others else {})

    def _read(self, uri: str, result: Result) -> None:
        """A resource has been read; of a skill, searches know the text from now on."""
        if uri.endswith(MANIFEST):
            texts = (each.get("text") for each in result.get("contents") or ())
            self._bodies[uri] = "".join(text for text in texts if isinstance(text, str))[:MOST_CHARACTERS]
            while len(self._bodies) > MOST_BODIES:
                self._bodies.popitem(last=False)

    def document(self, skill: JsonObject) -> dict[str, str]:
        """What a search reads of a skill: its name, description and body, as far as they are known."""
        said = skill.get("frontmatter") or {}
        uri = str(skill["uri"])
        name, description = str(said.get("name") or uri), str(said.get("description") or "")
        return {"name": name, "description": description, "body": self._bodies.get(uri, "")}

    async def _asked(self, method: str, params: JsonObject, visible: Visible, settings: JsonObject) -> Result:
        """The answer of the first server with these settings that does not refuse."""
        there = [each for each in self._resources.servers(visible) if _serves(each, settings)]
        if not there:
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", method)
        uri = params.get("uri")
        request = ExtensionRequest(method=method, params=dict(params))
        return dict(await self._resources.first(str(uri), lambda each: each.request(request), visible, there))


def unverified(entry: JsonObject, uri: str, text: str) -> str:
    """Why a file must not be used, by what the skill's entry says of it; empty for one that may be used.

    >>> unverified({"resources": [{"uri": "u", "size": 2, "digest": "sha256:0"}]}, "u", "abc")
    'it has 3 bytes, and its entry says 2'
    """
    data = text.encode("utf-8", "surrogatepass")
    for file in _files(entry):
        if file.get("uri") != uri:
            continue
        if file.get("size") != len(data):
            return f"it has {len(data)} bytes, and its entry says {file.get('size')}"
        if file.get("digest") != f"sha256:{hashlib.sha256(data).hexdigest()}":
            return "its digest is not the one of its entry"
    said = entry.get("frontmatter") or {}
    for key, value in _plain_frontmatter(text).items():
        if key in said and isinstance(said[key], str) and said[key] != value:
            return f"its frontmatter has another {key} than its entry"
    return ""


def _plain_frontmatter(text: str) -> dict[str, str]:
    """The lines `key: value` of the frontmatter whose values are plain words: quoted and nested ones are left out."""
    head, fence, _ = text.removeprefix("\ufeff").removeprefix("---\n").partition("\n---")
    lines = [line.partition(": ") for line in head.splitlines()] if fence else []
    return {key: value.strip() for key, colon, value in lines if colon and key.isidentifier() and value[:1].isalnum()}


def _files(entry: JsonObject) -> Sequence[JsonObject]:
    listed = entry.get("resources")
    return [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []


def _serves(upstream: Upstream, settings: JsonObject) -> bool:
    declared = extensions_of(upstream.capabilities).get(SKILLS)
    return declared is not None and all((declared or {}).get(key) == value for key, value in settings.items())
