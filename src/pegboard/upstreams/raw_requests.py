"""Requests whose results are relayed as they come, and what revision 2026-07-28 requires with each of them beyond the
SDK's part: client capabilities, arguments as headers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import anyio
import anyio.lowlevel
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.session import _later_revision_fields
from mcp.shared.dispatcher import CallOptions, Dispatcher, ProgressFnT
from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher, _Pending, _plan_outbound
from mcp_types import methods
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from opentelemetry import trace
from pydantic import TypeAdapter, ValidationError

from pegboard.model import JsonObject
from pegboard.protocols import Listing
from pegboard.telemetry.trace_spans import CURRENT
from pegboard.upstreams.call_spans import note_request_id
from pegboard.upstreams.extension_requests import TASKS, extensions_of
from pegboard.upstreams.message_streams import can_be_sent, unsendable
from pegboard.upstreams.request_origin import ORIGIN

AnyRequest = types.ClientRequest | types.Request[Any, Any]
ANY_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])
CALL = "tools/call"
CANCEL_SECONDS = 5.0
"""Seconds for the server to take the notice that nobody waits any more; the SDK's limit."""
CLOSED = "Connection closed"
HeaderMap = Mapping[tuple[str, ...], str]


class ParameterHeaders:
    """The tool arguments that are also sent as headers (`x-mcp-header`)."""

    def __init__(self) -> None:
        self._maps: dict[str, HeaderMap] = {}

    def read(self, listing: Listing) -> None:
        """Read them from a listing. Tools with invalid marks are skipped; they are not offered either."""
        self._maps = {}
        for page in listing.pages:
            for tool in page.get("tools") or ():
                schema = tool.get("inputSchema") or {}
                if "x-mcp-header" in str(schema) and find_invalid_x_mcp_header(schema) is None:
                    self._maps[tool["name"]] = x_mcp_header_map(schema)

    def of(self, name: str, arguments: JsonObject) -> dict[str, str]:
        return mcp_param_headers(self._maps[name], arguments) if name in self._maps else {}


def send_client_capabilities(client: Client, headers: ParameterHeaders) -> None:
    """Send the capabilities of the client behind each request, and argument headers. The SDK would always send its own.

    Servers of the handshake era got the capabilities once, when the connection opened. The SDK knows headers only of
    tools that were listed through it.
    """
    session = client.session
    if session.discover_result is None:
        return
    stamp = session._stamp

    def stamped(data: dict[str, Any], options: CallOptions) -> None:
        stamp(data, options)
        origin, meta = ORIGIN.get(), data["params"]["_meta"]
        if origin is not None:
            capabilities = origin.capabilities.model_dump(by_alias=True, mode="json", exclude_none=True)
            meta[types.CLIENT_CAPABILITIES_META_KEY] = capabilities
        capabilities = meta[types.CLIENT_CAPABILITIES_META_KEY]
        if data["method"] == CALL and (origin is None or origin.takes_requests) and "extensions" in capabilities:
            meta[types.CLIENT_CAPABILITIES_META_KEY] = without_tasks(capabilities)
        if data["method"] == CALL:
            params = data["params"]
            options.setdefault("headers", {}).update(headers.of(params["name"], params.get("arguments") or {}))

    session._stamp = stamped


def without_tasks(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The capabilities of a caller that cannot ask for the result of a task later: it has no such request in its era,
    or is not there any more.

    >>> without_tasks({"roots": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
    {'roots': {}}
    """
    kept = {name: settings for name, settings in extensions_of(capabilities).items() if name != TASKS}
    others = {name: value for name, value in capabilities.items() if name != "extensions"}
    return others | ({"extensions": kept} if kept else {})


async def untouched(
    client: Client, request: AnyRequest, seconds: float | None, progress: ProgressFnT | None = None
) -> dict[str, Any]:
    """The unchanged result, as a dictionary (M7). Raises MCPError, also for a request that JSON cannot hold, and
    ValidationError for a result that breaks the protocol."""
    try:
        return await _result(client, request, seconds, progress)
    except ValidationError:
        raise
    except (ValueError, RecursionError) as error:
        if can_be_sent(request):
            raise
        raise unsendable(error) from error


async def _result(
    client: Client, request: AnyRequest, seconds: float | None, progress: ProgressFnT | None
) -> dict[str, Any]:
    if isinstance(request, types.CallToolRequest):
        return await _called(client, request.params, seconds, progress)
    return await client.session.send_request(
        request,
        ANY_OBJECT,  # type: ignore[type-var]  # a plain dictionary is validated by its adapter all the same
        request_read_timeout_seconds=seconds,
        progress_callback=progress,
    )


async def _called(
    client: Client, params: types.CallToolRequestParams, seconds: float | None, progress: ProgressFnT | None
) -> dict[str, Any]:
    """As the SDK sends a call, without its models of the arguments and the result. What is answered with a task is not
    checked: the SDK has no model of it."""
    session = client.session
    data: dict[str, Any] = {"method": CALL, "params": _plain(params)}
    options: CallOptions = {}
    session._stamp(data, options)
    if seconds is not None:
        options["timeout"] = seconds
    if progress is not None:
        options["on_progress"] = progress
    result = await _exchanged(session._dispatcher, CALL, data["params"], options)
    if params.task is not None:
        return result
    version = session.protocol_version or LATEST_HANDSHAKE_VERSION
    methods.validate_server_result(CALL, version, result)
    later = _later_revision_fields(CALL, version)
    return result if later.isdisjoint(result) else {key: each for key, each in result.items() if key not in later}


def _plain(params: types.CallToolRequestParams) -> dict[str, Any]:
    """The parameters in JSON."""
    if params.input_responses is not None or params.task is not None:
        return params.model_dump(by_alias=True, mode="json", exclude_none=True)
    found = {
        "name": params.name,
        "arguments": params.arguments,
        "_meta": params.meta and dict(params.meta),
        "requestState": params.request_state,
    }
    return {key: value for key, value in found.items() if value is not None}


class PendingAnswer:
    """What the dispatcher gives a request's outcome to, as it would to a stream."""

    def __init__(self) -> None:
        self.outcome: asyncio.Future[dict[str, Any] | types.ErrorData] = asyncio.get_running_loop().create_future()

    def send_nowait(self, outcome: dict[str, Any] | types.ErrorData) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)


async def _exchanged(
    dispatcher: Dispatcher[Any], method: str, params: dict[str, Any], options: CallOptions
) -> dict[str, Any]:
    """The result of a request, with a future in place of the SDK's streams, scopes and spans: they take a third of what
    a call costs on the way to its server. Requests that are traced or have a time limit of their own go the SDK's way.

    Raises MCPError, also for a connection that closes. Cancelling it cancels the request at the server.
    """
    if not isinstance(dispatcher, JSONRPCDispatcher) or "timeout" in options or is_traced():
        return await dispatcher.send_raw_request(method, params, options)
    if dispatcher._closed or not dispatcher._running:
        raise MCPError(types.CONNECTION_CLOSED, CLOSED)
    await anyio.lowlevel.checkpoint_if_cancelled()
    name, answer = dispatcher._allocate_id(), PendingAnswer()
    if CURRENT.get() is not None:
        note_request_id(name)
    if (progress := options.get("on_progress")) is not None:
        params["_meta"] = {**params.get("_meta", {}), "progressToken": name}
    dispatcher._pending[name] = _Pending(answer, answer, progress)  # type: ignore[arg-type]  # it only sends
    try:
        request = types.JSONRPCRequest(jsonrpc="2.0", id=name, method=method, params=params)
        await dispatcher._write(request, _plan_outbound(None, options).metadata)
        outcome = await answer.outcome
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        raise MCPError(types.CONNECTION_CLOSED, CLOSED) from None
    except asyncio.CancelledError:
        with anyio.move_on_after(CANCEL_SECONDS, shield=True):
            await dispatcher._cancel_outbound(name, "caller cancelled", None)
        raise
    finally:
        dispatcher._pending.pop(name, None)
    if isinstance(outcome, types.ErrorData):
        raise MCPError.from_error_data(outcome)
    return outcome


def is_traced() -> bool:
    """Whether there are spans to make, or a trace of the client's to pass on."""
    provider = trace.get_tracer_provider()
    return not isinstance(provider, trace.ProxyTracerProvider) or trace.get_current_span().get_span_context().is_valid
