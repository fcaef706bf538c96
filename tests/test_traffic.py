from __future__ import annotations

import pytest

from pegboard.traffic import MOST, Seen, Traffic, Turned


def seen(conversations: int, turns: int) -> Seen:
    """Every other later turn brings news; half of the conversations begin soon after another."""
    found = Seen()
    for talk in range(conversations):
        for number in range(turns):
            found = found.after(
                Turned(
                    first=number == 0,
                    ahead=400 if number else 80,
                    wanted=900,
                    added=200,
                    called=50,
                    changed=number % 2 == 0,
                    kept=talk % 2 == 0,
                )
            )
    return found


def test_of_a_key_that_nothing_is_known_of_the_priors_hold() -> None:
    assert Seen().traffic(system=800) == Traffic(system=800)


def test_what_is_seen_outweighs_the_priors() -> None:
    found = seen(200, 5).traffic(system=500)

    assert found.turns == pytest.approx(5, rel=0.01)
    assert (found.asked, found.growth, found.wanted) == pytest.approx((80, 400, 900), rel=0.01)
    assert (found.added, found.called, found.news) == pytest.approx((200, 50, 0.5), rel=0.01)


def test_how_often_others_keep_the_cache_warm_is_learnt_from_when_conversations_begin() -> None:
    assert seen(200, 5).traffic(system=0).kept == pytest.approx(0.5, rel=0.01)


def test_single_turns_teach_that_conversations_are_short() -> None:
    assert seen(100, 1).traffic(system=0).turns < 1.1


def test_what_is_long_ago_counts_less_and_the_means_stay() -> None:
    long = seen(int(MOST) + 1, 2)

    assert long.conversations == MOST / 2 + 1
    assert long.traffic(system=0).turns == pytest.approx(2, rel=0.01)


def test_sums_that_are_joined_are_those_of_all_turns_together() -> None:
    joined = seen(20, 5).joined(seen(30, 3))

    assert (joined.conversations, joined.requests, joined.later) == (50, 190, 140)
    assert joined.kept == seen(20, 5).kept + seen(30, 3).kept


@pytest.mark.parametrize("conversations", [1, int(MOST) - 1, int(MOST), int(MOST) + 5])
@pytest.mark.parametrize("first", [True, False])
def test_a_turn_that_is_joined_is_a_turn_more(conversations: int, first: bool) -> None:
    known = seen(conversations, 2)
    turn = Turned(first=first, ahead=100, wanted=300, added=20, called=10, changed=True, kept=True, alike=True)

    assert known.joined(Seen().after(turn)) == known.after(turn)


def test_where_enough_has_been_seen_it_counts_half_beside_what_is_joined_to_it() -> None:
    known = Seen(conversations=MOST, requests=3 * MOST, asked=80 * MOST)

    joined = known.joined(Seen(conversations=10, requests=60, asked=100))

    assert joined == Seen(conversations=MOST / 2 + 10, requests=1.5 * MOST + 60, asked=40 * MOST + 100)
