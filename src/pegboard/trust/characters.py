"""Rules on characters that models read but people do not see."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from pegboard.trust.findings import EXCERPT, Finding, ScannedText

TAGS = re.compile("[\U000e0000-\U000e007f]+")
FLAG = "\U0001f3f4"
"""A black flag, followed by tag characters that name a region: their only legitimate use."""
LONGEST_FLAG = 8
SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3,}|[\U000e0100-\U000e01ef]{2,}")
"""A variation selector applies to the character before it; several in a row encode hidden bytes."""
BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
BETWEEN = "\u061c\u180f\u200e\u200f\u2800\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
"""Characters that scripts, notations or braille need, but between letters of no English word."""
INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200d\u2060-\u2064\u206a-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]+"
    f"|(?<=[A-Za-z])[{BETWEEN}]+(?=[A-Za-z])"
)
UNSEEN = re.compile(
    "[\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\ufe00-\ufe0f\U000e0100-\U000e01ef]+"
)
"""What does not count where a text is matched: every format character but tags, variation selectors, and others without
a shape."""
JOINERS = frozenset("\u200c\u200d")
JOINED = (
    "ARABIC",
    "BENGALI",
    "DEVANAGARI",
    "GUJARATI",
    "GURMUKHI",
    "KANNADA",
    "MALAYALAM",
    "MONGOLIAN",
    "SINHALA",
    "TAMIL",
    "TELUGU",
)
"""Scripts whose spelling uses joiners."""
CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
PADDING = re.compile(r"(?:\n[^\S\n]{0,80}+){15}|[ \t\u00a0\u2000-\u200a\u3000]{120}")
WORD = re.compile(r"[^\W\d_]{3,}")
ALIKE = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU", "CANADIAN", "GEORGIAN"})
"""Scripts with letters that look like those of another one."""
MANY_MIXED = 5
"""Words in mixed scripts from which on they are no accident."""
MANY = 8
"""Number of invisible characters from which on they are not an accident."""


def hidden_text(text: ScannedText) -> Iterator[Finding]:
    """Text in tag characters or variation selectors: no screen shows it, but models read it."""
    if text.raw.isascii():
        return
    for found in TAGS.finditer(text.raw):
        before = text.raw[: found.start()]
        if not (before.endswith(FLAG) and len(found.group()) <= LONGEST_FLAG):
            yield text.finding("hidden-text", 0.95, f"in tag characters: {tags_as_text(found)}")
    for found in SELECTORS.finditer(text.raw):
        yield text.finding("hidden-text", 0.9, f"{len(found.group())} variation selectors in a row")


def bidi_control(text: ScannedText) -> Iterator[Finding]:
    """Characters that display a text in a different order than models read it."""
    if not text.raw.isascii() and (found := BIDI.search(text.raw)):
        yield text.finding("bidi-control", 0.8, _around(text.raw, found))


def invisible(text: ScannedText) -> Iterator[Finding]:
    """Zero-width characters that no script or emoji needs. A few may come from copying; many may be a message."""
    if text.raw.isascii():
        return
    found = [each for each in INVISIBLE.finditer(text.raw) if not _is_spelling(text.raw, each)]
    if found:
        many = sum(len(each.group()) for each in found) >= MANY
        inside = any(_is_inside_a_word(text.raw, each) for each in found)
        yield text.finding("invisible", 0.8 if many else 0.5 if inside else 0.2, _around(text.raw, found[0]))


def control(text: ScannedText) -> Iterator[Finding]:
    """Control characters, with which a terminal hides or overwrites text."""
    if not text.raw.isprintable() and (found := CONTROLS.search(text.raw)):
        yield text.finding("control", 0.6, _around(text.raw, found))


def padding(text: ScannedText) -> Iterator[Finding]:
    """So much white space that the text after it is out of sight."""
    if text.raw.isprintable() and "  " not in text.raw:
        return
    found = PADDING.search(text.raw)
    if found and (after := text.raw[found.end() :].lstrip()):
        yield text.finding("padding", 0.5, after[:EXCERPT])


def mixed_scripts(text: ScannedText) -> Iterator[Finding]:
    """Words that mix letters of scripts that look alike, so that they are not the words they seem to be."""
    if text.raw.isascii():
        return
    mixed = []
    for found in WORD.finditer(text.raw):
        if len(found.group()) > 3 and not found.group().isascii():
            scripts = {_script(each) for each in found.group()} & ALIKE
            if len(scripts) > 1:
                mixed.append(found.group())
                if len(mixed) == MANY_MIXED:
                    break
    if mixed:
        shown = mixed[0].encode("ascii", "backslashreplace").decode()
        yield text.finding("mixed-scripts", 0.6 if len(mixed) == MANY_MIXED else 0.3, shown)


def tags_as_text(found: re.Match[str]) -> str:
    """The ASCII text that tag characters encode."""
    return "".join(chr(ord(each) - 0xE0000) for each in found.group() if 0xE0020 <= ord(each) < 0xE007F)


def _is_spelling(text: str, found: re.Match[str]) -> bool:
    """Whether it is a joiner that the script or an emoji needs, or a byte order mark at the start of the text."""
    if found.group() == "\ufeff" and found.start() == 0:
        return True
    if not set(found.group()) <= JOINERS or len(found.group()) > 1:
        return False
    before = text[found.start() - 1 : found.start()]
    after = text[found.end() : found.end() + 1]
    emoji = (unicodedata.category(each) in ("So", "Sk", "Mn") for each in (before, after) if each)
    return any(_script(each) in JOINED for each in (before, after) if each) or (bool(before and after) and all(emoji))


def _is_inside_a_word(text: str, found: re.Match[str]) -> bool:
    around = text[found.start() - 1 : found.start()], text[found.end() : found.end() + 1]
    return all(each.isalpha() and each.isascii() for each in around)


def _script(character: str) -> str:
    return unicodedata.name(character, "").partition(" ")[0]


def _around(text: str, found: re.Match[str]) -> str:
    return text[max(0, found.start() - 20) : found.end() + 30]
