"""Which remote servers of clients Pegboard can sign in to; asks each of them once."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pegboard.errors import ConfigError
from pegboard.settings.client_import import NOT_ASKED, ClientFile, JsonObject, identity, without_tokens
from pegboard.settings.server_spec import ServerSpec

if TYPE_CHECKING:
    from pegboard.upstreams.oauth.server_access import ServerAccess


@dataclass(frozen=True, slots=True)
class RemoteAccess:
    """By the identity of a definition."""

    _found: Mapping[str, ServerAccess] = field(default_factory=dict)

    def obstacle(self, definition: JsonObject) -> str:
        found = self._found.get(identity(definition))
        return NOT_ASKED if found is None else found.obstacle

    def wants_sign_in(self, definition: JsonObject) -> bool:
        found = self._found.get(identity(definition))
        return found is not None and found.wants_sign_in


def remote_access(files: Iterable[ClientFile]) -> RemoteAccess:
    """Of all servers of these files that have a URL on another machine and no token."""
    definitions = {identity(each): each for each in without_tokens(files)}
    return RemoteAccess(asyncio.run(_asked(definitions)) if definitions else {})


async def _asked(definitions: Mapping[str, JsonObject]) -> dict[str, ServerAccess]:
    found = await asyncio.gather(*map(_access, definitions.values()))
    return dict(zip(definitions, found, strict=True))


async def _access(definition: JsonObject) -> ServerAccess:
    from pegboard.upstreams.oauth.server_access import ServerAccess, server_access

    try:
        spec = ServerSpec(name="server", **definition).expanded(os.environ)
    except ConfigError as error:
        return ServerAccess(obstacle=error.message.rstrip("."))
    return await server_access(spec)
