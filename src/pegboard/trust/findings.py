"""Findings of the scanner's rules, and the score of all findings in a definition."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import prod

SUSPICIOUS = 0.5
"""The score from which on a definition counts as poisoned."""
EXCERPT = 80
ARGUMENTS, HINTS, NAME = "inputSchema", "annotations.", " (name)"
"""Where the places of a tool's arguments and hints begin, and how the place of a field's name ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule found in one text of a definition. ``where`` is its place, such as `inputSchema.properties.x`.

    ``weight``, in (0, 1), is the strength of this evidence alone. ``excerpt`` has invisible characters escaped.
    """

    rule: str
    weight: float
    where: str
    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """All findings in a definition, the heaviest first."""

    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> ScanResult:
        return cls(findings=tuple(sorted(findings, key=lambda each: (-each.weight, each.rule, each.where))))

    @property
    def score(self) -> float:
        """In [0, 1): 1 − Π(1 − weight) over the rules with findings; each rule counts once, with its heaviest.

        >>> findings = [Finding(rule=rule, weight=0.5, where="", excerpt="") for rule in ("a", "a", "b")]
        >>> ScanResult.of(findings).score
        0.75
        """
        heaviest: dict[str, float] = {}
        for each in self.findings:
            heaviest.setdefault(each.rule, each.weight)
        return 1 - prod(1 - weight for weight in heaviest.values())

    @property
    def suspicious(self) -> bool:
        return self.score >= SUSPICIOUS

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules with findings, the heaviest first."""
        return tuple(dict.fromkeys(each.rule for each in self.findings))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScannedText:
    """One text of a definition: ``raw`` as it arrived, and ``plain`` as a model reads it (`definition_texts.plain`).

    ``disguise``: what it was undone of, such as base64; empty for a text that stands there as it is.
    """

    where: str
    raw: str
    plain: str
    disguise: str = ""

    def finding(self, rule: str, weight: float, found: str) -> Finding:
        return Finding(rule=rule, weight=weight, where=self.where, excerpt=visible(found))


Rule = Callable[[ScannedText], Iterator[Finding]]


def visible(text: str) -> str:
    """The text on one line, shortened, with invisible characters escaped.

    >>> visible("a\\u200bb")
    'a\\\\u200bb'
    """
    line = " ".join(text.split())
    return escaped(line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…")


def escaped(text: str) -> str:
    """The text with invisible characters escaped, except line breaks and tabs."""
    return "".join(_shown(each) for each in text)


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in ("Cf", "Cc", "Co", "Cn", "Cs"):
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()
