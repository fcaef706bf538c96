"""What is read of servers' lists of prompts and resources."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from pegboard.gateways.mcp.resources import resource_listing
from pegboard.gateways.mcp.resources.resource_listing import KINDS, Kind, read_list
from pegboard.upstreams.limits import ListBudget, UpstreamLimits
from pegboard.upstreams.server_lists import MOST_PAGES, warn_of_pages


def listing(kind: Kind, items: Sequence[dict[str, Any]]) -> Any:
    """A server that lists these."""

    async def request(asked: object) -> dict[str, Any]:
        return {kind: items}

    return SimpleNamespace(
        spec=SimpleNamespace(name="notes"), request=request, room=lambda: ListBudget(UpstreamLimits())
    )


@pytest.mark.parametrize("kind", KINDS)
async def test_an_item_whose_name_has_nul_is_left_out_and_the_log_says_so_once(
    kind: Kind, caplog: pytest.LogCaptureFixture
) -> None:
    key = KINDS[kind].identity
    resource_listing._warn.cache_clear()

    for _ in range(3):
        assert await read_list(listing(kind, [{key: "a\0b"}, {key: "a://b"}]), kind) == [{key: "a://b"}]

    said = rf"Of {kind} of server notes, 'a\x00b' is left out: its name has NUL or half"
    assert caplog.text.count(said) == 1


async def test_a_list_on_more_pages_than_are_read_is_named_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    async def request(asked: Any) -> dict[str, Any]:
        cursor = int(asked.params.cursor or 0)
        return {"prompts": [{"name": str(cursor)}], "nextCursor": str(cursor + 1)}

    warn_of_pages.cache_clear()
    endless = listing("prompts", [])
    endless.request = request
    for _ in range(2):
        assert len(await read_list(endless, "prompts")) == MOST_PAGES

    assert caplog.text.count("Server notes lists prompts on more than 1,000 pages") == 1
