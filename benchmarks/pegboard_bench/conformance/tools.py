"""The tools that the protocol's test suite calls: each does what its scenario describes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata

Context = ServerRequestContext[Any, Any]
Result = dict[str, Any]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
SILENCE = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
MISSING_CAPABILITY = -32021
ASKED = "asked"
PAUSE = 0.02
"""Seconds between two of several messages, so that none is one with the next."""

IMAGE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
CONFIRMED = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
USER = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}
DEFAULTS = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}
TITLED = [{"const": f"value{each}", "title": f"Option {each}"} for each in (1, 2, 3)]
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
    "required": [],
}
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
EXTRA: Result = {"name": "test_extra", "description": "A tool that comes and goes", "inputSchema": {"type": "object"}}
WITH_ARGUMENT = {
    "test_sampling": {"prompt": {"type": "string"}},
    "test_elicitation": {"message": {"type": "string"}},
    "test_header": {"region": {"type": "string", "x-mcp-header": "Region"}},
}
PLAIN = (
    *("test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource"),
    *("test_multiple_content_types", "test_tool_with_logging", "test_logging_tool", "test_error_handling"),
    *("test_tool_with_progress", "test_reconnection", "test_missing_capability", "test_streaming_elicitation"),
    *("test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums", "test_input_required_result_elicitation"),
    *("test_input_required_result_sampling", "test_input_required_result_list_roots"),
    *("test_input_required_result_request_state", "test_input_required_result_tampered_state"),
    *("test_input_required_result_multiple_inputs", "test_input_required_result_multi_round"),
    *("test_input_required_result_capabilities", "test_trigger_tool_change", "test_trigger_prompt_change"),
)


def definitions() -> list[Result]:
    schemas: dict[str, Result] = {name: {"type": "object", "properties": {}} for name in PLAIN}
    schemas |= {
        name: {"type": "object", "properties": properties, "required": list(properties)}
        for name, properties in WITH_ARGUMENT.items()
    }
    schemas["json_schema_2020_12_tool"] = SCHEMA_2020_12
    return [
        {"name": name, "description": f"Do what the scenario of {name} describes", "inputSchema": schema}
        for name, schema in schemas.items()
    ]


async def call(ctx: Context, params: types.CallToolRequestParams) -> Result:
    """The result of one of `definitions`. Raises MCPError where the scenario wants an error."""
    arguments, name = params.arguments or {}, params.name
    match name:
        case "test_simple_text" | "json_schema_2020_12_tool" | "test_header":
            return text("This is a simple text response for testing.")
        case "test_image_content":
            return {"content": [IMAGE]}
        case "test_audio_content":
            return {"content": [{"type": "audio", "data": SILENCE, "mimeType": "audio/wav"}]}
        case "test_embedded_resource":
            return {"content": [embedded("test://embedded-resource", "This is an embedded resource content.")]}
        case "test_multiple_content_types":
            mixed = embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json")
            return {"content": [*text("Multiple content types test:")["content"], IMAGE, mixed]}
        case "test_error_handling":
            return text("This tool intentionally returns an error for testing") | {"isError": True}
        case "test_tool_with_logging" | "test_logging_tool":
            for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
                await ctx.session.send_log_message("info", message, related_request_id=ctx.request_id)
                await asyncio.sleep(PAUSE)
            return text("Logged three times.")
        case "test_tool_with_progress":
            for done in (0, 50, 100):
                await ctx.session.report_progress(done, 100)
                await asyncio.sleep(PAUSE)
            return text("Progress was reported.")
        case "test_reconnection":
            if ctx.close_sse_stream is not None:
                await ctx.close_sse_stream()
            await asyncio.sleep(PAUSE)
            return text("Reconnection test completed successfully")
        case "test_missing_capability":
            _require(ctx, "sampling")
            return text("The client can sample.")
        case "test_sampling":
            sampled = await asked(ctx, params, sampling(arguments["prompt"], 100), types.CreateMessageResult)
            return text(f"LLM response: {sampled['content']['text']}")
        case "test_elicitation":
            return text(f"User response: {await asked(ctx, params, elicitation(arguments['message'], USER))}")
        case "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums":
            schema = DEFAULTS if name.endswith("defaults") else ENUMS
            told = await asked(ctx, params, elicitation("Please review what is suggested", schema))
            return text(f"Elicitation completed: action={told['action']}, content={told.get('content')}")
    if name in PLAIN:
        return _in_rounds(ctx, params)
    raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name}")


def _in_rounds(ctx: Context, params: types.CallToolRequestParams) -> Result:
    """What revision 2026-07-28 asks for with a result, and goes on with once it is called again."""
    told = {key: plain(each) for key, each in (params.input_responses or {}).items()}
    name, state = params.name, params.request_state
    match name.removeprefix("test_input_required_result_"):
        case "elicitation" | "test_streaming_elicitation":
            if "user_name" not in told:
                return required({"user_name": elicitation("What is your name?", NAMED)})
            return text(f"Hello, {(told['user_name'].get('content') or {}).get('name')}!")
        case "sampling":
            if "capital_question" not in told:
                return required({"capital_question": sampling("What is the capital of France?", 100)})
            return text(str(told["capital_question"]["content"]["text"]))
        case "list_roots":
            if "client_roots" not in told:
                return required({"client_roots": {"method": "roots/list", "params": {}}})
            return text(" ".join(str(root["uri"]) for root in told["client_roots"]["roots"]))
        case "request_state" | "tampered_state":
            if state is None:
                return required({"confirm": elicitation("Please confirm", CONFIRMED)}, "asked once")
            return text("state-ok")
        case "multiple_inputs":
            if state is None or len(told) < len(("user_name", "greeting", "client_roots")):
                requests = {
                    "user_name": elicitation("What is your name?", NAMED),
                    "greeting": sampling("Generate a greeting", 50),
                    "client_roots": {"method": "roots/list", "params": {}},
                }
                return required(requests, "three questions")
            return text("All three were answered.")
        case "multi_round":
            if state is None:
                return required({"step1": elicitation("Step 1: What is your name?", NAMED)}, "round one")
            if state == "round one":
                color = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
                return required({"step2": elicitation("Step 2: What is your favorite color?", color)}, "round two")
            return text("Both rounds are over.")
        case "capabilities":
            offered = {"sampling": sampling("Say something", 50), "elicitation": elicitation("Your name?", NAMED)}
            return required({key: each for key, each in offered.items() if _declared(ctx, key)})
        case _:
            return text("Nothing changed.")


class Unanswered(Exception):  # noqa: N818
    """A question that the client is to be asked with the result, since it takes no requests."""

    def __init__(self, request: Result) -> None:
        super().__init__(request)
        self.request = request


async def asked(
    ctx: Context, params: types.CallToolRequestParams, request: Result, result: type[Any] = types.ElicitResult
) -> Result:
    """The client's answer, by a request of the handshake era or with the next round of a later one."""
    if params.input_responses and ASKED in params.input_responses:
        return plain(params.input_responses[ASKED])
    if not ctx.session.can_send_request:
        raise Unanswered(request)
    method = types.ElicitRequest if request["method"] == "elicitation/create" else types.CreateMessageRequest
    where = ServerMessageMetadata(related_request_id=ctx.request_id)
    return plain(await ctx.session.send_request(method.model_validate(request), result, metadata=where))


def elicitation(message: str, schema: Mapping[str, Any]) -> Result:
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": dict(schema)}}


def sampling(prompt: str, tokens: int) -> Result:
    messages = [{"role": "user", "content": {"type": "text", "text": prompt}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}}


def required(requests: Mapping[str, Any], state: str | None = None) -> Result:
    result: Result = {"resultType": "input_required", "inputRequests": dict(requests)}
    return result if state is None else result | {"requestState": state}


def text(said: str) -> Result:
    return {"content": [{"type": "text", "text": said}]}


def embedded(uri: str, said: str, mime_type: str = "text/plain") -> Result:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": said}}


def plain(model: Any) -> Result:
    return dict(model) if isinstance(model, Mapping) else model.model_dump(by_alias=True, exclude_none=True)


def _declared(ctx: Context, capability: str) -> bool:
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and getattr(capabilities, capability) is not None


def _require(ctx: Context, capability: str) -> None:
    if not _declared(ctx, capability):
        data: Result = {"requiredCapabilities": {capability: {}}}
        raise MCPError(MISSING_CAPABILITY, f"This tool needs a client with {capability}.", data)
