"""Whether offering programs costs less than single calls: the break-even rule of `programs = "auto"`.

All sums are in tokens of uncached input, as a provider with a prompt cache that is empty at first bills a whole
conversation: what was read before costs a tenth, what is new a quarter more, what the model writes five times as much.
A task of n calls with results of r tokens takes n + 1 requests with single calls, and each result stays in the prompt.
A program takes two requests, one more where it looks at a result first, and one more where it is written again; it is
longer than a call, and every conversation carries its definition. Both ways begin with the definitions and, where tools
have to be searched for, with a search: what they have in common counts too, as it makes the share that a program saves
smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pegboard.settings.program_settings import ProgramSettings

READ, WRITTEN, OUTPUT = 0.1, 1.25, 5.0
"""What a token costs, beside one of uncached input: read from the cache, written to it, and generated."""
CALL = 45.0
"""Tokens of one call, as the model writes it."""
PROGRAM = 110.0
"""Tokens of a program, which loops over its calls."""
PRINTED = 60.0
"""Tokens that a program prints."""
DEFINITION = 150.0
"""Tokens of the definition of `run_program`."""
TASK = 60.0
"""Tokens of what the user asks."""
SEARCH, FOUND = 15.0, 620.0
"""Tokens of a call of `search_tools`, and of what it finds."""
LOOKS, LOOK, SEEN = 0.5, 45.0, 80.0
"""The share of tasks in which a short program looks at a result first, as no definition says its form; the tokens of
that program, and of what it prints."""
AGAIN = 0.25
"""The share of programs that are written a second time, as the first one failed. Not measured: no model took part."""
LEAST_TOOLS = 11
"""Up to ten tools, programs are not offered unless the settings say how many calls a task needs: such boards are listed
whole, and tasks rarely need many of them."""
EXPECTED_CALLS = 4.0
"""Calls of a task on a larger board, where the settings say nothing."""
MARGIN = 0.8
"""A program has to cost at most so much of single calls: the rule is about tasks that nobody has seen yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOffer:
    """Whether `run_program` is offered, and why: `on`, `off`, `pays`, `small board`, `few tools` or `loses`."""

    offered: bool
    why: str


def offer(settings: ProgramSettings, *, tools: int, listed: float, small: bool, searches: bool = True) -> ProgramOffer:
    """The decision for a board of so many ``tools``, of which definitions of ``listed`` tokens are in every request.
    ``small`` is whether the board is listed whole because it is small, ``searches`` whether tools are searched for.

    >>> offer(ProgramSettings(mode="auto"), tools=100, listed=1500, small=False).why
    'pays'
    >>> offer(ProgramSettings(mode="auto"), tools=10, listed=1500, small=False).why
    'small board'
    >>> offer(ProgramSettings(mode="auto", expected_calls=8), tools=10, listed=1500, small=False, searches=False).why
    'pays'
    """
    if settings.mode != "auto":
        return ProgramOffer(offered=settings.mode == "on", why=settings.mode)
    calls = settings.expected_calls
    if calls is None and (small or tools < LEAST_TOOLS):
        return ProgramOffer(offered=False, why="small board")
    calls = EXPECTED_CALLS if calls is None else calls
    pays = pays_off(calls, settings.expected_tokens, listed, searches=searches)
    return ProgramOffer(offered=pays, why="pays" if pays else "loses")


def pays_off(calls: float, tokens: float, listed: float, *, searches: bool = False, begun: bool = False) -> bool:
    """Whether a program is expected to cost less for a task of so many calls with results of so many tokens each.
    ``begun`` is whether the ``listed`` tokens are in the cache already.

    >>> pays_off(calls=8, tokens=400, listed=1500), pays_off(calls=1, tokens=100, listed=1500)
    (True, False)
    """
    front = {"searches": searches, "begun": begun}
    return program_bill(listed, **front) <= MARGIN * single_bill(calls, tokens, listed, **front)


def single_bill(calls: float, tokens: float, listed: float, *, searches: bool = False, begun: bool = False) -> float:
    """Expected cost of a task with single calls."""
    return _bill(listed, TASK, [(calls, CALL, tokens)], searches=searches, begun=begun)


def program_bill(listed: float, *, searches: bool = False, begun: bool = False) -> float:
    """Expected cost of the same task with a program; it does not depend on the calls, which only the gateway sees."""
    rounds = [(LOOKS, LOOK, SEEN), (1 + AGAIN, PROGRAM, PRINTED)]
    return _bill(listed, DEFINITION + TASK, rounds, searches=searches, begun=begun)


def _bill(
    listed: float, new: float, rounds: Sequence[tuple[float, float, float]], *, searches: bool, begun: bool
) -> float:
    """The bill of a conversation whose first prompt has ``listed`` and ``new`` tokens. In a round, so many times, the
    model writes so many tokens, and so many come back; each is read again with every later one."""
    bill, context = (READ if begun else WRITTEN) * listed + WRITTEN * new, listed + new
    for times, written, read in [*([(1.0, SEARCH, FOUND)] if searches else []), *rounds]:
        step = written + read
        bill += times * (OUTPUT * written + WRITTEN * step)
        bill += READ * times * (context + step * max(0.0, times - 1) / 2)
        context += times * step
    return bill
