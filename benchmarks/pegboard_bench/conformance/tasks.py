"""Tasks of the server that the test suite checks (SEP-2663): tools that answer later, and the requests about them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types.jsonrpc import HEADER_MISMATCH, MISSING_REQUIRED_CLIENT_CAPABILITY
from pydantic import ConfigDict

from pegboard_bench.conformance.tools import Context, Result, elicitation, plain, required, text

TASKS = "io.modelcontextprotocol/tasks"
TTL_MS = 600_000
POLL_MS = 100
CONFIRMED = {"type": "object", "properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "greet": {"name": {"type": "string"}},
    "slow_compute": {"seconds": {"type": "number"}, "label": {"type": "string"}},
    "failing_job": {},
    "protocol_error_job": {},
    "confirm_delete": {"filename": {"type": "string"}},
    "multi_input": {},
    "test_tool_with_task": {},
}
ALONE = ("failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task")
"""Tools that answer with a task only."""
DEFINITIONS: list[Result] = [
    {"name": name, "description": f"Do what {name} says", "inputSchema": {"type": "object", "properties": dict(schema)}}
    for name, schema in SCHEMAS.items()
]


class Params(types.RequestParams):
    """Parameters of any shape."""

    model_config = ConfigDict(extra="allow")


class Word(types.Notification[dict[str, Any], str]):
    """What is told of a task."""


@dataclass(slots=True, kw_only=True, eq=False)
class Task:
    """A task, with what it waits for and what became of it."""

    id: str = field(default_factory=lambda: uuid4().hex)
    status: str = "working"
    created: str = field(default_factory=lambda: _now())
    updated: str = field(default_factory=lambda: _now())
    ended: Result = field(default_factory=dict)
    asked: Result = field(default_factory=dict)
    told: Result = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    work: asyncio.Task[None] | None = None

    async def become(self, status: str, **ended: Any) -> None:
        async with self.changed:
            self.status, self.updated, self.ended = status, _now(), ended
            self.changed.notify_all()

    async def ask(self, questions: Result) -> Result:
        """The answers, which may come one by one."""
        self.asked = dict(questions)
        await self.become("input_required")
        async with self.changed:
            await self.changed.wait_for(lambda: not self.asked)
        await self.become("working")
        return self.told

    async def answer(self, answers: Mapping[str, Any]) -> None:
        async with self.changed:
            for key in self.asked.keys() & answers.keys():
                del self.asked[key]
                self.told[key] = answers[key]
            self.changed.notify_all()

    def seed(self) -> Result:
        times = {"createdAt": self.created, "lastUpdatedAt": self.updated}
        return {"taskId": self.id, "status": self.status, "ttlMs": TTL_MS, "pollIntervalMs": POLL_MS} | times

    def detailed(self) -> Result:
        asks = {"inputRequests": dict(self.asked)} if self.status == "input_required" else {}
        return self.seed() | self.ended | asks


Work = Callable[[Task], Awaitable[Result]]


class Tasks:
    """Every task of the server."""

    def __init__(self, listen: ListenHandler) -> None:
        self._tasks: dict[str, Task] = {}
        self._listen = listen

    def join(self, server: Server[Any]) -> None:
        server.extensions[TASKS] = {}
        for method, handler in {"get": self._get, "update": self._update, "cancel": self._cancel}.items():
            server.add_request_handler(f"tasks/{method}", Params, handler)

    async def call(self, ctx: Context, params: types.CallToolRequestParams) -> Result:
        """The result of one of `DEFINITIONS`. Raises MCPError for a client that cannot take a task where one is
        needed."""
        name, arguments = params.name, params.arguments or {}
        if name == "greet":
            return text(f"Hello, {arguments['name']}!")
        if not _declared(ctx):
            if name in ALONE:
                raise _undeclared()
            await asyncio.sleep(arguments.get("seconds", 0))
            return text("Computed.")
        if name == "test_tool_with_task":
            answers = params.input_responses or {}
            if "user_name" not in answers:
                return required({"user_name": elicitation("Your name?", NAMED)})
            who = plain(answers["user_name"])["content"]["name"]
            return self._begin(lambda task: _said(f"Hello, {who}."))
        return self._begin(lambda task: _worked(name, arguments, task))

    async def listen(self, ctx: Context, params: types.SubscriptionsListenRequestParams) -> Any:
        """A stream that tells of tasks, or any other one."""
        wanted = [each for each in (params.notifications.model_extra or {}).get("taskIds") or () if each in self._tasks]
        if not wanted:
            return await self._listen(ctx, params)
        _check(ctx)
        meta: Any = {"io.modelcontextprotocol/subscriptionId": ctx.request_id}
        honored = types.SubscriptionFilter.model_validate({"taskIds": wanted})
        seen = types.SubscriptionsAcknowledgedNotificationParams(notifications=honored, _meta=meta)
        message: Any = types.SubscriptionsAcknowledgedNotification(params=seen)
        await ctx.session.send_notification(message, related_request_id=ctx.request_id)
        task, before = self._tasks[wanted[0]], ""
        while before not in ("completed", "failed", "cancelled"):
            async with task.changed:
                await task.changed.wait_for(lambda: task.status != before)  # noqa: B023 - awaited at once
                before = task.status
            message = Word(method="notifications/tasks", params=task.detailed() | {"_meta": meta})
            await ctx.session.send_notification(message, related_request_id=ctx.request_id)
        return types.SubscriptionsListenResult(_meta=meta)

    def _begin(self, work: Work) -> Result:
        task = Task()
        self._tasks[task.id] = task
        task.work = asyncio.create_task(_run(task, work))
        return {"resultType": "task"} | task.seed()

    async def _get(self, ctx: Context, _params: Params) -> Result:
        return {"resultType": "complete"} | self._of(ctx).detailed()

    async def _update(self, ctx: Context, _params: Params) -> Result:
        await self._of(ctx).answer((ctx.params or {}).get("inputResponses") or {})
        return {"resultType": "complete"}

    async def _cancel(self, ctx: Context, _params: Params) -> Result:
        task = self._of(ctx)
        if task.work is not None:
            task.work.cancel()
        return {"resultType": "complete"}

    def _of(self, ctx: Context) -> Task:
        _check(ctx)
        task = (ctx.params or {}).get("taskId")
        if ctx.request is not None and decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER)) != task:
            raise MCPError(HEADER_MISMATCH, "The header names another task.")
        if task not in self._tasks:
            raise MCPError(types.INVALID_PARAMS, "Task not found", {"taskId": task})
        return self._tasks[task]


async def _run(task: Task, work: Work) -> None:
    try:
        await task.become("completed", result=await work(task))
    except asyncio.CancelledError:
        await task.become("cancelled")
    except MCPError as error:
        await task.become("failed", error=error.error.model_dump(by_alias=True, exclude_none=True))


async def _worked(name: str, arguments: Mapping[str, Any], task: Task) -> Result:
    match name:
        case "slow_compute":
            await asyncio.sleep(arguments.get("seconds", 0))
            return text("Computed.")
        case "failing_job":
            return text("The job failed.") | {"isError": True}
        case "confirm_delete":
            await task.ask({"confirm": elicitation(f"Delete {arguments.get('filename')}?", CONFIRMED)})
            return text("Deleted.")
        case "multi_input":
            await task.ask({"first": elicitation("First?", NAMED), "second": elicitation("Second?", NAMED)})
            return text("Both were answered.")
    raise MCPError(types.INTERNAL_ERROR, "The job broke.")


async def _said(words: str) -> Result:
    return text(words)


def _declared(ctx: Context) -> bool:
    capabilities = ctx.session.client_capabilities
    return capabilities is not None and TASKS in (capabilities.extensions or {})


def _check(ctx: Context) -> None:
    if not _declared(ctx):
        raise _undeclared()


def _undeclared() -> MCPError:
    needed: Result = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing required client capability", needed)


def _now() -> str:
    return datetime.now(UTC).isoformat()
