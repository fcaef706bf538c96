from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from pegboard.spend_limits import Account, meters, nano_usd


@given(st.decimals(0, 10**6, allow_nan=False, allow_infinity=False))
def test_an_amount_is_rounded_up_by_less_than_a_billionth(usd: object) -> None:
    exact = Fraction(str(usd)) * 10**9

    assert exact <= nano_usd(str(usd)) < exact + 1


@given(st.tuples(st.text(), st.text()), st.tuples(st.text(), st.text()))
def test_sessions_of_different_keys_have_meters_of_their_own(one: tuple[str, str], other: tuple[str, str]) -> None:
    first, second = (meters(Account(session=session, key=key), "1970-01-01")[0] for key, session in (one, other))

    assert (first == second) == (one == other)
