"""One encoder and its fallback: query, tools and calibration change together, and no two spaces ever meet."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from embedding_services import KEY, RIGHT, Answer, service
from pegboard import Catalog, Settings, ToolId
from pegboard.compose import build_routing, default_parts, opened_parts
from pegboard.errors import ConfigError, StoreError
from pegboard.events import RouteDecided
from pegboard.model import Floats
from pegboard.protocols import Filter, Hits
from pegboard.retrieval import OnnxEncoder
from pegboard.retrieval.encoders.remote import RemoteEncoder
from pegboard.retrieval.fusion import shipped
from pegboard.retrieval.index.exact import ExactVectors
from pegboard.retrieval.local_fit import LocalFit
from pegboard.routing_board import RoutingBoard
from pegboard.stores import MemoryEmbeddings, MemoryEvents
from pegboard.testing import FakeEncoder

BoardOf = Callable[..., RoutingBoard]
ASK = "when is high water at the harbour"
TIDES = ToolId("weather", "get_tides")


class Remote(FakeEncoder):
    """Of 32 numbers: beside vectors of the other it could not even be multiplied."""

    provider = "far"
    model = "large"

    def __init__(self) -> None:
        super().__init__(32)
        self.gate = asyncio.Event()
        self.gate.set()

    async def encode(self, texts: Sequence[str]) -> Floats:
        await self.gate.wait()
        return await super().encode(texts)


class Local(FakeEncoder):
    provider = "onnx"

    def __init__(self) -> None:
        super().__init__(64)


class Noting(ExactVectors):
    """Remembers among which tools it was searched, and fails while it is down."""

    def __init__(self, dimensions: int) -> None:
        super().__init__(dimensions)
        self.asked: list[Filter | None] = []
        self.down = False

    async def ids(self) -> frozenset[ToolId]:
        if self.down:
            raise StoreError("The index is down.")
        return await super().ids()

    async def search(self, queries: Floats, k: int, where: Filter | None = None) -> list[Hits]:
        self.asked.append(where)
        return await super().search(queries, k, where)


@pytest.fixture
def far() -> Remote:
    return Remote()


@pytest.fixture
def near() -> Local:
    return Local()


@pytest.fixture
def both(board_of: BoardOf, far: Remote, near: Local) -> Callable[..., RoutingBoard]:
    def make(catalog: Catalog, **options: object) -> RoutingBoard:
        return board_of(catalog, parts={"encoder": far, "fallback": near}, **options)

    return make


async def rest() -> None:
    """Until nothing else is under way."""
    while others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others)


@pytest.mark.requirement("003.by-rank")
async def test_an_encoder_that_nothing_is_fitted_for_is_used_by_rank_and_the_decision_says_so(
    town: Catalog, board_of: BoardOf, far: Remote, near: Local, events: MemoryEvents
) -> None:
    by_rank = await board_of(town, k=3, parts={"encoder": far}).route(ASK)
    by_mass = await board_of(town, k=3, parts={"encoder": near}).route(ASK)

    assert (by_rank.by_rank, by_rank.scale, by_rank.encoder, len(by_rank.active)) == (True, "points", "far/large", 3)
    assert TIDES in by_rank.active
    assert (by_mass.by_rank, by_mass.scale, by_mass.encoder) == (False, "probability", "onnx/bag-of-words")
    assert [(event.encoder, event.by_rank) for event in events.of(RouteDecided)] == [  # type: ignore[attr-defined]
        ("far/large", True),
        ("onnx/bag-of-words", False),
    ]


@pytest.mark.requirement("003.by-rank")
@pytest.mark.parametrize("profile", ["hybrid", "attention", "semantic"])
async def test_by_rank_there_are_always_k_tools_whatever_they_score(
    town: Catalog, board_of: BoardOf, far: Remote, profile: str
) -> None:
    decision = await board_of(town, profile=profile, k=4, parts={"encoder": far}).route("zzz")

    assert len(decision.active) == 4
    assert decision.by_rank


async def test_a_threshold_that_somebody_set_counts_for_any_encoder(
    town: Catalog, board_of: BoardOf, far: Remote
) -> None:
    board = board_of(town, profile="attention", threshold=0.99, parts={"encoder": far})

    assert (await board.route(ASK)).active == ()


@pytest.mark.requirement("003.by-rank")
async def test_what_was_fitted_for_the_encoder_makes_its_scores_probabilities(
    town: Catalog, board_of: BoardOf, far: Remote, tmp_path: Path
) -> None:
    file = tmp_path / "calibration.json"
    file.write_text(LocalFit(encoder="large", fusions={"hybrid": shipped()["hybrid"]}, threshold=0.2).text())

    decision = await board_of(town, calibration=file, parts={"encoder": far}).route(ASK)

    assert (decision.by_rank, decision.scale) == (False, "probability")


async def test_words_need_no_encoder_and_no_fit(town: Catalog, board_of: BoardOf, far: Remote) -> None:
    decision = await board_of(town, profile="keyword", parts={"encoder": far}).route("tides")

    assert (decision.by_rank, decision.encoder) == (False, "")


@pytest.mark.requirement("003.fallback")
async def test_the_fallback_answers_with_its_own_vectors_limits_and_calibration(
    town: Catalog, both: BoardOf, far: Remote, near: Local
) -> None:
    board = both(town, k=3)
    await board.warm()
    first = await board.route(ASK)
    far.broken = True

    second = await board.route("book a repair slot for my bicycle")

    assert (first.encoder, first.by_rank, first.scale) == ("far/large", True, "points")
    assert (second.encoder, second.by_rank, second.scale) == ("onnx/bag-of-words", False, "probability")
    assert second.candidates[0].tool.name == "book_repair"


@pytest.mark.requirement("003.fallback")
async def test_the_first_encoder_is_back_as_soon_as_it_answers_and_nobody_waits_for_it(
    town: Catalog, both: BoardOf, far: Remote
) -> None:
    board = both(town)
    await board.warm()
    far.broken = True
    await board.route(ASK)
    far.broken = False
    far.gate.clear()

    meanwhile = [await board.route(f"{ASK} {number}") for number in range(3)]
    far.gate.set()
    await rest()
    after = await board.route(f"{ASK} again")

    assert {decision.encoder for decision in meanwhile} == {"onnx/bag-of-words"}
    assert after.encoder == "far/large"


@pytest.mark.requirement("003.fallback")
async def test_a_service_that_is_down_at_the_start_is_embedded_when_it_is_up(
    town: Catalog, both: BoardOf, far: Remote
) -> None:
    far.broken = True
    board = both(town)
    await board.warm()
    down = await board.route(ASK)
    await rest()
    far.broken = False
    await board.route(f"{ASK} today")
    await rest()

    up = await board.route(f"{ASK} tomorrow")

    assert (down.encoder, up.encoder) == ("onnx/bag-of-words", "far/large")


@pytest.mark.requirement("003.fallback")
async def test_an_impatient_board_is_never_kept_from_its_fallback(
    town: Catalog, both: BoardOf, board_of: BoardOf, far: Remote, near: Local
) -> None:
    far.broken = True
    board = board_of(town, patient=False, parts={"encoder": far, "fallback": near})
    early = await board.route(ASK)
    await board.warm()
    await rest()

    late = await board.route(ASK)

    assert TIDES in early.active
    assert (early.encoder, late.encoder) == ("", "onnx/bag-of-words")


@pytest.mark.requirement("003.fallback")
async def test_a_cosine_that_was_set_for_one_encoder_is_no_limit_for_the_other(
    town: Catalog, both: BoardOf, far: Remote
) -> None:
    attention = both(town, profile="attention", threshold=0.9)
    semantic = both(town, profile="semantic", threshold=0.99)
    far.broken = True

    decisions = [await board.route("tides high water low water") for board in (attention, semantic)]

    assert TIDES in decisions[0].active
    assert len(decisions[1].active) == 5


@pytest.mark.requirement("design.fail-open")
async def test_where_both_fail_words_answer(town: Catalog, both: BoardOf, far: Remote, near: Local) -> None:
    far.broken = near.broken = True

    decision = await both(town).route(ASK)

    assert TIDES in decision.active
    assert decision.encoder == ""


async def test_vectors_for_groups_of_tools_are_of_one_space(town: Catalog, both: BoardOf, far: Remote) -> None:
    board = both(town)
    whole = await board.vectors()
    far.broken = True

    assert whole.shape == (8, 32)
    assert (await both(town).vectors()).shape == (8, 64)


@pytest.mark.requirement("003.fallback")
async def test_a_fallback_that_cannot_be_used_keeps_nobody_from_the_first(
    town: Catalog, both: BoardOf, near: Local, caplog: pytest.LogCaptureFixture
) -> None:
    near.broken = True
    board = both(town)
    await board.warm()

    assert (await board.route(ASK)).encoder == "far/large"
    assert "The fallback encoder cannot be used" in caplog.text


@pytest.mark.requirement("003.fallback")
async def test_each_encoder_has_an_index_of_its_own_which_is_searched_within_the_callers_rights(
    town: Catalog, board_of: BoardOf, far: Remote, near: Local
) -> None:
    first, second = Noting(32), Noting(64)
    indexes = {"index": lambda _: first, "fallback_index": lambda _: second}
    board = board_of(town, parts={"encoder": far, "fallback": near} | indexes)
    weather = Filter(servers=frozenset({"weather"}))
    up = await board.route(ASK, weather)
    far.broken = True

    down = await board.route(f"{ASK} today", weather)

    assert (up.encoder, down.encoder) == ("far/large", "onnx/bag-of-words")
    assert await first.ids() == await second.ids() == {tool.id for tool in town.tools}
    assert first.asked[0] == second.asked[0] == weather


@pytest.fixture
def remote_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def make(url: str, **options: object) -> Settings:
        encoder = {"provider": "openai", "base_url": url, "rest": 0} | options
        return Settings(cache_dir=tmp_path / "cache", state_dir=tmp_path / "state", encoder=encoder)

    return make


@pytest.mark.requirement("003.providers")
async def test_the_settings_make_a_board_on_a_service_with_the_encoder_in_process_behind_it(
    town: Catalog, remote_settings: Callable[..., Settings]
) -> None:
    with service("openai") as at:
        settings = remote_settings(at.base_url)
        async with opened_parts(settings, fallback=Local()) as parts:
            board = build_routing(settings, town, parts=parts)
            up = await board.route(ASK)
            at.answer = lambda *_: Answer(status=401)
            down = await board.route("book a repair slot")
            at.answer = lambda *_: RIGHT
            await board.route("lend me a book")
            await rest_but_connections(board)
            back = await board.route("what is on at the theatre")

    assert [each.encoder.partition(" ")[0] for each in (up, down, back)] == ["openai", "onnx/bag-of-words", "openai"]


async def rest_but_connections(board: RoutingBoard) -> None:
    """Until the first encoder has been tried again."""
    trying = board._router._rankings._trying
    assert trying is not None
    await trying


@pytest.mark.requirement("003.fallback")
@pytest.mark.parametrize("index", ["exact", "faiss"])
async def test_vectors_of_any_width_are_in_any_index_though_a_service_shows_its_own_with_its_first_answer(
    town: Catalog, remote_settings: Callable[..., Settings], index: str
) -> None:
    with service("openai") as at:
        settings = remote_settings(at.base_url).model_copy(update={"index": index})
        async with opened_parts(settings, fallback=Local()) as parts:
            board = build_routing(settings, town, parts=parts)
            assert parts.encoder.dimensions == 0
            await board.warm()
            up = await board.route(ASK)
            at.answer = lambda *_: Answer(status=401)
            down = await board.route("book a repair slot")

    assert [each.encoder.partition(" ")[0] for each in (up, down)] == ["openai", "onnx/bag-of-words"]
    assert TIDES in up.active
    assert down.candidates[0].tool.name == "book_repair"
    assert all("cosine" in each.candidates[0].parts for each in (up, down))


@pytest.mark.requirement("design.index-down")
async def test_an_index_that_is_down_before_the_first_answer_of_a_service_is_filled_when_it_is_back(
    town: Catalog, remote_settings: Callable[..., Settings]
) -> None:
    with service("openai") as at:
        index = Noting(at.dimensions)
        index.down = True
        settings = remote_settings(at.base_url, fallback="none")
        async with opened_parts(settings, index=lambda _: index) as parts:
            board = build_routing(settings, town, parts=parts)
            await board.warm()
            down = await board.route(ASK)
            index.down = False
            back = await board.route(ASK)

    assert (down.encoder, back.encoder.partition(" ")[0]) == ("", "openai")
    assert TIDES in down.active
    assert TIDES in back.active


@pytest.mark.requirement("M4")
async def test_a_restart_sends_no_tool_to_the_service_again(
    town: Catalog, remote_settings: Callable[..., Settings]
) -> None:
    with service("openai") as at:
        settings = remote_settings(at.base_url, fallback="none")
        for _ in range(2):
            async with opened_parts(settings) as parts:
                await build_routing(settings, town, parts=parts).warm()

    assert len(at.texts) == len(set(at.texts)) > len(town)


@pytest.mark.requirement("M4")
async def test_a_board_of_a_service_known_from_before_works_before_its_first_answer(
    town: Catalog, remote_settings: Callable[..., Settings]
) -> None:
    with service("openai") as at:
        settings = remote_settings(at.base_url, fallback="none")
        for _ in range(2):
            async with opened_parts(settings) as parts:
                board = build_routing(settings, town, parts=parts)
                await board.warm()
                assert (await board.route(ASK)).encoder.startswith("openai")


async def test_a_model_that_became_another_under_its_name_is_an_error_and_words_answer(
    town: Catalog, remote_settings: Callable[..., Settings], caplog: pytest.LogCaptureFixture
) -> None:
    with service("openai") as at:
        settings = remote_settings(at.base_url, fallback="none")
        for dimensions in (32, 48):
            at.dimensions = dimensions
            async with opened_parts(settings) as parts:
                decision = await build_routing(settings, town, parts=parts).route(ASK)

    assert decision.encoder == ""
    assert TIDES in decision.active
    assert "Another model answers under the same name" in caplog.text


def test_without_a_section_the_encoder_is_in_process_and_has_no_fallback(tmp_path: Path) -> None:
    parts = default_parts(Settings(cache_dir=tmp_path, state_dir=tmp_path))

    assert isinstance(parts.encoder, OnnxEncoder)
    assert parts.fallback is None


@pytest.mark.parametrize(("fallback", "kind"), [("local", OnnxEncoder), ("none", type(None))])
def test_the_fallback_of_a_service_is_the_encoder_in_process_unless_it_is_switched_off(
    remote_settings: Callable[..., Settings], fallback: str, kind: type
) -> None:
    parts = default_parts(remote_settings("http://127.0.0.1:9/v1", fallback=fallback))

    assert isinstance(parts.encoder, RemoteEncoder)
    assert isinstance(parts.fallback, kind)


@pytest.mark.parametrize(
    ("section", "variable"),
    [
        ({"provider": "openai"}, "OPENAI_API_KEY"),
        ({"provider": "mistral"}, "MISTRAL_API_KEY"),
        ({"provider": "azure", "base_url": "https://x", "deployment": "d"}, "AZURE_OPENAI_API_KEY"),
        ({"provider": "compatible", "base_url": "http://x", "model": "m", "api_key_env": "MY_KEY"}, "MY_KEY"),
    ],
)
def test_a_key_that_is_missing_is_named_by_its_variable(
    section: dict[str, str], variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(variable, raising=False)

    with pytest.raises(ConfigError, match=f"The variable '{variable}' is not set"):
        default_parts(Settings(cache_dir=tmp_path, state_dir=tmp_path, encoder=section))


async def test_vectors_of_one_model_at_two_places_never_meet(
    town: Catalog, remote_settings: Callable[..., Settings]
) -> None:
    store = MemoryEmbeddings()
    with service("openai") as here, service("openai", dimensions=48) as there:
        for at in (here, there):
            settings = remote_settings(at.base_url, fallback="none")
            async with opened_parts(settings, embeddings=store) as parts:
                await build_routing(settings, town, parts=parts).warm()

    assert sorted(here.texts) == sorted(there.texts)


def test_the_log_says_once_that_a_service_is_down_and_once_that_it_is_back(
    town: Catalog, remote_settings: Callable[..., Settings], caplog: pytest.LogCaptureFixture
) -> None:
    async def turns() -> None:
        with service("openai") as at, caplog.at_level(logging.WARNING):
            settings = remote_settings(at.base_url)
            async with opened_parts(settings, fallback=Local()) as parts:
                board = build_routing(settings, town, parts=parts)
                await board.warm()
                at.answer = lambda *_: Answer(status=401)
                for number in range(3):
                    await board.route(f"{ASK} {number}")
                at.answer = lambda *_: RIGHT
                await board.route(f"{ASK} back")
                await rest_but_connections(board)

    asyncio.run(turns())

    said = [record.getMessage() for record in caplog.records if record.name == "pegboard.circuit_breaker"]
    assert len(said) == 2
    assert "401" in said[0]
    assert "the encoder in process ranks" in said[0]
    assert "answers again" in said[1]
