"""What use teaches a router: which tools rise, by how much at most, and when the taught order is used."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.catalog import Catalog
from pegboard.errors import StoreError, ValueRefused
from pegboard.habit_trial import ALPHA, FIRST, LONGEST_EPOCH, Trial, observation, trial_of
from pegboard.habits import MOST_BOOST, NAMED, TRIAL, Habit, HabitKey, boosted, habits_of, within_encoder
from pegboard.model import Floats, Mask, Scores, Server, ServerName, ToolId
from pegboard.routing.habit_book import MOST_KEYS, REFRESH_SECONDS, HabitBook
from pegboard.routing.habit_learner import PART, HabitLearner
from pegboard.routing.profiles import PROFILES
from pegboard.routing.select import choose
from pegboard.stores import MemoryHabits
from pegboard.testing import FakeClock, fake_tool

ANN = habits_of("ann", "mcp")
WIDTH = 8
TOOLS = [fake_tool(f"tool{number}", server="s") for number in range(20)]
CATALOG = Catalog.build([(Server(name=ServerName("s")), TOOLS)])
ALL = np.ones(len(TOOLS), np.bool_)
GOOD, POOR = CATALOG.tools[0].id, CATALOG.tools[12].id


def asked(direction: int = 0, values: Floats | None = None) -> Scores:
    """Scores that fall in catalog order, for a query in one of the directions."""
    falling = np.linspace(0.4, 0.02, len(TOOLS)).astype(np.float32) if values is None else values
    return Scores(values=falling, scale="probability", query_vector=np.eye(WIDTH, dtype=np.float32)[direction])


def learner(store: MemoryHabits | None = None, *, control: float = 0.0, clock: FakeClock | None = None) -> HabitLearner:
    return HabitLearner(HabitBook(clock or FakeClock(), store, control=control))


def adjust(taught: HabitLearner, scores: Scores, habits: str = ANN, among: Mask = ALL, query: str = "q") -> Scores:
    return taught.adjusted(habits, query, scores, CATALOG.tools, among, encoder="e")


def use(taught: HabitLearner, times: int, tool: ToolId = POOR, habits: str = ANN, direction: int = 0) -> None:
    """The same kind of request leads to a call of one tool, so many times."""
    for number in range(times):
        adjust(taught, asked(direction), habits, query=f"{direction} {number}")
        taught.called(habits, f"{direction} {number}", [tool], ended=True)


def rank(scores: Scores, tool: ToolId) -> int:
    order = [CATALOG.tools[place].id for place in np.argsort(-scores.values, kind="stable")]
    return order.index(tool)


def test_a_tool_that_is_called_after_such_words_rises_once_the_evidence_suffices() -> None:
    taught = learner()
    first = adjust(taught, asked())

    use(taught, 40)

    later = adjust(taught, asked())
    assert (rank(first, POOR), rank(later, POOR)) == (12, 0)
    assert PART in later.parts


def test_nothing_is_taught_before_there_is_evidence() -> None:
    taught = learner()
    use(taught, 5)

    scores = asked()
    assert adjust(taught, scores) is scores


def test_other_words_and_other_keys_are_left_alone() -> None:
    taught = learner()
    use(taught, 40)

    other = asked(direction=3)
    assert rank(adjust(taught, other), POOR) == 12
    assert adjust(taught, asked(), habits_of("bob", "mcp")).values.tolist() == asked().values.tolist()


def test_the_control_group_is_measured_and_never_taught() -> None:
    taught = learner(control=1.0)
    use(taught, 40)

    scores = asked()
    assert adjust(taught, scores) is scores
    assert taught.book.of(within_encoder(ANN, "e")).trial.epoch > 0


def test_it_returns_to_the_untaught_order_when_the_taught_one_is_worse() -> None:
    taught = learner()
    use(taught, 40)
    known = taught.book.of(within_encoder(ANN, "e"))
    assert known.is_used

    calls = 0
    while known.is_used and calls < LONGEST_EPOCH + 14:  # calls that only the untaught order finds
        known.observe(observation(untaught=True, taught=False))
        calls += 1

    assert not known.is_used


def test_a_tool_that_is_offered_and_not_called_sinks() -> None:
    taught = learner()
    use(taught, 60)

    values = adjust(taught, asked()).values
    assert values[CATALOG.position[GOOD]] < asked().values[CATALOG.position[GOOD]]


def test_a_request_without_any_call_teaches_nothing() -> None:
    taught = learner()
    adjust(taught, asked())
    taught.called(ANN, "q", [], ended=True)
    taught.called(ANN, "unknown", [GOOD])

    assert taught.book.of(within_encoder(ANN, "e")).vectors() == {}


def test_one_call_counts_once_however_often_the_loop_repeats_it() -> None:
    taught = learner()
    adjust(taught, asked())
    for _ in range(3):
        adjust(taught, asked())
        taught.called(ANN, "q", [POOR])

    assert taught.book.of(within_encoder(ANN, "e")).trial.calls == 1


def test_a_call_after_a_search_counts_for_its_session() -> None:
    taught = learner()
    adjust(taught, asked())
    taught.searched("one", ANN, "q")
    taught.called_after_search("one", POOR)
    taught.called_after_search("two", GOOD)

    assert set(taught.book.of(within_encoder(ANN, "e")).vectors()) == {POOR}


@pytest.mark.parametrize("scale", ["cosine", "points", "utility"])
def test_scores_that_are_no_probabilities_are_left_alone(scale: str) -> None:
    taught = learner()
    use(taught, 40)
    scores = Scores(values=asked().values, scale=scale, query_vector=asked().query_vector)  # type: ignore[arg-type]

    assert adjust(taught, scores) is scores


async def test_replicas_share_habits_and_the_trial_through_the_store() -> None:
    store, clock = MemoryHabits(), FakeClock()
    one, two = learner(store, clock=clock), learner(store, clock=clock)
    use(one, 40)
    await one.book.flush()
    adjust(two, asked())
    await two.book.flush()

    assert rank(adjust(two, asked()), POOR) == 0


async def test_what_was_forgotten_in_the_store_is_forgotten_in_the_process() -> None:
    store, clock = MemoryHabits(), FakeClock()
    taught = learner(store, clock=clock)
    use(taught, 40)
    await taught.book.flush()
    store._known.clear()

    clock.advance(REFRESH_SECONDS)
    await taught.book.flush()

    scores = asked()
    assert adjust(taught, scores) is scores


class Away(MemoryHabits):
    """A store that does not answer until it is told to."""

    is_back = False

    async def add(self, sums: object) -> None:
        if not self.is_back:
            raise StoreError("gone", remedy="wait")
        await super().add(sums)  # type: ignore[arg-type]


async def test_what_a_store_missed_is_told_when_it_is_back() -> None:
    store = Away()
    taught = learner(store)
    use(taught, 3)
    await taught.book.flush()
    store.is_back = True
    await taught.book.flush()

    key = within_encoder(ANN, "e")
    found = await store.read([key])
    assert HabitKey(key, *POOR) in found
    assert any(row.server == TRIAL for row in found)


CALLERS = [f"caller{number}" for number in range(MOST_KEYS + 100)]
SUMS = np.ones(WIDTH, np.float32)


async def test_what_more_callers_teach_between_two_flushes_than_are_kept_reaches_the_store() -> None:
    store = Away()
    book = HabitBook(FakeClock(), store)
    for caller in CALLERS:
        book.of(caller).add(GOOD, SUMS)
    assert CALLERS[0] not in book._known

    await book.flush()
    store.is_back = True
    book.of(CALLERS[0]).add(GOOD, SUMS)
    await book.flush()

    found = await store.read(CALLERS)
    assert {row.key for row in found} == set(CALLERS)
    assert found[HabitKey(CALLERS[0], *GOOD)].sums.tolist() == (2 * SUMS).tolist()
    assert not book._left


async def test_a_store_that_is_away_costs_no_more_memory_than_the_most_rows_of_those_who_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pegboard.routing.habit_book.MOST_LEFT", 60)
    book = HabitBook(FakeClock(), Away())
    for caller in CALLERS:
        for tool in (GOOD, POOR):
            book.of(caller).add(tool, SUMS)
        await book.flush()

    assert list(book._left) == CALLERS[70:100]
    assert book._rows_left == sum(len(left.new) for left in book._left.values()) == 60


class Refusing(MemoryHabits):
    """It keeps nothing with a NUL, as PostgreSQL, and nothing of one tool while it is away."""

    is_back = False

    async def add(self, sums: Mapping[HabitKey, Floats]) -> None:
        self.check(part for row in sums for part in row)
        if not self.is_back and any(row.name == POOR.name for row in sums):
            raise StoreError("It does not answer.", remedy="Wait.")
        await super().add(sums)

    async def read(self, keys: Sequence[str]) -> Mapping[HabitKey, Habit]:
        self.check(keys)
        return await super().read(keys)

    @staticmethod
    def check(texts: Iterable[str]) -> None:
        if any("\0" in text for text in texts):
            raise ValueRefused("It has a NUL.", remedy="Check the value.")


async def test_what_was_stored_before_the_store_went_away_is_added_once() -> None:
    store = Refusing()
    book = HabitBook(FakeClock(), store)
    for tool in (GOOD, ToolId("s", "x\0"), ToolId("s", "other"), POOR):
        book.of(ANN).add(tool, SUMS)
    for _ in range(3):
        await book.flush()
    store.is_back = True
    await book.flush()

    found = await store.read([ANN])
    assert {row.name: habit.sums[0] for row, habit in found.items()} == {GOOD.name: 1, "other": 1, POOR.name: 1}


async def test_a_caller_whose_name_the_store_refuses_keeps_no_other_from_being_known() -> None:
    refusing = Refusing()
    await refusing.add({HabitKey(ANN, *GOOD): SUMS})
    book = HabitBook(FakeClock(), refusing)
    book.of("eve\0")
    book.of(ANN)
    await book.flush()

    assert set(book.of(ANN).stored) == {GOOD}


async def test_other_tasks_run_between_the_keys_of_a_flush() -> None:
    store = MemoryHabits()
    book = HabitBook(FakeClock(), store)
    for caller in CALLERS:
        book.of(caller).add(GOOD, SUMS)
    flush, turns = asyncio.create_task(book.flush()), 0
    while not flush.done():
        await asyncio.sleep(0)
        turns += 1

    assert turns >= MOST_KEYS
    assert all(book.of(caller).stored for caller in CALLERS[100:])


floats = st.lists(st.floats(0, 0.9375, width=32), min_size=20, max_size=20).map(lambda each: np.array(each, np.float32))
boosts = st.lists(st.floats(-1e6, 1e6, width=32), min_size=20, max_size=20).map(lambda each: np.array(each, np.float32))


@given(values=floats, raised=boosts)
def test_no_boost_moves_log_odds_by_more_than_the_most(values: Floats, raised: Floats) -> None:
    taught = boosted(values, raised)

    inside = (values > 1e-6) & (values < 0.9)
    odds = [np.log(each[inside] / (1 - each[inside])).astype(np.float64) for each in (values, taught)]
    assert np.all(np.abs(odds[1] - odds[0]) <= MOST_BOOST + 1e-2)
    assert np.all(taught[values == 0] == 0)
    assert np.all(taught < NAMED)


@given(
    values=floats,
    raised=boosts,
    pinned=st.sets(st.integers(0, 19), max_size=4),
    barred=st.sets(st.integers(0, 19), max_size=10),
    k=st.integers(1, 10),
)
def test_no_boost_costs_a_pinned_tool_its_place_or_lifts_one_outside_rights(
    values: Floats, raised: Floats, pinned: set[int], barred: set[int], k: int
) -> None:
    scores = Scores(values=boosted(values, raised), scale="probability", least_share={0.9: 0.01})
    eligible, fixed = (np.isin(np.arange(20), list(places)) for places in (set(range(20)) - barred, pinned))

    found = choose(scores, eligible, pinned=fixed, tokens=[10] * 20, profile=PROFILES["hybrid"].with_overrides(k=k))

    assert set(found.chosen.tolist()) >= pinned - barred
    assert barred.isdisjoint(found.chosen.tolist())


@given(values=floats, raised=boosts)
def test_tools_that_the_request_names_stay_first(values: Floats, raised: Floats) -> None:
    values = values.copy()
    values[7] = NAMED

    assert int(np.argmax(boosted(values, raised))) == 7


@given(calls=st.lists(st.sampled_from([True, False]), max_size=LONGEST_EPOCH))
def test_an_epoch_ends_when_the_martingale_reaches_its_bound_or_it_is_long(calls: list[bool]) -> None:
    wealth, trial = 1.0, Trial()
    for better in calls:
        wealth *= 1.25 if better else 0.75
        trial = Trial(taught=trial.taught + better, untaught=trial.untaught + (not better))
        following = trial.next()
        assert (following is not None and following.is_used) == (wealth >= 1 / ALPHA * (1 - 1e-9))
        if following is not None:
            return
    assert (trial.next() is None) == (len(calls) < LONGEST_EPOCH)


def test_a_taught_order_that_is_no_better_is_hardly_ever_used() -> None:
    """Ville's inequality: at most α of all trials, however often one looks."""
    random, wrong, trials = np.random.default_rng(1), 0, 2_000
    for _ in range(trials):
        trial = Trial()
        for better in random.random(LONGEST_EPOCH) < 0.5:
            trial = Trial(taught=trial.taught + better, untaught=trial.untaught + (not better))
            following = trial.next()
            if following is not None:
                wrong += following.is_used
                break

    assert wrong / trials <= ALPHA


def test_of_two_rows_of_an_epoch_the_untaught_one_counts() -> None:
    rows = {Trial(epoch=2, is_used=used).row: np.zeros(4, np.float32) for used in (True, False)}

    assert not trial_of(rows).is_used


def test_a_call_that_neither_order_finds_first_counts_for_neither() -> None:
    assert observation(untaught=False, taught=False).tolist() == [0, 0, 0, 1]
    assert FIRST == 5
