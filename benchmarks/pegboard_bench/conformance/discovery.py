"""Whether a server keeps to progressive discovery: groups, filters on `tools/list`, and digests.

    python -m pegboard_bench.conformance.discovery URL
    python -m pegboard_bench.conformance.discovery -- COMMAND [ARGUMENT ...]

It reads lists only and calls no tool. It ends with 1 if a check fails, and with 2 if no server answers.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.extension import advertise
from mcp.client.stdio import stdio_client
from pydantic import TypeAdapter

from pegboard.gateways.mcp.embedded.progressive_discovery import DIGEST, EXTENSION, digest, digest_of
from pegboard.upstreams.extension_requests import ExtensionRequest

ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
MOST_PAGES = 1000
NOWHERE = "pegboard-conformance-no-such-group"
Result = dict[str, Any]


async def asked(client: Client, method: str, **params: Any) -> Result:
    request: Any = ExtensionRequest(method=method, params=params)
    return await client.session.send_request(request, ANY)  # type: ignore[type-var]


async def listed(client: Client, **wanted: Any) -> list[Result]:
    """All pages of a filtered list."""
    tools: list[Result] = []
    more: Result = {}
    for _ in range(MOST_PAGES):
        page = await asked(client, "tools/list", filter=wanted, **more)
        tools += page["tools"]
        if page.get("nextCursor") is None:
            return tools
        more = {"cursor": page["nextCursor"]}
    raise AssertionError(f"the list has more than {MOST_PAGES} pages")


async def every_tool(client: Client) -> list[Result]:
    tools = await listed(client)
    require(bool(tools), "no tool is listed with an empty filter")
    return tools


def require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)


async def refuses(client: Client, method: str, **params: Any) -> None:
    try:
        await asked(client, method, **params)
    except MCPError as error:
        require(error.error.code == types.INVALID_PARAMS, f"error {error.error.code} instead of -32602")
        return
    raise AssertionError(f"{method} answered {params}")


async def declares_the_extension(client: Client) -> None:
    declared = (client.server_capabilities.extensions or {}).get(EXTENSION) or {}
    require(declared.get("groups") is True, "groups is not declared as true")
    require(declared.get("digests") == "sha256", "digests is not declared as sha256")
    require(bool(declared.get("filters")), "no filters are declared")


async def lists_groups(client: Client) -> None:
    groups = (await asked(client, "groups/list"))["groups"]
    require(bool(groups), "there are no groups")
    for each in groups:
        require(bool(each["description"]), f"group {each['name']} has no description")
    names = [each["name"] for each in groups]
    require(len(set(names)) == len(names), "two groups have one name")


async def gets_each_group_as_listed(client: Client) -> None:
    for each in (await asked(client, "groups/list"))["groups"]:
        tools = (await asked(client, "groups/get", name=each["name"]))["tools"]
        require(len(tools) == each["tools"], f"group {each['name']} has {len(tools)} tools, not {each['tools']}")
        require(digest_of(map(digest, tools)) == each["digest"], f"the digest of group {each['name']} is another")


async def has_the_digest_of_each_definition(client: Client) -> None:
    tools = await every_tool(client)
    for tool in tools:
        require(tool["_meta"].get(DIGEST) == digest(tool), f"the digest of {tool['name']} is another")


async def filters_by_name(client: Client) -> None:
    tools = await every_tool(client)
    name = tools[0]["name"]
    require([each["name"] for each in await listed(client, namePatterns=[name])] == [name], f"not {name} alone")
    every = [each["name"] for each in await listed(client, namePatterns=["*"])]
    require(every == [each["name"] for each in tools], "the pattern * does not list every tool")


async def filters_by_group(client: Client) -> None:
    for each in (await asked(client, "groups/list"))["groups"]:
        whole = {tool["name"] for tool in (await asked(client, "groups/get", name=each["name"]))["tools"]}
        found = {tool["name"] for tool in await listed(client, groups=[each["name"]])}
        require(found == whole, f"the filter and groups/get differ for {each['name']}")
    require(await listed(client, groups=[NOWHERE]) == [], "a group that does not exist has tools")


async def leaves_out_what_is_known(client: Client) -> None:
    known = [tool["_meta"][DIGEST] for tool in await every_tool(client)]
    require(await listed(client, known=known) == [], "known definitions are listed")


async def ranks_and_limits(client: Client) -> None:
    name = (await every_tool(client))[0]["name"]
    found = [each["name"] for each in await listed(client, query=name, limit=1)]
    require(found == [name], f"the query {name} with limit 1 lists {found}")


async def refuses_what_does_not_exist(client: Client) -> None:
    await refuses(client, "groups/get", name=NOWHERE)
    await refuses(client, "tools/list", filter={"pegboardNoSuchField": 1})
    await refuses(client, "tools/list", filter={"limit": 0})


CHECKS: Sequence[Callable[[Client], Awaitable[None]]] = (
    declares_the_extension,
    lists_groups,
    gets_each_group_as_listed,
    has_the_digest_of_each_definition,
    filters_by_name,
    filters_by_group,
    leaves_out_what_is_known,
    ranks_and_limits,
    refuses_what_does_not_exist,
)


async def failures(client: Client) -> Mapping[str, str]:
    """What is wrong, by check; an empty text for a check that passes."""
    said: dict[str, str] = {}
    for check in CHECKS:
        try:
            await check(client)
            said[check.__name__] = ""
        except (AssertionError, MCPError) as error:
            said[check.__name__] = str(error) or type(error).__name__
        except (KeyError, TypeError, AttributeError) as error:
            said[check.__name__] = f"the answer has another shape: {type(error).__name__} {error}"
    return said


@asynccontextmanager
async def connected(words: Sequence[str], mode: str) -> AsyncIterator[Client]:
    """A client that declares the extension, of an address or a command."""
    remote = words[0].startswith(("http://", "https://"))
    server: Any = words[0]
    if not remote:
        server = stdio_client(StdioServerParameters(command=words[0], args=list(words[1:])))
    async with Client(server, mode=mode, cache=None, extensions=[advertise(EXTENSION, {})]) as client:
        yield client


async def _checked(words: Sequence[str]) -> bool:
    async with connected(words, "auto") as client:
        found = await failures(client)
    for name, why in found.items():
        sys.stdout.write(f"{'FAILED' if why else 'passed'}  {name.replace('_', ' ')}{f': {why}' if why else ''}\n")
    return not any(found.values())


def main() -> None:
    words = (
        [each for each in sys.argv[1:] if each != "--"]
        if "--" not in sys.argv
        else sys.argv[sys.argv.index("--") + 1 :]
    )
    if not words or words[0] in ("-h", "--help"):
        sys.stderr.write(f"{__doc__}\n")
        raise SystemExit(0 if words else 2)
    try:
        passed = asyncio.run(_checked(words))
    except Exception as error:  # noqa: BLE001 - whatever keeps a server from answering at all
        sys.stderr.write(f"{' '.join(words)} cannot be checked: {_cause(error)}\n")
        raise SystemExit(2) from None
    raise SystemExit(0 if passed else 1)


def _cause(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main()
