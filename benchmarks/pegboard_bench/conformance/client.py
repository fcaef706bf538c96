"""A client that does what the client half of the test suite wants to see: by itself, or with the gateway between.

    python -m pegboard_bench.conformance.client direct|gateway ADDRESS

The suite starts it with the address of its server, and says in the environment which revision it is to speak.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client, MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter

from pegboard import Settings
from pegboard.compose import default_parts
from pegboard.gateways.mcp import open_gateway
from pegboard.gateways.mcp.transport.gateway_server import wire
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams.extension_requests import ExtensionRequest
from pegboard_bench.conformance import sign_in

SIDES = ("direct", "gateway")
PATIENCE = 20.0
ANY: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
EXAMPLES: Mapping[str, Any] = {"number": 5, "integer": 5, "string": "word", "boolean": True, "array": [], "object": {}}
"""An argument of each type."""


@asynccontextmanager
async def client(side: str, address: str, mode: str) -> AsyncIterator[Client]:
    """The client, connected to the suite's server or to a gateway before it."""
    told: dict[str, Any] = {
        "mode": mode,
        "cache": None,
        "elicitation_callback": accept_defaults,
        "sampling_callback": sample,
        "list_roots_callback": roots,
    }
    signs_in = sign_in.scenario().startswith("auth/")
    if side == "direct":
        async with sign_in.sdk_client(address, told) if signs_in else Client(address, **told) as direct:
            yield direct
        return
    with tempfile.TemporaryDirectory(prefix="pegboard-client-") as folder:
        os.environ["XDG_CONFIG_HOME"] = folder  # of the key that encrypts tokens
        spec = ServerSpec(name="suite", url=address, oauth=await sign_in.oauth_settings(address) if signs_in else None)
        options: dict[str, Any] = {"cache_dir": Path(folder), "state_dir": Path(folder), "start_wait": PATIENCE}
        options |= {"credentials": "file", "exposure": "eager", "profile": "keyword"}
        settings = Settings(servers={"suite": spec}, **options)
        if signs_in:
            await sign_in.sign_in(settings, spec)
        async with open_gateway(settings, default_parts(settings)) as gateway, Client(wire(gateway), **told) as through:
            yield through


async def accept_defaults(_ctx: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    """What a user who changes nothing sends: the defaults of the form (SEP-1034). A page is opened, and agreed to."""
    if isinstance(params, types.ElicitRequestURLParams):
        await sign_in.browse(params.url)
        return types.ElicitResult(action="accept")
    schema = getattr(params, "requested_schema", None) or {}
    fields = schema.get("properties") or {}
    content = {name: field.get("default", _example(field)) for name, field in fields.items()}
    return types.ElicitResult(action="accept", content=content)


async def sample(_ctx: Any, _params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
    text = types.TextContent(type="text", text="A sampled answer")
    return types.CreateMessageResult(role="assistant", content=text, model="none")


async def roots(_ctx: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[])


async def exercise(of: Client) -> None:
    """List everything, call every tool, and read the first of whatever else there is."""
    listed = (await of.list_tools()).tools
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    wanted = context.get("toolCalls") or [{"name": tool.name, "arguments": _arguments(tool, listed)} for tool in listed]
    for call in wanted:
        await _tried(lambda call=call: of.call_tool(call["name"], call["arguments"]))  # type: ignore[misc]
    capabilities = of.server_capabilities
    if capabilities is None:
        return
    if capabilities.resources is not None:
        resources = await _tried(of.list_resources)
        for resource in (resources.resources if resources else [])[:1]:
            await _tried(lambda resource=resource: of.read_resource(str(resource.uri)))  # type: ignore[misc]
    if capabilities.prompts is not None:
        prompts = await _tried(of.list_prompts)
        for prompt in (prompts.prompts if prompts else [])[:1]:
            given = {each.name: "word" for each in prompt.arguments or ()}
            await _tried(lambda prompt=prompt, given=given: of.get_prompt(prompt.name, given))  # type: ignore[misc]
    if "io.modelcontextprotocol/skills" in (capabilities.extensions or {}):
        await _load_skills(of)


async def _load_skills(of: Client) -> None:
    """List the skills, and load each as a model does behind the gateway. The SDK by itself loads none."""
    request: Any = ExtensionRequest(method="skills/list", params={})
    listed = await _tried(lambda: of.session.send_request(request, ANY))
    if os.environ.get("MCP_CONFORMANCE_SCENARIO", "").endswith("no-prefetch"):
        return
    for skill in (listed or {}).get("skills") or ():
        loaded = await _tried(lambda skill=skill: of.call_tool("describe_tools", {"names": [skill["uri"]]}))  # type: ignore[misc]
        if loaded is None or loaded.is_error:
            continue
        for found in json.loads(loaded.content[0].text).get("skills") or ():
            for file in found.get("files") or ():
                await _tried(lambda file=file: of.read_resource(file))  # type: ignore[misc]


async def _tried(do: Callable[[], Awaitable[Any]]) -> Any:
    """What is answered; a refusal is what some scenarios want to see."""
    with suppress(MCPError, ValueError, RuntimeError):
        return await do()
    return None


def _arguments(tool: types.Tool, listed: list[types.Tool]) -> dict[str, Any]:
    """Arguments for a tool: an example of each; a tool that wants a schema gets that of another tool."""
    properties = tool.input_schema.get("properties") or {}
    others = [each.input_schema for each in listed if each is not tool]
    return {
        name: others[0] if name == "schema" and others else _example(field)
        for name, field in properties.items()
        if isinstance(field, Mapping)
    }


def _example(field: Mapping[str, Any]) -> Any:
    options = field.get("enum")
    return options[0] if options else EXAMPLES.get(str(field.get("type")), "word")


async def main(side: str, address: str) -> None:
    modern = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION") in MODERN_PROTOCOL_VERSIONS
    async with client(side, address, "auto" if modern else "legacy") as connected:
        await exercise(connected)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
