"""What a rule of the scanner finds, and what all findings of a definition come to."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import prod

SUSPICIOUS = 0.5
"""The score from which on a definition is held to be poisoned."""
EXCERPT = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule found in one text of a definition. ``where`` is the text's place, as `inputSchema.properties.x`.

    ``weight`` is in (0, 1): how much it says on its own. ``excerpt`` shows what cannot be seen as escapes.
    """

    rule: str
    weight: float
    where: str
    excerpt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All findings of a definition, the heaviest first."""

    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Verdict:
        return cls(findings=tuple(sorted(findings, key=lambda each: (-each.weight, each.rule, each.where))))

    @property
    def score(self) -> float:
        """In [0, 1): what is left of certainty that it is harmless, taken from 1. A rule counts once.

        >>> findings = [Finding(rule=rule, weight=0.5, where="", excerpt="") for rule in ("a", "a", "b")]
        >>> Verdict.of(findings).score
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
        """Those that found something, the heaviest first."""
        return tuple(dict.fromkeys(each.rule for each in self.findings))


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """One text of a definition: as it came, and ``plain`` as a model reads it (`scan.plain`)."""

    where: str
    raw: str
    plain: str

    def finding(self, rule: str, weight: float, found: str) -> Finding:
        return Finding(rule=rule, weight=weight, where=self.where, excerpt=visible(found))


Rule = Callable[[Text], Iterator[Finding]]


def visible(text: str) -> str:
    """On one line, cut where it is long, with escapes for what cannot be seen.

    >>> visible("a\\u200bb")
    'a\\\\u200bb'
    """
    line = " ".join(text.split())
    return escaped(line if len(line) <= EXCERPT else line[: EXCERPT - 1] + "…")


def escaped(text: str) -> str:
    """With escapes for what cannot be seen, but line breaks and tabs."""
    return "".join(_shown(each) for each in text)


def _shown(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in ("Cf", "Cc", "Co", "Cn", "Cs"):
        return character
    return character.encode("unicode_escape", "surrogatepass").decode()
