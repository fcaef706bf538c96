"""The benchmark of tenants, on a small world."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pegboard.catalog import Catalog
from pegboard.model import Floats, Server, ServerName
from pegboard.retrieval.intents import Span
from pegboard.tenants import TenantBoards
from pegboard.testing import FakeEncoder, fake_tool
from pegboard_bench.results import check
from pegboard_bench.tenants import page
from pegboard_bench.tenants.__main__ import of_views
from pegboard_bench.tenants.import_run import of_neighbours
from pegboard_bench.tenants.measure import Measured, Sizes, filled, foreign, named, searched
from pegboard_bench.tenants.neighbours import Disturbed, Phase
from pegboard_bench.tenants.world import PRIVATE_SERVERS, KnownEncoder, NoEmbeddings, World

SIZES = Sizes(tenants=6, tools=20, results=60, seed=1)


class SmallEncoder(FakeEncoder):
    """In place of the bundled encoder."""

    def __init__(self) -> None:
        super().__init__(dimensions=16)

    async def encode_clauses(self, text: str, spans: Sequence[Span]) -> Floats:
        return await self.encode([text] * (1 + len(spans)))


@pytest.fixture
def world() -> World:
    groups = [
        (
            Server(name=ServerName(f"server {number}")),
            [fake_tool(f"tool_{at}", f"Does {at} for {number}", server=f"server {number}") for at in range(5)],
        )
        for number in range(6)
    ]
    rows = np.random.default_rng(0).standard_normal((30, 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return World(catalog=Catalog.build(groups), rows=rows, requests=["does 3 for 2", "tool 4"])


async def test_no_result_is_another_tenants_and_all_are_counted(world: World) -> None:
    encoder = KnownEncoder(world, 1, own=SmallEncoder())  # type: ignore[arg-type]
    boards = TenantBoards(encoder=encoder, embeddings=NoEmbeddings())
    await filled(boards, world, encoder, SIZES)
    for tenant in map(named, range(SIZES.tenants)):
        boards.use(tenant, world.used(tenant, SIZES.shared))
        assert len(boards.tools_of(tenant)) <= SIZES.tools
    asked = await searched(boards, world, SIZES)
    assert (asked.foreign, asked.empty) == (0, 0)
    assert asked.results >= SIZES.results
    assert boards.definitions == 30 + SIZES.tenants * len(PRIVATE_SERVERS) * SIZES.private
    others = await boards.search(named(1), "does 3 for 2")
    assert foreign(others, named(0), frozenset()) == len(others.ids), "the check itself finds what is another's"
    await boards.close()


def test_the_page_has_the_figures_of_all_parts() -> None:
    measured = Measured(
        distinct=10,
        listed=30,
        import_s=1.0,
        distinct_mb=100.0,
        views_mb=101.0,
        all_mb=120.0,
        hot_boards=2,
        apart_mb=9.0,
        results=60,
        foreign=0,
        empty=0,
        first_ms=[200.0],
        search_ms=[10.0, 20.0],
    )
    phase = Phase(seconds=1.0, times=[10.0])
    slower = Phase(seconds=2.0, times=[12.5])
    disturbed = Disturbed(quiet=phase, importing=slower, building=phase, flooded=phase, flood_answers=7)
    figures = of_views(measured) | of_neighbours(disturbed)
    check(figures)
    names = ("tenants", "tools", "shared", "public", "public_servers", "limit", "every", "load")
    table = dict.fromkeys(("imported", "neighbours", "rate", "rounds", "flood", "load"), 5)
    tables = dict.fromkeys(names, 5) | {"neighbours": table}
    said = {"command": "make bench-tenants", "date": "2026-11-26", "commit": "0" * 40}
    machine = {"cores": 1, "cpu": "x", "python": "3.11"}
    shown = page.section(said | {"machine": machine, "figures": figures, "tables": tables})
    assert "imports" not in page.section(
        said | {"machine": machine, "figures": figures, "tables": dict.fromkeys(names, 5)}
    ), "each part is measured by itself"
    assert "| with the 2 boards that are ready | 120 | 1.20 |" in shown
    assert "| one tenant imports 5 tools | 2 | 1 | 12.5 / 12.5 | 12.5 | 1.25 |" in shown
