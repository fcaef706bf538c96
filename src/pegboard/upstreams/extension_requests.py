"""Requests and notifications of extensions, which the SDK has no models for: tasks (SEP-2663; MCP 2025-11-25, tasks),
skills (SEP-2640)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mcp_types as types
from mcp.client.extension import ClientExtension, NotificationBinding, advertise
from pydantic import ConfigDict, Field

TASKS = "io.modelcontextprotocol/tasks"
SKILLS = "io.modelcontextprotocol/skills"
APPS = "io.modelcontextprotocol/ui"
RELAYED = frozenset({SKILLS, APPS})
"""Extensions that the gateway declares where a server does; tasks are declared by era."""
APP_SETTINGS = {"mimeTypes": ["text/html;profile=mcp-app"]}
"""What a host of MCP Apps declares (SEP-1865)."""
TASK_NOTICES = ("notifications/tasks", "notifications/tasks/status")
"""The state of a task has changed, in revision 2026-07-28 and in 2025-11-25."""


class ExtensionRequest(types.Request[dict[str, Any], str]):
    """A request of a method that the core protocol does not have; its parameters are sent as they are."""


class TaskRequest(ExtensionRequest):
    """A request about one task, whose id is sent in the header `Mcp-Name` too (SEP-2663, routing headers)."""

    name_param = "taskId"


class AnyParams(types.RequestParams):
    """Parameters of any shape, which handlers read from the request itself."""

    model_config = ConfigDict(extra="allow")


class AnyNotification(types.Notification[dict[str, Any], str]):
    """A notification of an extension. ``client`` has the connection by itself on which it came, if one has."""

    client: str = Field(default="", exclude=True)


class TaskNotices(ClientExtension):
    """Hears of the tasks of a server. ``heard`` is awaited with each notification."""

    identifier = TASKS

    def __init__(self, heard: Any) -> None:
        self._heard = heard

    def notifications(self) -> tuple[NotificationBinding[Any], ...]:
        def bound(method: str) -> NotificationBinding[Any]:
            async def tell(params: _NoticeParams) -> None:
                said = params.model_dump(by_alias=True, mode="json")
                await self._heard(AnyNotification(method=method, params=said))

            return NotificationBinding(method=method, params_type=_NoticeParams, handler=tell)

        return tuple(bound(method) for method in TASK_NOTICES)


class _NoticeParams(types.NotificationParams):
    """Parameters as they were sent."""

    model_config = ConfigDict(extra="allow")


def client_extensions(heard: Any) -> tuple[ClientExtension, ...]:
    """The extensions that servers are told of when a connection opens; later requests carry those of the client behind
    them."""
    return TaskNotices(heard), advertise(APPS, APP_SETTINGS)


def extensions_of(capabilities: Mapping[str, Any]) -> Mapping[str, Any]:
    """The extensions that a server declares, with their settings (SEP-2133)."""
    declared = capabilities.get("extensions")
    return declared if isinstance(declared, Mapping) else {}


def accepts_tasks(capabilities: Mapping[str, Any]) -> bool:
    """Whether a server of the handshake era runs tool calls as tasks (MCP 2025-11-25, tasks, capabilities)."""
    found: Any = capabilities
    for key in ("tasks", "requests", "tools", "call"):
        found = found.get(key) if isinstance(found, Mapping) else None
    return isinstance(found, Mapping)


def merged_settings(settings: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The settings of one extension at several servers: a flag is set where any server sets it, and of lists the union
    counts.

    >>> merged_settings([{"directoryRead": True}, {}, {"mimeTypes": ["a"]}, {"mimeTypes": ["a", "b"]}])
    {'directoryRead': True, 'mimeTypes': ['a', 'b']}
    """
    found: dict[str, Any] = {}
    for each in settings:
        for key, value in each.items():
            before = found.get(key)
            if isinstance(value, list) and isinstance(before, list):
                found[key] = [*before, *(one for one in value if one not in before)]
            else:
                found[key] = before or value
    return found
