"""Searches wait less for a board that is being built."""

from __future__ import annotations

import sys

import pytest

from pegboard.tenants import TenantBoards
from pegboard.tenants.quick_turns import SECONDS, QuickTurns
from pegboard.testing import FakeEncoder

pytestmark = pytest.mark.requirement("scale.tenants")


def test_blocks_that_overlap_end_with_what_was_before() -> None:
    turns, before = QuickTurns(), sys.getswitchinterval()
    first, second = turns.within(), turns.within()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getswitchinterval() == pytest.approx(SECONDS)
    second.__exit__(None, None, None)
    assert sys.getswitchinterval() == before


def test_who_chose_even_shorter_turns_keeps_them() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(SECONDS / 10)
    try:
        with QuickTurns().within():
            assert sys.getswitchinterval() == pytest.approx(SECONDS / 10)
    finally:
        sys.setswitchinterval(before)


async def test_turns_are_short_while_a_board_is_built_and_no_longer() -> None:
    seen: list[float] = []

    class Watching(FakeEncoder):
        @property
        def provider(self) -> str:  # type: ignore[override]
            seen.append(sys.getswitchinterval())
            return "fake"

    before = sys.getswitchinterval()
    boards = TenantBoards(encoder=Watching())
    await boards.import_tools("acme", "crm", [{"name": "find_invoice"}])
    seen.clear()
    await boards.board("acme")
    assert min(seen) == pytest.approx(SECONDS)
    assert sys.getswitchinterval() == before
    await boards.close()
