"""Whether a server is still there."""

from __future__ import annotations

import anyio
import mcp_types as types
from mcp import Client, MCPError
from pydantic import ValidationError

from pegboard.upstreams.listing import untouched
from pegboard.upstreams.transport import Watched

NO_SIGN_OF_LIFE = (types.REQUEST_TIMEOUT, types.CONNECTION_CLOSED)


async def answers(client: Client, watched: Watched, seconds: float) -> bool:
    """Whether it says anything within ``seconds`` after it was asked; that it does not know the question will do.

    The handshake era has `ping` for this; since 2026-07-28 has none, `server/discover` is asked, which is as cheap.
    """
    question: types.ClientRequest = types.DiscoverRequest() if client.session.discover_result else types.PingRequest()
    heard = watched.heard
    try:
        with anyio.fail_after(seconds):
            await untouched(client, question, seconds)
    except TimeoutError:
        return watched.heard > heard
    except MCPError as error:
        return error.code not in NO_SIGN_OF_LIFE or watched.heard > heard + 1
    except ValidationError:
        return True
    return True
