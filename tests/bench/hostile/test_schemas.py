from __future__ import annotations

from pathlib import Path

import pytest

from pegboard_bench.hostile.schemas import hostile_schemas


@pytest.mark.requirement("D3")
@pytest.mark.timeout(600)
async def test_schemas_that_take_for_ever_stall_nobody_else(tmp_path: Path) -> None:
    """The call itself is answered, the gateway ends when it is told to; before, this took minutes."""
    longest, memory = await hostile_schemas(tmp_path)

    assert longest < 5
    assert memory < 200
