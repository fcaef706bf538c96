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
NAMED = 2.0
"""How much more a term with a digit weighs: the numbers and ids that say which one is meant."""
SHORT_LINE = 40
"""Characters that are added to each line's, so that the shortest do not weigh the most."""


PREFIX = 8
"""Bytes of a term that are compared at once."""
MOST_ASCII = 127
ASCII = bytes(range(MOST_ASCII + 1))
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
    """The places of the lines from ``first`` on about what was asked, the best first.

    A line weighs ln²(lines / lines with the term) for each different term, over the root of its length: the cosine of
    tf-idf (Salton and Buckley 1988, https://doi.org/10.1016/0306-4573(88)90021-0), with bytes for norms. Terms are
    words, and pairs of words as they stand there.

    >>> asked_lines(["id  name", "7  Ann", "8  Bob", "9  Eve", "10  Joe"], "How old is Bob?")
    [2]
    """
    text = _folded("\n".join(lines)) + b"\n"
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    norms = np.sqrt(SHORT_LINE + np.diff(ends, prepend=-1) - 1.0)
    most = min(MOST_LINES, max(1, int(MOST_SHARE * len(lines))))
    weights, found = np.zeros(len(lines)), np.zeros(len(lines), bool)
    for term, at in _found(text, [*_terms(asked, MOST_TERMS)]):
        places = np.searchsorted(ends, np.sort(at))
        places = places[np.diff(places, prepend=-1) > 0]
        if len(places) <= most:
            weight = math.log(len(lines) / len(places)) ** 2 * (NAMED if DIGIT.search(term) else 1.0)
            weights[places] += weight / norms[places]
            found[places] = True
    kept = np.flatnonzero(found[first:]) + first
    best: list[int] = kept[np.lexsort((kept, -weights[kept]))].tolist()
    return best


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

    All are looked for in one pass: the beginnings of words are sorted by their first bytes, where those of a term are a
    range. A term has at least two characters.
    """
    data = np.frombuffer(b"\n" + text + b"\n" * PREFIX, np.uint8)
    inside = _inside(data)
    coded = [term.encode("utf-8", "surrogatepass") for term in terms]
    least, most = (
        np.frombuffer(b"".join(each[:PREFIX].ljust(PREFIX, fill) for each in coded), ">u8").astype(np.uint64)
        for fill in (b"\0", b"\xff")
    )
    known = np.zeros(1 << 16, bool)
    known[least >> np.uint64(48)] = True
    starts = np.flatnonzero(~inside[: -PREFIX - 1] & (inside | (data == ord("_")))[1:-PREFIX]) + 1
    starts = starts[known[data[starts].astype(np.uint16) << 8 | data[starts + 1]]]
    prefixes = np.lib.stride_tricks.sliding_window_view(data, PREFIX)[starts].view(">u8").ravel().astype(np.uint64)
    order = np.argsort(prefixes)
    prefixes, starts = prefixes[order], starts[order]
    begins, ends = np.searchsorted(prefixes, least), np.searchsorted(prefixes, most, "right")
    for term, code, begin, end in zip(terms, coded, begins.tolist(), ends.tolist(), strict=True):
        at = starts[begin:end]
        at = at[at + len(code) < len(data)]
        at = at[~inside[at + len(code)]] - 1
        if len(code) > PREFIX:
            at = np.array([each for each in at.tolist() if text.startswith(code, each)], np.intp)
        if len(at):
            yield term, at


def _folded(text: str) -> bytes:
    """The text in lower case. Only ASCII is changed where nothing else has a case, which is the faster way."""
    coded = text.encode("utf-8", "surrogatepass")
    others = coded.translate(None, ASCII).decode("utf-8", "surrogatepass")
    return coded.lower() if others == others.casefold() else text.casefold().encode("utf-8", "surrogatepass")


def _inside(data: Bytes) -> Flags:
    """Of each byte whether it is of a letter or a digit."""
    inside = np.frombuffer(data.tobytes().translate(_letters()[:128].tobytes().ljust(256, b"\0")), bool)
    if (others := data > MOST_ASCII).any():
        text = data[others].tobytes().decode("utf-8", "surrogatepass")
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.dtype("<u4"))
        inside = inside.copy()
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
