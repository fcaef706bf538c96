"""The attacks of the lists beside this module, filled from their slots at random."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
LANGUAGES = ("en", "de", "fr", "es", "zh", "ja")
SLOT = re.compile(r"\{(\w+)\}")
FILLINGS = {"en": 40}
OTHER_FILLINGS = 25
"""Texts made of a template, at most."""


@dataclass(frozen=True, slots=True)
class Attack:
    """A text of one family in one language. ``template`` is its number: texts of one template are never on both sides
    of a split."""

    text: str
    family: str
    language: str
    template: str


def attacks(seed: int) -> Iterator[Attack]:
    """All attacks, in order; equal texts once."""
    drawn = random.Random(seed)  # noqa: S311
    seen: set[str] = set()
    for language in LANGUAGES:
        lists = tomllib.loads((HERE / f"{language}.toml").read_text("utf-8"))
        for family, templates in lists["families"].items():
            for number, template in enumerate(templates):
                for _ in range(FILLINGS.get(language, OTHER_FILLINGS)):
                    text = _filled(template, lists["slots"], drawn)
                    if text not in seen:
                        seen.add(text)
                        yield Attack(text, family, language, f"{language}/{family}/{number}")


def _filled(template: str, slots: dict[str, list[str]], drawn: random.Random) -> str:
    """Sentences begin with a capital letter half of the time, as attackers' texts do not always."""
    text = SLOT.sub(lambda slot: drawn.choice(slots[slot.group(1)]), template)
    return text[:1].upper() + text[1:] if drawn.random() < 0.8 else text


def honest(seed: int) -> Iterator[tuple[str, str]]:
    """Honest sentences and their templates, in the languages of which catalogs have few; equal ones once."""
    drawn = random.Random(seed)  # noqa: S311
    seen: set[str] = set()
    for language, lists in tomllib.loads((HERE / "honest.toml").read_text("utf-8")).items():
        for number, template in enumerate(lists["templates"]):
            for _ in range(OTHER_FILLINGS):
                text = _filled(template, lists, drawn)
                if text not in seen:
                    seen.add(text)
                    yield text, f"{language}/{number}"
