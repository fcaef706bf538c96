"""The words of tool names: verbs and nouns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain

from pegboard.retrieval.words import FUNCTION_WORDS, LONGEST_NAME, raw_words, remembered, stem

EVERYWHERE = 0.8
"""Share of the names from which on a word distinguishes nothing."""

VERBS = frozenset(
    re.findall(
        r"\w+",
        "abort accept activate add analyze append apply approve archive assign attach authenticate authorize bulk "
        "calculate cancel change check clear clone close commit compare complete configure confirm connect convert "
        "copy count create deactivate deauthorize decline delete deploy describe destroy detach detect determine "
        "disable disconnect dismiss do download drop duplicate edit enable end enrich ensure evaluate execute explain "
        "export extract fetch fill find finish fix format generate get give handle import init initialize insert "
        "install invite invoke join kill launch leave load lock login logout look lookup make manage mark merge "
        "modify move navigate open optimize parse patch pause perform ping poll post preview process provide publish "
        "pull purge push put query quit read receive refresh register reject release remove rename render reopen "
        "reorder replace reply request reset resolve restart restore resume retrieve retry revoke rotate run save "
        "scan schedule search select send set show simulate sort start stop submit subscribe summarize suspend sync "
        "synchronize take terminate toggle track transfer translate trigger try unarchive unassign unblock undo "
        "uninstall unlock unpublish unsubscribe update upgrade upload upsert use validate verify wait write",
    )
)
"""Verbs. They never group names as the first word, and elsewhere only those in `NOUNS_TOO` do."""

NOUNS_TOO = frozenset(
    re.findall(
        r"\w+",
        "archive clone commit copy export format import index invite login merge order patch pause post process pull "
        "query release reply request schedule search select sort sync test track transfer trigger update upload",
    )
)
LEADING_VERBS = VERBS | frozenset(
    re.findall(
        r"\w+",
        "block call comment filter list log message note order report share test view watch",
    )
)
GENERIC = frozenset(
    re.findall(
        r"\w+",
        "all and any batch by current data detail details id ids info information item my name new one tool",
    )
)


NEVER = (VERBS - NOUNS_TOO) | GENERIC

REMEMBERED = 32_768
"""Names whose words are remembered, so that indexing a changed catalog costs little more than its new names."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a name, its stem, and whether it leads the name."""

    text: str
    stem: str
    leads: bool

    @property
    def is_about(self) -> bool:
        """Whether it says what the tool is about, rather than what it does."""
        return self.names_something and not (self.leads and self.text in LEADING_VERBS)

    @property
    def names_something(self) -> bool:
        """Whether it may be part of what the tool is about: `pull` in `pull_request_read`."""
        return self.text not in NEVER and not self.text.isdigit() and len(self.text) > 1


def words_of(name: str) -> list[Word]:
    """The words of a name in order, without function words.

    >>> [word.text for word in words_of("createPullRequest_forTeam")]
    ['create', 'pull', 'request', 'team']
    """
    return list(_words_of(name))


@remembered(REMEMBERED, LONGEST_NAME)
def _words_of(name: str) -> tuple[Word, ...]:
    texts = [text for text in raw_words(name) if text not in FUNCTION_WORDS]
    return tuple(Word(text, stem(text), place == 0) for place, text in enumerate(texts))


def words_that_differ(names: Sequence[str]) -> list[list[Word]]:
    """The words of each name without those that nearly all names have; the first remaining word leads."""
    words = [words_of(name) for name in names]
    uses = Counter(key for of_name in words for key in {word.stem for word in of_name})
    rare = [[word for word in of_name if uses[word.stem] < max(2, EVERYWHERE * len(names))] for of_name in words]
    return [
        [word if word.leads == (place == 0) else replace(word, leads=place == 0) for place, word in enumerate(of_name)]
        for of_name in rare
    ]


def by_frequency(counts: Counter[str]) -> list[str]:
    """The most frequent first, ties in alphabetical order."""
    return sorted(counts, key=lambda each: (-counts[each], each))


def written(part: str, words: Iterable[Word]) -> str:
    """The most frequent spelling of a stem."""
    return by_frequency(Counter(word.text for word in words if word.stem == part))[0]


def done_and_to_what(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """The verbs and the nouns of these names, the most frequent first, without a first word that all share."""
    words = [word for of_name in _without_shared_lead(names) for word in of_name]
    verbs = Counter(word.stem for word in words if word.leads and word.text in LEADING_VERBS)
    nouns = Counter(word.stem for word in words if word.is_about)
    return [written(each, words) for each in by_frequency(verbs)], [
        written(each, words) for each in by_frequency(nouns)
    ]


def distinct_labels(groups: Sequence[Sequence[str]], server: str = "") -> list[str]:
    """For each group of names the one or two words that distinguish it best; labels are unique."""
    of_server = {word.stem for word in words_of(server)}
    words = [[_labelling(name, of_server) for name in names] for names in groups]
    counts = [Counter(key for of_name in of_group for key in {word.stem for word in of_name}) for of_group in words]
    total = sum(counts, Counter[str]())
    labels: list[str] = []
    for of_group, count in zip(words, counts, strict=True):
        worth = {key: times * times / total[key] for key, times in count.items()}
        best = [
            written(key, chain.from_iterable(of_group)) for key in sorted(worth, key=lambda key: (-worth[key], key))
        ]
        candidates = [*(", ".join(best[:number]) for number in range(2, len(best) + 1)), *best]
        labels.append(next((each for each in candidates if each not in labels), f"group {len(labels) + 1}"))
    return labels


def _labelling(name: str, of_server: Set[str]) -> list[Word]:
    """The words for a label: nouns, or all words if there are none."""
    words = words_of(name)
    own = [word for word in words if word.stem not in of_server]
    return [word for word in own if word.is_about] or own or words


def _without_shared_lead(names: Sequence[str]) -> list[list[Word]]:
    words = [words_of(name) for name in names]
    leads = Counter(word.stem for of_name in words for word in of_name[:1] if len(of_name) > 1)
    lead = by_frequency(leads)[0] if leads else ""
    if len(names) < 2 or leads[lead] < EVERYWHERE * len(names) or any(word.text in VERBS for word in words[0][:1]):
        return words
    rest = [of_name[1:] if of_name and of_name[0].stem == lead else of_name for of_name in words]
    return [[replace(word, leads=place == 0) for place, word in enumerate(of_name)] for of_name in rest]
