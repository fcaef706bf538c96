from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from pegboard import Board, Catalog, Settings, ToolId, Turn, build
from pegboard.clock import SystemClock
from pegboard.compose import as_configured, build_routing, default_parts
from pegboard.errors import ConfigError
from pegboard.model import AgentState
from pegboard.retrieval.tool_texts import full, server_profile, short
from pegboard.routing_board import RoutingBoard
from pegboard.stores import MemoryEmbeddings, SqliteEmbeddings
from pegboard.testing import FakeEncoder, fake_tool

BoardOf = Callable[..., RoutingBoard]


@pytest.mark.requirement("C7")
def test_build_gives_the_board_that_it_says(town: Catalog, tmp_path: Path) -> None:
    made = build(Settings(cache_dir=tmp_path), town)

    assert get_type_hints(build)["return"] is Board
    assert isinstance(made, Board)
    assert made.catalog.fingerprint == town.fingerprint
    made.close()


@pytest.mark.requirement("C7")
def test_what_only_the_routing_has_is_still_asked_of_what_build_gives_with_a_warning(
    town: Catalog, tmp_path: Path
) -> None:
    made: Any = build(Settings(cache_dir=tmp_path), town)

    with pytest.warns(DeprecationWarning, match=r"use `\.routing\.profile`"):
        profile = made.profile
    with pytest.raises(AttributeError, match="'Board' object has no attribute 'frobnicate'"):
        _ = made.frobnicate

    assert profile == made.routing.profile
    made.close()


def test_build_with_parts_makes_a_routing_board_and_warns(town: Catalog, tmp_path: Path) -> None:
    settings = Settings(cache_dir=tmp_path)

    with pytest.warns(DeprecationWarning, match="build_routing"):
        made: Any = build(settings, town, parts=default_parts(settings, encoder=FakeEncoder()))

    assert isinstance(made, RoutingBoard)


def test_settings_override_the_profile(town: Catalog, board_of: BoardOf) -> None:
    board = board_of(town, profile="attention", k=3, threshold=0.4, budget=500, pool=700)

    profile = board.profile
    assert (profile.name, profile.k, profile.threshold, profile.budget, profile.pool) == ("attention", 3, 0.4, 500, 700)


@pytest.mark.requirement("design.threshold-scale")
@pytest.mark.parametrize(
    "options",
    [{"profile": "nonsense"}, {"profile": "attention", "recall": 0.9}, {"profile": "hybrid", "threshold": 5.0}],
)
def test_options_that_contradict_each_other_are_a_config_error(
    town: Catalog, board_of: BoardOf, options: dict[str, object]
) -> None:
    with pytest.raises(ConfigError):
        board_of(town, **options)


def test_a_precondition_that_cannot_be_read_is_a_config_error(town: Catalog, board_of: BoardOf) -> None:
    with pytest.raises(ConfigError, match="is_root"):
        board_of(town, rules=[{"tools": "*", "requires": ["is_root:yes"]}])


def test_a_rule_needs_its_scope_and_every_precondition(town: Catalog, board_of: BoardOf) -> None:
    rule = {"tools": "tickets/*", "scope": "staff", "requires": ["is_authenticated:a", "milestone_reached:b"]}
    board = board_of(town, rules=[rule])
    full = AgentState(auth=frozenset({"a"}), milestones=frozenset({"b"}))

    def may(scopes: set[str], state: AgentState) -> bool:
        allowed = board.allowed(Turn.ask("x", scopes=frozenset(scopes), state=state))
        return ToolId("tickets", "create_issue") in allowed

    assert may({"staff"}, full)
    assert not may(set(), full)
    assert not may({"staff"}, AgentState(auth=frozenset({"a"})))
    assert not may({"staff"}, AgentState(milestones=frozenset({"b"})))


@pytest.mark.requirement("002.aliases")
async def test_configured_aliases_are_searched(town: Catalog, board_of: BoardOf) -> None:
    plain = board_of(town, profile="keyword")
    aliased = board_of(town, profile="keyword", aliases={"tickets/create_issue": ("bug report",)})

    assert (await plain.route("bug report")).active == ()
    assert (await aliased.route("bug report")).active == (ToolId("tickets", "create_issue"),)


def test_aliases_change_nothing_else_about_a_catalog(town: Catalog) -> None:
    aliased = as_configured(town, Settings(aliases={"tickets/create_issue": ("bug report",), "no/such": ("x",)}))

    assert [tool.id for tool in aliased.tools] == [tool.id for tool in town.tools]
    assert aliased.servers == town.servers
    assert as_configured(town, Settings()) is town


@pytest.mark.requirement("002.always-available")
async def test_always_available_tools_can_be_named_in_the_environment(
    town: Catalog, board_of: BoardOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEGBOARD_ALWAYS_AVAILABLE", '["get_tides", "library/*"]')

    assert [tool.name for tool in board_of(town).pinned] == ["renew_loan", "reserve_book", "get_tides"]


def test_the_default_board_keeps_its_embeddings_in_the_cache_folder_and_opens_nothing_yet(
    town: Catalog, tmp_path: Path
) -> None:
    settings = Settings(cache_dir=tmp_path / "cache", state_dir=tmp_path / "state")
    parts = default_parts(settings)

    build_routing(settings, town, parts=parts)

    assert isinstance(parts.embeddings, SqliteEmbeddings)
    assert parts.embeddings.path == tmp_path / "cache" / "embeddings.sqlite"
    assert not list(tmp_path.iterdir())


@pytest.mark.requirement("M4")
async def test_a_restart_embeds_no_tool_again(town: Catalog, tmp_path: Path) -> None:
    settings = Settings(cache_dir=tmp_path)
    encoders = [FakeEncoder(), FakeEncoder()]
    for encoder in encoders:
        store = SqliteEmbeddings(tmp_path / "embeddings.sqlite")
        await build_routing(settings, town, parts=default_parts(settings, encoder=encoder, embeddings=store)).warm()
        store.close()

    assert len(encoders[0].encoded) == len(texts_of(town))
    assert encoders[1].encoded == []


def texts_of(catalog: Catalog) -> set[str]:
    """What the default profile embeds of a catalog."""
    of_tools = {text(tool) for tool in catalog.tools for text in (short, full)}
    return of_tools | {server_profile(server) for server in catalog.servers.values()}


@pytest.mark.requirement("003.cache-key")
async def test_another_encoder_never_gets_vectors_of_a_space_that_is_not_its_own(town: Catalog, tmp_path: Path) -> None:
    class Other(FakeEncoder):
        model = "another-model"

    settings, store = Settings(cache_dir=tmp_path), MemoryEmbeddings()
    first, other = FakeEncoder(), Other(64)
    for encoder in (first, other):
        await build_routing(settings, town, parts=default_parts(settings, encoder=encoder, embeddings=store)).warm()

    assert sorted(other.encoded) == sorted(first.encoded)


async def test_queries_do_not_crowd_the_lasting_store(town: Catalog, tmp_path: Path) -> None:
    class Watched(MemoryEmbeddings):
        kept = 0

        async def put(self, vectors):  # type: ignore[no-untyped-def]
            self.kept += len(vectors)
            await super().put(vectors)

    settings, store = Settings(cache_dir=tmp_path), Watched()
    board = build_routing(settings, town, parts=default_parts(settings, encoder=FakeEncoder(), embeddings=store))
    for number in range(10):
        await board.route(f"question {number}")

    assert store.kept == len(texts_of(town))


def test_the_system_clock_tells_the_time_and_never_goes_back() -> None:
    clock = SystemClock()
    moments = [clock.monotonic() for _ in range(3)]

    assert clock.time() > 1_700_000_000
    assert moments == sorted(moments)


def test_a_board_of_tools_made_by_hand_needs_no_file(board_of: BoardOf, catalog_of: Callable[..., Catalog]) -> None:
    board = board_of(catalog_of(fake_tool("send", "Send a letter.", server="post")))

    assert len(board.catalog) == 1


async def test_prices_weights_and_first_values_of_the_settings_reach_the_profile_ehrr(
    town: Catalog, board_of: BoardOf
) -> None:
    board = board_of(
        town,
        profile="ehrr",
        k=1,
        spend={"prices": {"*": 0.5}},
        economics={"servers": 2, "cap": 0.01, "seconds_per_usd": 3.0, "asks": {"*": 0.002}, "per_attempt": True},
        statistics={"prior": {"latency": 4.0}},
    )

    priced = await board.priced("anything")

    assert priced is not None
    assert len(priced.servers.shortlisted) == 2
    assert priced.servers.posted.max() == 0.01
    assert (priced.parameters.seconds_per_usd, priced.parameters.per_attempt) == (3.0, True)
    assert set(priced.asks) == {0.002}
    assert {price.usd for price in priced.prices} == {0.5}
    assert set(priced.estimates[1].latency) == {4.0}
    assert (await board.route("anything")).active == (), "what nobody would pay for is not offered"
