"""Skills of the server that the test suite checks (SEP-2640): listed with digests, and read as resources."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server

from pegboard_bench.conformance.tasks import Params
from pegboard_bench.conformance.tools import Context, Result

SKILLS = "io.modelcontextprotocol/skills"
CACHED: Result = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private"}
PER_PAGE = 1


def skill(name: str, description: str, body: str, **files: str) -> Mapping[str, str]:
    """The files of a skill by their addresses."""
    manifest = f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n"
    others = {f"skill://{name}/{path.replace('__', '/')}.md": said for path, said in files.items()}
    return {f"skill://{name}/SKILL.md": manifest} | others


REFUNDS = skill(
    "refund-handling",
    "Give a customer the money back",
    "Look up the charge, check that it is younger than 90 days, and refund it in full.",
    references__policy="Nothing older than 90 days is refunded.",
)
RELEASES = skill("release-notes", "Write the notes of a release", "Collect what was merged since the last tag.")
FILES: Mapping[str, str] = {**REFUNDS, **RELEASES}
ENTRIES: list[Result] = [
    {
        "uri": f"skill://{name}/SKILL.md",
        "frontmatter": {"name": name, "description": description},
        "resources": [
            {
                "uri": uri,
                "digest": f"sha256:{hashlib.sha256(said.encode()).hexdigest()}",
                "size": len(said.encode()),
            }
            for uri, said in files.items()
        ],
    }
    for name, description, files in (
        ("refund-handling", "Give a customer the money back", REFUNDS),
        ("release-notes", "Write the notes of a release", RELEASES),
    )
]
FOLDER = "inode/directory"


def resource(uri: str) -> Result:
    """The file as `resources/list` describes it."""
    for entry in ENTRIES:
        if entry["uri"] == uri:
            return {"uri": uri, "mimeType": "text/markdown", **entry["frontmatter"]}
    return {"uri": uri, "name": uri.rpartition("/")[2], "mimeType": "text/markdown"}


def join(server: Server[Any]) -> None:
    server.extensions[SKILLS] = {"directoryRead": True}
    server.add_request_handler("skills/list", Params, _list)
    server.add_request_handler("skills/get", Params, _get)
    server.add_request_handler("resources/directory/read", Params, _directory)


async def _list(ctx: Context, _params: Params) -> Result:
    start = int((ctx.params or {}).get("cursor") or 0)
    end = start + PER_PAGE
    more = {"nextCursor": str(end)} if end < len(ENTRIES) else {}
    return CACHED | {"skills": ENTRIES[start:end]} | more


async def _get(ctx: Context, _params: Params) -> Result:
    uri = (ctx.params or {}).get("uri")
    for entry in ENTRIES:
        if entry["uri"] == uri:
            return CACHED | {"skill": entry}
    raise MCPError(types.INVALID_PARAMS, "Skill not found", {"uri": uri})


async def _directory(ctx: Context, _params: Params) -> Result:
    uri = str((ctx.params or {}).get("uri"))
    inside = [each.removeprefix(f"{uri}/") for each in FILES if each.startswith(f"{uri}/")]
    if not inside:
        raise MCPError(types.INVALID_PARAMS, "Not a directory", {"uri": uri})
    children: dict[str, Result] = {}
    for path in inside:
        name, slash, _ = path.partition("/")
        at = f"{uri}/{name}"
        children[at] = {"uri": at, "name": name, "mimeType": FOLDER} if slash else resource(at)
    return CACHED | {"resources": list(children.values())}
