"""Rules on a whole board: tools beside each other, asked for through the board's own ranker."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from pegboard.board import Board
from pegboard.lint.findings import Finding, Subject, listed, quoted
from pegboard.model import Candidate, Turn
from pegboard.retrieval import Progress
from pegboard.retrieval.duplicates import Groups, duplicate_groups
from pegboard.retrieval.words import raw_words

SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n\s*\n")
NAME, DESCRIPTION = "lost-name", "lost-description"
BOARD_RULES = frozenset({NAME, DESCRIPTION, "duplicate", "same-description"})
"""Those that need more than one tool."""


async def board_findings(
    board: Board, turn: Turn, subjects: Sequence[Subject], rules: AbstractSet[str], progress: Progress
) -> list[Finding]:
    """Findings of these rules; ``turn`` carries the rights of the caller, and ``progress`` counts tools asked for."""
    groups = duplicate_groups(board.catalog.tools, await board.vectors())
    found = [*duplicates(subjects, groups), *same_descriptions(subjects, groups)]
    found = [finding for finding in found if finding.rule in rules]
    if rules & {NAME, DESCRIPTION}:
        for place, subject in enumerate(subjects):
            found += [each async for each in _lost(board, turn, subject, groups, rules)]
            progress(place + 1, len(subjects))
    return found


def duplicates(subjects: Sequence[Subject], groups: Groups) -> Iterator[Finding]:
    """Tools that do what an earlier one of another server does."""
    for subject, first in zip(subjects, groups.tolist(), strict=True):
        if subjects[first] is not subject:
            says = f"Its name and its description mean the same as those of {subjects[first].tool.id}."
            remedy = "Leave out one of them, or say in both descriptions when to use which."
            yield subject.finding("duplicate", says, remedy, spare=subject.tokens)


def same_descriptions(subjects: Sequence[Subject], groups: Groups) -> Iterator[Finding]:
    """Tools that only their names tell apart."""
    by_text: dict[tuple[str, ...], list[int]] = {}
    for place, subject in enumerate(subjects):
        if words := tuple(raw_words(subject.tool.description)):
            by_text.setdefault(words, []).append(place)
    for places in by_text.values():
        for place in places:
            others = [str(subjects[each].tool.id) for each in places if groups[each] != groups[place]]
            if others:
                says = f"Its description is that of {listed(others)}."
                yield subjects[place].finding("same-description", says, "Say in each what sets it apart.")


async def _lost(
    board: Board, turn: Turn, subject: Subject, groups: Groups, rules: AbstractSet[str]
) -> AsyncIterator[Finding]:
    """Where the tool's own words find another one first."""
    for rule, text in ((NAME, " ".join(raw_words(subject.tool.name))), (DESCRIPTION, first_sentence(subject))):
        if rule not in rules or not raw_words(text):
            continue
        order = await board.rank(Turn.ask(text, scopes=turn.scopes, state=turn.state))
        better = list(_before(order, subject, board, groups))
        if better:
            says = f"{quoted(text)} finds {better[0].tool} first; it comes {len(better) + 1}."
            yield subject.finding(rule, says, REMEDIES[rule])


REMEDIES = {
    NAME: "Put into the name what sets it apart from the other, or add `aliases`.",
    DESCRIPTION: "Begin the description with what this tool does and the other does not.",
}


def first_sentence(subject: Subject) -> str:
    """What the description begins with, to its first full stop or blank line."""
    return SENTENCE_END.split(subject.tool.description.strip(), maxsplit=1)[0].strip()


def _before(order: Sequence[Candidate], subject: Subject, board: Board, groups: Groups) -> Iterable[Candidate]:
    """Tools that score higher and do another job; none where the caller may not use the tool at all."""
    position = board.catalog.position
    own = next((each for each in order if each.tool == subject.tool.id), None)
    if own is None:
        return []
    group = groups[position[own.tool]]
    return [each for each in order[: own.rank] if each.score > own.score and groups[position[each.tool]] != group]
