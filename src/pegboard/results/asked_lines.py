"""The lines of a long result that are about what was asked: those with its rare words."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

WORD = re.compile(r"\w+(?:[./:@#+-]+\w+)*")
DIGIT = re.compile(r"\d")
PART = re.compile(r"[^\W_]+")
MOST_TERMS = 600
"""Different words and pairs of words that are looked for: the last ones, as a question stands at the end of a long
message."""
MOST_SCANNED = 60_000_000
"""Characters that are looked through for all terms together: some 40 ms."""
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
    text = "\n".join(lines).casefold()
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    most = min(MOST_LINES, max(1, int(MOST_SHARE * len(lines))))
    weights: defaultdict[int, float] = defaultdict(float)
    for term in _terms(asked, min(MOST_TERMS, MOST_SCANNED // len(text) + 1)):
        places: list[int] = []
        for place in _places(text, term, starts):
            places.append(place)
            if len(places) > most:
                break
        else:
            weight = math.log(len(lines) / max(1, len(places))) ** 2 * (NAMED if DIGIT.search(term) else 1.0)
            for place in places:
                weights[place] += weight / math.sqrt(SHORT_LINE + len(lines[place]))
    return sorted((place for place in weights if place >= first), key=lambda place: (-weights[place], place))


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


def _places(text: str, term: str, starts: Sequence[int]) -> Iterator[int]:
    """The lines with a term that goes on neither before nor behind."""
    at = text.find(term)
    while at >= 0:
        end = at + len(term)
        if text[at - 1 : at].isalnum() or text[end : end + 1].isalnum():
            at = text.find(term, end)
            continue
        place = bisect_right(starts, at) - 1
        yield place
        at = text.find(term, starts[place + 1])
