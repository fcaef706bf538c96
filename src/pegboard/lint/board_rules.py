"""Rules on a whole board: they compare tools, and query the board's own ranker with each tool's texts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from pegboard.lint.subjects import LintFinding, Subject, listed, quoted
from pegboard.model import Mask, Turn
from pegboard.retrieval import Progress
from pegboard.retrieval.duplicates import Groups, duplicate_groups
from pegboard.retrieval.words import raw_words
from pegboard.routing_board import RoutingBoard

SENTENCE_END = re.compile(r"(?<=[^\d][.!?])\s+|(?<=[。！？])|\n\s*\n")
"""A full stop after a digit belongs to a numbered list."""


async def board_findings(
    board: RoutingBoard, turn: Turn, subjects: Sequence[Subject], rules: AbstractSet[str], progress: Progress
) -> list[LintFinding]:
    """Findings of these rules. ``turn`` carries the caller's rights; ``progress`` counts the tools checked."""
    groups = duplicate_groups(board.catalog.tools, await board.vectors())
    found = [*duplicates(subjects, groups), *same_descriptions(subjects, groups)]
    found = [finding for finding in found if finding.rule in rules]
    if not rules & ASKED.keys():
        return found
    reach = board.allowed(turn)
    reachable = np.array([subject.tool.id in reach for subject in subjects], np.bool_)
    for place in range(len(subjects)):
        rivals = reachable & (groups != groups[place])
        if reachable[place]:
            found += [each async for each in _lost(board, subjects, place, rivals, rules)]
        progress(place + 1, len(subjects))
    return found


def duplicates(subjects: Sequence[Subject], groups: Groups) -> Iterator[LintFinding]:
    """Tools that do the same as an earlier tool of another server."""
    for subject, first in zip(subjects, groups.tolist(), strict=True):
        if subjects[first] is not subject:
            says = f"Its name and its description mean the same as those of {subjects[first].tool.id}."
            remedy = "Remove one of them, or say in both descriptions when to use which."
            yield subject.finding("duplicate", says, remedy, spare=subject.tokens)


def same_descriptions(subjects: Sequence[Subject], groups: Groups) -> Iterator[LintFinding]:
    """Tools that differ only in their names."""
    by_text: dict[tuple[str, ...], list[int]] = {}
    for place, subject in enumerate(subjects):
        if words := tuple(raw_words(subject.tool.description)):
            by_text.setdefault(words, []).append(place)
    for places in by_text.values():
        for place in places:
            others = [str(subjects[each].tool.id) for each in places if groups[each] != groups[place]]
            if others:
                says = f"It has the same description as {listed(others)}."
                remedy = "Say in each description what distinguishes the tool."
                yield subjects[place].finding("same-description", says, remedy)


async def _lost(
    board: RoutingBoard, subjects: Sequence[Subject], place: int, rivals: Mask, rules: AbstractSet[str]
) -> AsyncIterator[LintFinding]:
    """Findings for queries, made of the tool's own words, that score one of its ``rivals``, shape (n,), higher."""
    subject = subjects[place]
    for rule, (words_of, remedy) in ASKED.items():
        text = words_of(subject)
        if rule not in rules or not raw_words(text):
            continue
        scores = await board.scores(text)
        if scores is None:
            continue
        better = np.flatnonzero(rivals & (scores.values > scores.values[place]))
        if len(better):
            winner = subjects[int(better[np.argmax(scores.values[better])])].tool.id
            says = f"{quoted(text)} finds {winner} first; this tool is number {len(better) + 1}."
            yield subject.finding(rule, says, remedy)


def name_as_words(subject: Subject) -> str:
    return " ".join(raw_words(subject.tool.name))


def first_sentence(subject: Subject) -> str:
    """The beginning of the description, up to its first full stop or blank line."""
    return SENTENCE_END.split(subject.tool.description.strip(), maxsplit=1)[0].strip()


ASKED: Mapping[str, tuple[Callable[[Subject], str], str]] = {
    "lost-name": (name_as_words, "Put what distinguishes the tool into its name, or add `aliases`."),
    "lost-description": (first_sentence, "Begin the description with what this tool does and the other does not."),
}
"""Rules that query the board with a text of the tool, and their remedies."""

BOARD_RULES = frozenset({*ASKED, "duplicate", "same-description"})
"""Rules that need more than one tool."""
