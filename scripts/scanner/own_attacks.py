"""The attacks of the lists beside this module, filled from their slots at random."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
LISTS: Mapping[str, Sequence[str]] = {
    "en": ("en", "en_tools", "en_results", "en_plain"),
    **{language: (language, f"{language}_tools") for language in ("de", "fr", "es", "zh", "ja")},
}
"""By language: files whose slots hold in the files after them."""
HONEST = ("honest", "honest_more")
HELD_OUT = "held_out"
SLOT = re.compile(r"\{(\w+)\}")
FILLINGS = {"en": 24}
OTHER_FILLINGS = 16
"""Texts made of a template, at most."""
REWORDED = 0.6
"""Share of the groups of synonyms that are applied to a text."""
LAST_LATIN = 0x24F
"""Above it words have no blanks between them."""
DEEPEST = 3
"""Slots within slots."""


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
    synonyms = tomllib.loads((HERE / "synonyms.toml").read_text("utf-8"))
    seen: set[str] = set()
    for language, names in LISTS.items():
        slots: dict[str, list[str]] = {}
        for name in names:
            lists = _read(name)
            slots |= lists["slots"]
            for family, templates in lists["families"].items():
                for number, template in enumerate(templates):
                    for _ in range(FILLINGS.get(language, OTHER_FILLINGS)):
                        text = _reworded(_filled(template, slots, drawn), synonyms[language], drawn)
                        if text not in seen:
                            seen.add(text)
                            yield Attack(text, family, language, f"{name}/{family}/{number}")


def held_out() -> Iterator[tuple[str, str]]:
    """Whole attacks that nothing is fitted to, and their families."""
    for family, lists in _read(HELD_OUT).items():
        for text in lists["texts"]:
            yield text, family


def honest(seed: int) -> Iterator[tuple[str, str]]:
    """Honest sentences and their templates; equal ones once."""
    drawn = random.Random(seed)  # noqa: S311
    seen: set[str] = set()
    for name in HONEST:
        for language, lists in _read(name).items():
            for number, template in enumerate(lists["templates"]):
                for _ in range(OTHER_FILLINGS):
                    text = _filled(template, lists, drawn)
                    if text not in seen:
                        seen.add(text)
                        yield text, f"{name}/{language}/{number}"


def _filled(template: str, slots: Mapping[str, list[str]], drawn: random.Random) -> str:
    """Sentences begin with a capital letter most of the time, as attackers' texts do not always."""
    text = template
    for _ in range(DEEPEST):
        text = SLOT.sub(lambda slot: drawn.choice(slots[slot.group(1)]), text)
    text = " ".join(text.split(" "))
    return text[:1].upper() + text[1:] if drawn.random() < 0.8 else text


def _reworded(text: str, groups: Sequence[Sequence[str]], drawn: random.Random) -> str:
    """With some words changed for others of their group."""
    for group in groups:
        if drawn.random() < REWORDED:
            edge = "" if ord(group[0][0]) > LAST_LATIN else r"\b"
            word = f"{edge}{re.escape(group[0])}{edge}"
            text = re.sub(word, lambda _, group=group: drawn.choice(group), text)
    return text


def _read(name: str) -> dict[str, dict[str, list[str]]]:
    return tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))
