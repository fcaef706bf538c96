"""Forms of the dashboard: their fields, and the names of tools and definitions in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.requests import Request

from pegboard.gateways.dashboard.dashboard_access import DashboardRefused
from pegboard.model import Fingerprint, ToolId
from pegboard.records import SwitchRecord

MOST_BODY = 1024 * 1024
"""Bytes of a form: some thousand definitions to approve at once."""
MOST_FIELDS = 5_000
MOST_OF_SIGN_IN = 64 * 1024
"""Bytes of the form that strangers may send."""
Fields = Mapping[str, Sequence[str]]


async def fields_of(request: Request, most: int = MOST_BODY) -> Fields:
    """The fields of a form, with all values of each. Raises DashboardRefused for other bodies, for those of more than
    ``most`` bytes, and for more than `MOST_FIELDS`."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise DashboardRefused("The body is not that of a form.", HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise DashboardRefused("The body is too long.", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    if body.count(b"&") >= MOST_FIELDS:
        raise DashboardRefused("The form has too many fields.", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)


def last(fields: Fields, name: str) -> str:
    """The last value of a field; empty without one."""
    return fields.get(name, [""])[-1]


def text_field(text: str) -> str:
    """A text as the value of a field, without characters that cannot be seen.

    >>> text_of(text_field("a\\u202eb"))
    'a\\u202eb'
    """
    return json.dumps([text])


def text_of(field: str) -> str:
    """Raises DashboardRefused for a text that `text_field` has not made."""
    return _texts(field, 1)[0]


def tool_field(tool: ToolId) -> str:
    """A tool, or a server as `ToolId.whole`, as the value of a field.

    >>> tool_of(tool_field(ToolId("git", "a/b")))
    ToolId(server='git', name='a/b')
    """
    return json.dumps(tool)


def switch_field(switch: SwitchRecord) -> str:
    """A switch as the value of a field: a tool, or a rejected definition of one.

    >>> switch_of(switch_field(SwitchRecord(server="git", name="log", definition="a1", who="", at=0.0)))
    (ToolId(server='git', name='log'), 'a1')
    >>> switch_of(tool_field(ToolId("git", "log")))
    (ToolId(server='git', name='log'), '')
    """
    tool = ToolId(switch.server, switch.name)
    return definition_field(tool, Fingerprint(switch.definition)) if switch.definition else tool_field(tool)


def switch_of(text: str) -> tuple[ToolId, str]:
    """The tool, and the definition that was rejected, empty for a general switch. Raises DashboardRefused for a text
    that `switch_field` has not made."""
    server, name, *definition = _texts(text, 2, 3)
    return ToolId(server, name), "".join(definition)


def definition_field(tool: ToolId, seen: Fingerprint) -> str:
    """A definition as the value of a field: exactly the one that a page showed.

    >>> definition_of(definition_field(ToolId("git", "log"), Fingerprint("a1")))
    (ToolId(server='git', name='log'), 'a1')
    """
    return json.dumps([*tool, seen])


def tool_of(text: str) -> ToolId:
    """Raises DashboardRefused for a text that `tool_field` has not made."""
    server, name = _texts(text, 2)
    return ToolId(server, name)


def definition_of(text: str) -> tuple[ToolId, Fingerprint]:
    """Raises DashboardRefused for a text that `definition_field` has not made."""
    server, name, seen = _texts(text, 3)
    return ToolId(server, name), Fingerprint(seen)


def _texts(text: str, *many: int) -> list[str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or len(found) not in many or not all(isinstance(each, str) for each in found):
        raise DashboardRefused("The form does not say what it is about.", HTTPStatus.BAD_REQUEST)
    return [each.encode("utf-8", "replace").decode() for each in found]
