from __future__ import annotations

from pathlib import Path

import mcp_types as types
import pytest

from pegboard_bench.mcp import measure
from pegboard_bench.mcp.contenders import ERAS, TRANSPORTS, Era, Transport, connected, contenders

PROTOCOLS = {"modern": "2026-07-28", "legacy": "2025-11-25"}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_every_contender_speaks_the_era_and_gives_the_same_answers(
    transport: Transport, era: Era, tmp_path: Path
) -> None:
    listed = []
    for contender in contenders(None, tmp_path):
        async with connected(contender, transport, era) as client:
            assert client.protocol_version == PROTOCOLS[era]
            await measure.call(client)
            request = types.ListToolsRequest()
            result = await client.session.send_request(request, measure.ANY)  # type: ignore[type-var]
            listed.append(result["tools"])

    assert len(listed[0]) == 30
    assert listed[0] == listed[1] == listed[2], "direct, the bare proxy, Pegboard"
