"""The lines of a long result that are about what was asked: those with its rare words."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

WORD = re.compile(r"\w+(?:[./:@#+-]+\w+)*")
DIGIT = re.compile(r"\d")
PART = re.compile(r"[^\W_]+")
MOST_TERMS = 600
"""Different words and pairs of words that are looked for: the last ones, as a question stands at the end of a long
message."""
MOST_SCANNED = 60_000_000
"""Characters of the text times terms, at most."""
MOST_SAID = 4_000
"""Characters of a message, or of a call's arguments, from its end, that tell what a call is for."""
SHORTEST = 2
LONGEST_PAIR = 80
MOST_SHARE = 0.25
"""Share of the lines that may have a term for it to say anything, and how many in a long result."""
MOST_LINES = 400
NAMED = 2.0
"""How much more a term with a digit weighs: the numbers and ids that say which one is meant."""
SHORT_LINE = 40
"""Characters that are added to each line's, so that the shortest do not weigh the most."""


NEWLINE = ord("\n")
KEY_BITS, HASH = 16, 617
Codes = npt.NDArray[np.uint32]
Keys = npt.NDArray[np.uint16]
Integers = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


def asked_by(*said: str) -> str:
    """What is asked, by messages and the arguments of a call, the least telling first.

    >>> asked_by("Which harbour is the deepest?", "", '{"sql": "SELECT * FROM harbours"}').count("harbour")
    2
    """
    return "\n".join(each[-MOST_SAID:] for each in said if each)


def asked_lines(lines: Sequence[str], asked: str, first: int = 0) -> list[int]:
    """The places of the lines from ``first`` on about what was asked, the best first.

    A line weighs ln²(lines / lines with the term) for each different term, over the root of its length: the cosine of
    tf-idf (Salton and Buckley 1988, https://doi.org/10.1016/0306-4573(88)90021-0), with lengths for norms. Terms are
    words, and pairs of words as they stand there.

    >>> asked_lines(["id  name", "7  Ann", "8  Bob", "9  Eve", "10  Joe"], "How old is Bob?")
    [2]
    """
    text = "\n".join(map(str.casefold, lines))
    terms = [*_terms(asked, min(MOST_TERMS, MOST_SCANNED // len(text) + 1))]
    most = min(MOST_LINES, max(1, int(MOST_SHARE * len(lines))))
    weights, found = np.zeros(len(lines)), np.zeros(len(lines), bool)
    norms = np.sqrt(SHORT_LINE + np.fromiter(map(len, lines), np.float64, len(lines)))
    for term, places in _places(text, terms):
        if len(places) <= most:
            weight = math.log(len(lines) / len(places)) ** 2 * (NAMED if DIGIT.search(term) else 1.0)
            weights[places] += weight / norms[places]
            found[places] = True
    return sorted(map(int, np.flatnonzero(found[first:]) + first), key=lambda place: (-weights[place], place))


def _terms(asked: str, most: int) -> Iterator[str]:
    """The last different words, the parts of those with signs in them, and pairs of neighbours."""
    said = asked.casefold()
    words = [*WORD.finditer(said)][-most:]
    pairs = {later.start(): said[one.start() : later.end()] for one, later in pairwise(words)}
    found: dict[str, None] = {}
    for word in reversed(words):
        pair = pairs.get(word.start(), "")
        for each in (word[0], *PART.findall(word[0]), pair if len(pair) <= LONGEST_PAIR and "\n" not in pair else ""):
            if len(each) >= SHORTEST:
                found[each] = None
    yield from [*found][:most]


def _places(text: str, terms: Sequence[str]) -> Iterator[tuple[str, Integers]]:
    """The terms that are found, with the lines in which each stands, int[lines], and goes on neither before nor behind.

    All are looked for in one pass: by their first two characters, at the beginnings of words. A term has at least two.
    """
    points = _points("\n" + text + "\n" * (max(map(len, terms), default=0) + 2))
    inside = _letters()[points]
    ends = np.flatnonzero(points == NEWLINE)[1:]
    begins = np.array([_points(term[:2]) for term in terms], np.uint32).reshape(-1, 2)
    wanted = _keys(begins[:, 0], begins[:, 1])
    known = np.zeros(1 << KEY_BITS, bool)
    known[wanted] = True
    keys = _keys(points[1:-1], points[2:])
    starts = np.flatnonzero(known[keys] & ~inside[:-2])
    starts = starts[np.argsort(keys[starts], kind="stable")]
    keys, starts = keys[starts], starts + 1
    ranges = (np.searchsorted(keys, wanted, side) for side in ("left", "right"))
    for term, begin, end in zip(terms, *ranges, strict=True):
        at = starts[begin:end]
        at = at[~inside[at + len(term)]]
        for place, point in enumerate(_points(term) if len(at) else ()):
            at = at[points[at + place] == point]
            if not len(at):
                break
        if len(at):
            lines = np.searchsorted(ends, at)
            yield term, lines[np.diff(lines, prepend=-1) > 0]


def _points(text: str) -> Codes:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))


def _keys(first: Codes, second: Codes) -> Keys:
    """A number for two characters, which others may share."""
    return (first * np.uint32(HASH) + second).astype(np.uint16)


@cache
def _letters() -> Flags:
    """Of each character whether it is a letter or a digit, bool[characters]."""
    every = np.arange(sys.maxunicode + 1, dtype=np.dtype("<u4")).tobytes().decode("utf-32-le", "surrogatepass")
    found = np.zeros(len(every), bool)
    for run in PART.finditer(every):
        found[run.start() : run.end()] = True
    return found
