from __future__ import annotations

import os
from pathlib import Path

import pytest

from pegboard_bench.hostile.stores import Restarted, gateway_restarted, store_restarted
from services import POSTGRES, REDIS, delete_keys, drop_schema, needs_postgres, needs_redis

STORES = [pytest.param(REDIS, marks=needs_redis), pytest.param(POSTGRES, marks=needs_postgres)]
PREFIX = f"hostile_test_{os.getpid()}"
"""Of each worker: one that ends removes what it left in the store, and another one would lose its sessions."""
FORGOTTEN_SECONDS = 8
"""Sessions were refused for as long until the store forgot the process that had crashed. `make bench-hostile` measures
how long they are refused now: that depends on how busy the machine is."""


@pytest.mark.requirement("D9")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("state", STORES, ids=["redis", "postgres"])
@pytest.mark.parametrize("scenario", [gateway_restarted, store_restarted])
async def test_after_a_crash_and_a_quick_restart_every_session_goes_on(
    tmp_path: Path, state: str, scenario: object
) -> None:
    try:
        restarted = await scenario(tmp_path, state, prefix=PREFIX)  # type: ignore[operator]
    finally:
        await (delete_keys(PREFIX) if state == REDIS else drop_schema(PREFIX))

    assert isinstance(restarted, Restarted)
    assert restarted.lost == 0
    assert restarted.seconds < FORGOTTEN_SECONDS
