"""Text to index terms: identifiers split, any script segmented, English stemmed (P7)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache, wraps
from itertools import chain
from sys import intern
from typing import ParamSpec, TypeVar, cast

import Stemmer

ASCII_WORD = re.compile(r"[A-Za-z0-9]+")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])(?![A-Z]s(?![a-z]))")
"""Between the words of a camel-case identifier; the plural of an abbreviation (`URLs`) is one word."""
UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
"""Scripts written without blanks: Thai, Lao, Burmese, Khmer, kana, Han."""

FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a an the of to in on at by for from with and or as is are was were be been am do does did has have had "
        "i me my we us our you your he she it its they them their this that these those there here "
        "can could would should will shall may might must please so if then than also just very",
    )
)
"""Closed-class English words only: never a word that could name what a tool does."""
LONGEST, LONGEST_NAME, LONGEST_RUN = 2_000, 256, 64
"""Characters of texts, of names, and of runs without blanks, up to which their words are remembered: caches count
texts, and a few thousand long ones would fill the memory."""
P = ParamSpec("P")
T = TypeVar("T")


def split_identifier(text: str) -> str:
    """The text with blanks between the words of identifiers.

    >>> split_identifier("createIssue_v2 HTTPServer getURLs")
    'create Issue v2 HTTP Server get URLs'
    """
    return CAMEL.sub(" ", text.replace("_", " "))


def raw_words(text: str) -> list[str]:
    """Lower-case words of any script; runs without blanks become overlapping pairs of characters.

    >>> raw_words("createIssue in HTTPServer, 天气预报")
    ['create', 'issue', 'in', 'http', 'server', '天气', '气预', '预报']
    """
    return list(_recent(text) if len(text) <= LONGEST else _words_in(text))


@lru_cache(maxsize=64)
def _recent(text: str) -> tuple[str, ...]:
    """Several indexes read the words of one query."""
    return tuple(_words_in(text))


def _words_in(text: str) -> Iterator[str]:
    runs = _runs(text if text.isascii() else unicodedata.normalize("NFKC", text))
    return chain.from_iterable(map(_pieces, runs))


def remembered(most: int, longest: int = LONGEST) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A cache of what a function found in texts: so many results at most, and none of texts with more characters than
    ``longest``."""

    def with_cache(function: Callable[P, T]) -> Callable[P, T]:
        known = cast("Callable[P, T]", lru_cache(maxsize=most)(function))

        @wraps(function)
        def found(*texts: P.args, **none: P.kwargs) -> T:
            short = sum(map(len, cast("tuple[str, ...]", texts))) <= longest
            return (known if short else function)(*texts, **none)

        return found

    return with_cache


@remembered(32_768)
def known_words(text: str) -> tuple[str, ...]:
    """`raw_words`, remembered: for the texts of tools, which several indexes read."""
    return tuple(raw_words(text))


def terms(text: str) -> list[str]:
    """Index terms: words without function words, stemmed.

    >>> terms("Listing the repositories")
    ['list', 'repositori']
    """
    return [stem(word) for word in raw_words(text) if word not in FUNCTION_WORDS]


def _pieces(run: str) -> tuple[str, ...]:
    """The words of a run without blanks: a catalog repeats each many times, unless it is long."""
    return _repeated(run) if len(run) <= LONGEST_RUN else _cut(run)


@lru_cache(maxsize=65_536)
def _repeated(run: str) -> tuple[str, ...]:
    return tuple(map(intern, _cut(run)))


def _cut(run: str) -> tuple[str, ...]:
    return tuple(word for piece in CAMEL.split(run) for word in _segment(piece.casefold()))


def _runs(text: str) -> list[str]:
    """Runs of letters, digits and the marks on them: a vowel sign is part of its word (Hindi, Thai, Tamil)."""
    if text.isascii():
        return ASCII_WORD.findall(text)
    spaced = "".join(char if char.isalnum() or unicodedata.category(char)[0] == "M" else " " for char in text)
    return [run for run in spaced.split() if any(map(str.isalnum, run))]


def _segment(word: str) -> list[str]:
    if word.isascii():
        return [word]
    pieces: list[str] = []
    end = 0
    for match in UNSPACED.finditer(word):
        pieces += [word[end : match.start()]] if match.start() > end else []
        run = match.group()
        pieces += [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        end = match.end()
    return pieces + ([word[end:]] if end < len(word) else [])


def stem(word: str) -> str:
    """The stem of an English word; any other word unchanged, and so one that is longer than words are."""
    return _stemmed(word) if len(word) <= LONGEST_RUN else word


@lru_cache(maxsize=65_536)
def _stemmed(word: str) -> str:
    return intern(Stemmer.Stemmer("english", 0).stemWord(word)) if word.isascii() and word.isalpha() else word
