"""Limits on answers of MCP servers hold for what they are once their content coding is undone."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest

from compressors import BOOM, LIMIT, Compressor, fleet_before
from pegboard.errors import PegboardError
from pegboard.inflate import PIECE, Inflater
from pegboard.upstreams import Fleet


async def said(fleet: Fleet) -> str:
    try:
        return str(await fleet.call(BOOM, {}))
    except PegboardError as error:
        return f"{error.message} {error.remedy}"


@pytest.mark.requirement("D6")
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_an_answer_that_inflates_beyond_the_limit_is_an_error_and_takes_no_memory(kind: str) -> None:
    compressor = Compressor(kind)
    async with fleet_before(compressor) as fleet:
        tracemalloc.start()
        try:
            outcome = await said(fleet)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        compressor.explodes = False
        again = await said(fleet)

    assert "result_limit" in outcome
    assert peak < 20 * LIMIT
    assert "calm" in again


@pytest.mark.requirement("D6")
@pytest.mark.parametrize("coding", ["gzip", "deflate", "deflate, gzip"])
async def test_answers_in_any_coding_that_was_asked_for_are_read(coding: str) -> None:
    compressor = Compressor("application/json", coding)
    compressor.explodes = False
    async with fleet_before(compressor) as fleet:
        assert "calm" in await said(fleet)


@pytest.mark.requirement("D6")
async def test_an_answer_in_a_coding_that_nobody_asked_for_is_not_undone() -> None:
    async with fleet_before(Compressor("application/json", "br")) as fleet:
        assert [status.state for status in fleet.status()] != ["ready"]


@pytest.mark.requirement("D6")
@pytest.mark.parametrize("size", [1, 1000, 10**6])
def test_a_compressed_body_is_undone_in_small_pieces_however_it_comes(size: int) -> None:
    plain = bytes(range(256)) * 4096
    packed = gzip.compress(plain)
    inflater = Inflater("gzip")
    pieces = [each for at in range(0, len(packed), size) for each in inflater.pieces(packed[at : at + size])]

    assert b"".join(pieces) == plain
    assert max(map(len, pieces)) <= PIECE
