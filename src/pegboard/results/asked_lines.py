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
MOST_SAID = 4_000
"""Characters of a message, or of a call's arguments, from its end, that tell what a call is for."""
SHORTEST = 2
LONGEST_PAIR = 80
MOST_SHARE = 0.25
"""Share of the lines that may have a term for it to say anything, and how many in a long result."""
MOST_LINES = 400
MOST_PLACES = 1_000
"""Lines about what was asked that are put in order: several times as many as are ever shown."""
NAMED = 2.0
"""How much more a term with a digit weighs: the numbers and ids that say which one is meant."""
SOME = 2
"""How many times as many places as lines that a term may have are looked at first, to leave out what is everywhere."""
SHORT_LINE = 40
"""Characters that are added to each line's, so that the shortest do not weigh the most."""


PREFIX = 8
"""Bytes of a term that are compared at once."""
MIXED = np.uint32(0x9E3779B1)
"""A factor that spreads three bytes over the bits above them (Knuth, The Art of Computer Programming 3, 6.4)."""
MOST_ASCII = 127
LOWER = ord("a") - ord("A")
LETTERS, DIGITS = 26, 10
"""Of ASCII."""
Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


def asked_by(*said: str) -> str:
    """What is asked, by messages and the arguments of a call, the least telling first.

    >>> asked_by("Which harbour is the deepest?", "", '{"sql": "SELECT * FROM harbours"}').count("harbour")
    2
    """
    return "\n".join(each[-MOST_SAID:] for each in said if each)


def asked_lines(lines: Sequence[str], asked: str, first: int = 0) -> list[int]:
    """The places of the lines from ``first`` on about what was asked, the best first; about `MOST_PLACES` at most.

    A line weighs ln²(lines / lines with the term) for each different term, over the root of its length: the cosine of
    tf-idf (Salton and Buckley 1988, https://doi.org/10.1016/0306-4573(88)90021-0), with bytes for norms. Terms are
    words, and pairs of words as they stand there.

    >>> asked_lines(["id  name", "7  Ann", "8  Bob", "9  Eve", "10  Joe"], "How old is Bob?")
    [2]
    """
    return asked_places(in_utf8("\n".join(lines)), asked, first)


def asked_places(text: bytes, asked: str, first: int = 0) -> list[int]:
    """The same of the lines of a text in UTF-8."""
    text = _folded(text) + b"\n"
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    norms = np.sqrt(SHORT_LINE + np.diff(ends, prepend=-1) - 1.0)
    most = min(MOST_LINES, max(1, int(MOST_SHARE * len(ends))))
    weights, found = np.zeros(len(ends)), np.zeros(len(ends), bool)
    for term, at in _found(text, [*_terms(asked, MOST_TERMS)]):
        places = _lines_with(ends, at, most)
        if len(places) <= most:
            weight = math.log(len(ends) / len(places)) ** 2 * (NAMED if DIGIT.search(term) else 1.0)
            weights[places] += weight / norms[places]
            found[places] = True
    kept = np.flatnonzero(found[first:]) + first
    worse = -weights[kept]
    if len(kept) > MOST_PLACES:
        good = worse <= np.partition(worse, MOST_PLACES)[MOST_PLACES]
        kept, worse = kept[good], worse[good]
    best: list[int] = kept[np.argsort(worse, kind="stable")].tolist()
    return best


def _lines_with(ends: Integers, at: Integers, most: int) -> Integers:
    """The numbers of the lines, which have these ends, in which there is any of the places, which ascend; of more than
    ``most``, only some."""
    if len(at) > SOME * most:
        some = _lines_with(ends, at[:: len(at) // (SOME * most) + 1], most)
        if len(some) > most:
            return some
    places = np.searchsorted(ends, at)
    new = places[1:] > places[:-1]
    return places if new.all() else places[np.concatenate(([True], new))]


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


def _found(text: bytes, terms: Sequence[str]) -> Iterator[tuple[str, Integers]]:
    """The terms that stand in the text, with where each does, int[times], and goes on neither before nor behind.

    All are looked for in one pass: the beginnings of words are grouped by their first three bytes, and a term is
    compared with those of its group. A term has at least two characters.
    """
    if not terms:
        return
    said = b"\n" + text + b"\n" * PREFIX
    inside = _inside(said)
    of_words = inside | (np.frombuffer(said, np.uint8) == ord("_"))
    starts = np.flatnonzero(of_words[1:-PREFIX] > inside[: -PREFIX - 1]) + 1
    coded = [in_utf8(term) for term in terms]
    kinds, groups = np.unique(_terms_kinds(coded), return_inverse=True)
    number = np.zeros(1 << 16, np.uint16)
    number[kinds] = np.arange(1, len(kinds) + 1)
    group = number[_kinds(_first(said, starts), inside[starts + 2])]
    kept = np.flatnonzero(group != 0)
    kept = kept[np.argsort(group[kept], kind="stable")]
    starts = starts[kept]
    prefixes = _prefixes(said, starts)
    bounds = np.searchsorted(group[kept], np.arange(1, len(kinds) + 2)).tolist()
    for term, code, of in zip(terms, coded, groups.tolist(), strict=True):
        begin, end = bounds[of], bounds[of + 1]
        if begin == end:
            continue
        its = np.uint64(int.from_bytes(code[:PREFIX], "little"))
        others = np.uint64(8 * max(0, PREFIX - len(code)))
        at = starts[begin:end][(prefixes[begin:end] ^ its) << others == 0]
        if not len(at):
            continue
        at = at[at + len(code) < len(said)]
        at = at[~inside[at + len(code)]] - 1
        if len(code) > PREFIX:
            at = np.array([each for each in at.tolist() if text.startswith(code, each)], np.intp)
        if len(at):
            yield term, at


def _terms_kinds(coded: Sequence[bytes]) -> npt.NDArray[np.uint32]:
    said = b"".join(each + b"\0" * PREFIX for each in coded)
    begins = np.cumsum([0, *(len(each) + PREFIX for each in coded[:-1])])
    return _kinds(_first(said, begins), _inside(said)[begins + 2])


def _first(said: bytes, begins: Integers) -> npt.NDArray[np.uint32]:
    """The four bytes from each place on, as one number, of which the first byte is the lowest."""
    every = np.ndarray((len(said) - PREFIX + 1,), "<u4", said, strides=(1,))
    return every[begins].astype(np.uint32, copy=False)


def _prefixes(said: bytes, begins: Integers) -> npt.NDArray[np.uint64]:
    """The eight bytes from each place on, as one number, of which the first byte is the lowest."""
    every = np.ndarray((len(said) - PREFIX + 1,), "<u8", said, strides=(1,))
    return every[begins].astype(np.uint64, copy=False)


def _kinds(first: npt.NDArray[np.uint32], third: Flags) -> npt.NDArray[np.uint32]:
    """Numbers below 2^16 for the first three of four bytes; the ``third`` does not count where it is of no word."""
    begins = first & (np.uint32(0xFFFF) + third * np.uint32(0xFF0000))
    return begins * MIXED >> np.uint32(16)


def _folded(text: bytes) -> bytes:
    """The text in lower case. Only what is no ASCII is folded by Python, which is slow on a long text."""
    lower = text.lower()
    if text.isascii():
        return lower
    data = np.frombuffer(lower, np.uint8)
    others = np.flatnonzero(data > MOST_ASCII)
    said = data[others].tobytes().decode("utf-8", "surrogatepass")
    changed = said.casefold()
    if said == changed:
        return lower
    if any(len(in_utf8(each)) != len(in_utf8(each.casefold())) for each in set(said)):
        return in_utf8(text.decode("utf-8", "surrogatepass").casefold())
    data = data.copy()
    data[others] = np.frombuffer(in_utf8(changed), np.uint8)
    return data.tobytes()


def in_utf8(text: str) -> bytes:
    """A text of JSON may have halves of surrogate pairs in it."""
    return text.encode("utf-8", "surrogatepass")


def _inside(said: bytes) -> Flags:
    """Of each byte whether it is of a letter or a digit."""
    data = np.frombuffer(said, np.uint8)
    inside: Flags = (data | LOWER) - ord("a") < LETTERS
    inside |= data - ord("0") < DIGITS
    others = np.flatnonzero(data > MOST_ASCII)
    if len(others):
        text = data[others].tobytes().decode("utf-8", "surrogatepass")
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))
        inside[others] = np.repeat(_letters()[points], 2 + (points > 0x7FF) + (points > 0xFFFF))
    return inside


@cache
def _letters() -> Flags:
    """Of each character whether it is a letter or a digit, bool[characters]."""
    every = np.arange(sys.maxunicode + 1, dtype=np.dtype("<u4")).tobytes().decode("utf-32-le", "surrogatepass")
    found = np.zeros(len(every), bool)
    for run in PART.finditer(every):
        found[run.start() : run.end()] = True
    return found
