"""Groups one server's tools by the nouns that their names share, not the verbs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from pegboard.retrieval.name_words import Word, by_frequency, words_of, words_that_differ, written

MOST_GROUPS = 19
"""With the server's own category for the rest, at most 20 categories."""
LEAST_MEMBERS = 3
LARGE = 20
"""Larger groups are split if possible."""
BROAD = 0.4
"""Share of the names from which on a word only groups what narrower words leave."""
LEADING = 0.8
"""Share of the tools that first words must group to count as a name space."""


def groups_by_name(names: Sequence[str], server: str = "") -> tuple[str, ...]:
    """For each name the label of its group, or empty; independent of the order of the names.

    If the first words are a name space (`tabs_open`, `cookies_clear`), they make the groups; otherwise the words that
    most names share do (`create_issue`, `list_issues`), narrow ones before broad ones and words of the server's name. A
    large group is split again if there are then at most `MOST_GROUPS`.
    """
    of_server = frozenset(word.stem for word in words_of(server))
    labels = _grouped(names, of_server)
    while (split := _split_largest(names, labels, of_server)) is not None:
        labels = split
    return labels


def _grouped(names: Sequence[str], of_server: frozenset[str]) -> tuple[str, ...]:
    words = words_that_differ(names)
    keys = _largest([next((word.stem for word in of_name[:1] if word.is_about), "") for of_name in words])
    if len(set(filter(None, keys))) < 2 or sum(map(bool, keys)) < LEADING * len(names):
        keys = _cover([{word.stem for word in of_name if word.is_about} for of_name in words], of_server)
    return _labels(keys, words)


def _split_largest(names: Sequence[str], labels: Sequence[str], of_server: frozenset[str]) -> tuple[str, ...] | None:
    """The labels with the largest splittable group split; tools that no part takes keep their label."""
    sizes = Counter(filter(None, labels))
    for label in (each for each in by_frequency(sizes) if sizes[each] > LARGE):
        members = [place for place, each in enumerate(labels) if each == label]
        parts = dict(zip(members, _grouped([names[place] for place in members], of_server), strict=True))
        room = MOST_GROUPS - len(sizes)
        largest = by_frequency(Counter(filter(None, parts.values())))[:room]
        if len(largest) > 1:
            return tuple(
                f"{each} {parts[place]}" if parts.get(place) in largest else each for place, each in enumerate(labels)
            )
    return None


def _cover(about: Sequence[set[str]], of_server: frozenset[str]) -> list[str]:
    """For each name the word it is grouped by: repeatedly the word that most ungrouped names share."""
    uses = Counter(word for words in about for word in words)
    late = {word for word, times in uses.items() if times > BROAD * len(about) or word in of_server}
    keys = [""] * len(about)
    for allowed in (uses.keys() - late, late):
        while len(set(filter(None, keys))) < MOST_GROUPS:
            left = Counter(word for words, key in zip(about, keys, strict=True) if not key for word in words & allowed)
            best = next(iter(by_frequency(left)), "")
            if left[best] < LEAST_MEMBERS:
                break
            keys = [key or (best if best in words else "") for words, key in zip(about, keys, strict=True)]
    return keys


def _largest(keys: Sequence[str]) -> list[str]:
    """The keys that enough names share; others become empty."""
    sizes = Counter(filter(None, keys))
    kept = {key for key in by_frequency(sizes)[:MOST_GROUPS] if sizes[key] >= LEAST_MEMBERS}
    return [key if key in kept else "" for key in keys]


def _labels(keys: Sequence[str], words: Sequence[Sequence[Word]]) -> tuple[str, ...]:
    """Labels in the most frequent spelling, with an adjacent word that nearly all members have: pull request."""
    members: dict[str, list[Sequence[Word]]] = {}
    for key, of_name in zip(keys, words, strict=True):
        if key:
            members.setdefault(key, []).append(of_name)
    labels = {key: _label(key, of_key) for key, of_key in members.items()}
    return tuple(labels.get(key, "") for key in keys)


def _label(key: str, members: Sequence[Sequence[Word]]) -> str:
    pairs = Counter(pair for words in members for pair in set(_pairs(words)) if key in pair)
    phrase = min((pair for pair, times in pairs.items() if times > LEADING * len(members)), default=(key,))
    return " ".join(written(part, chain.from_iterable(members)) for part in phrase)


def _pairs(words: Sequence[Word]) -> Iterator[tuple[str, str]]:
    return ((one.stem, next_.stem) for one, next_ in pairwise(words) if one.names_something and next_.names_something)
