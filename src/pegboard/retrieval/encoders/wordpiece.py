"""BERT's tokenizer: words, and pieces of words, of a fixed vocabulary.

Devlin et al. 2018, section 3 (WordPiece as in Wu et al. 2016, section 4.1). It gives the ids and offsets that the
package `tokenizers` gives for the same `tokenizer.json` (a test compares them), without its 39 MB of dependencies.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

CONTINUES = "##"
"""Before a piece that does not begin a word."""
UNKNOWN = "[UNK]"
LONGEST_WORD = 100
"""Longer words, in characters, are unknown."""
MOST_WORDS = 50_000
"""Words whose pieces are remembered."""
PLAIN = re.compile(r"[\t\n\r -~]*")
"""ASCII without control characters, in which every character stays in its place."""
WORDS = re.compile(r"[a-z0-9]+|[^a-z0-9\s]")
IDEOGRAPHS = re.compile(
    "[\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    "\U0002b920-\U0002ceaf\uf900-\ufaff\U0002f800-\U0002fa1f]"
)
"""Each is a word, as in BERT's code."""


class Tokens(NamedTuple):
    """The ids of a text's tokens, and the first character and the end of each in the text."""

    ids: list[int]
    offsets: list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Pieces:
    """The ids of a word's pieces, and where each begins and ends in the word."""

    ids: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]


class WordPiece:
    """A tokenizer of lower-case words without accents.

    ``special`` are the ids of tokens that may be written in a text, such as ``[SEP]``; ``first`` and ``last`` are put
    around each text.
    """

    def __init__(
        self, vocabulary: Mapping[str, int], special: Mapping[str, int], first: int, last: int, unknown: int
    ) -> None:
        self._vocabulary = vocabulary
        self._special = special
        self._first, self._last, self._unknown = first, last, unknown
        self._longest = max(map(len, vocabulary))
        self._written = re.compile("|".join(map(re.escape, sorted(special, key=len, reverse=True))) or r"(?!)")
        self._known: dict[str, Pieces] = {}
        self._normal: dict[str, str] = {}

    @classmethod
    def from_json(cls, text: str) -> WordPiece:
        """From the text of a `tokenizer.json`. Raises ValueError if it is not BERT's, or not valid."""
        try:
            read: dict[str, Any] = json.loads(text)
            model, around = read["model"], read["post_processor"]["special_tokens"]
            kinds = (read["normalizer"]["type"], read["pre_tokenizer"]["type"], model["type"])
            vocabulary: dict[str, int] = model["vocab"]
            special = {each["content"]: each["id"] for each in read["added_tokens"]}
            single = [part["SpecialToken"]["id"] for part in read["post_processor"]["single"] if "SpecialToken" in part]
            first, last = (around[name]["ids"][0] for name in single)
            unknown = vocabulary[model["unk_token"]]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"it is not the file of a BERT tokenizer: {error!r}") from error
        if kinds != ("BertNormalizer", "BertPreTokenizer", "WordPiece") or not read["normalizer"]["lowercase"]:
            raise ValueError(f"{', '.join(kinds)} is not supported, only BERT's tokenizers of lower-case words are")
        return cls(vocabulary, special, first, last, unknown)

    def encode(self, text: str) -> Tokens:
        """The tokens of a text; the two around it have the offsets (0, 0)."""
        tokens = Tokens([self._first], [(0, 0)])
        start = 0
        for written in self._written.finditer(text):
            self._add(tokens, text, start, written.start())
            tokens.ids.append(self._special[written.group()])
            tokens.offsets.append(written.span())
            start = written.end()
        self._add(tokens, text, start, len(text))
        tokens.ids.append(self._last)
        tokens.offsets.append((0, 0))
        return tokens

    def _add(self, tokens: Tokens, text: str, start: int, end: int) -> None:
        part = text[start:end]
        if PLAIN.fullmatch(part):
            for word in WORDS.finditer(part.lower()):
                pieces, at = self._pieces(word.group()), start + word.start()
                tokens.ids.extend(pieces.ids)
                tokens.offsets.extend((at + begin, at + stop) for begin, stop in pieces.spans)
            return
        for written, places in self._words(part):
            pieces = self._pieces(written)
            tokens.ids.extend(pieces.ids)
            tokens.offsets.extend((start + places[begin], start + places[stop - 1] + 1) for begin, stop in pieces.spans)

    def _words(self, text: str) -> Iterator[tuple[str, Sequence[int]]]:
        """Words in their normal form, with the place in the text of each of their characters."""
        word: list[str] = []
        places: list[int] = []
        for place, character in enumerate(text):
            for each in self._normal.get(character) or self._normalized(character):
                if each.isspace() or is_punctuation(each):
                    if word:
                        yield "".join(word), places
                        word, places = [], []
                    if not each.isspace():
                        yield each, [place]
                else:
                    word.append(each)
                    places.append(place)
        if word:
            yield "".join(word), places

    def _normalized(self, character: str) -> str:
        if len(self._normal) < MOST_WORDS:
            return self._normal.setdefault(character, normalized(character))
        return normalized(character)

    def _pieces(self, word: str) -> Pieces:
        if len(word) > LONGEST_WORD:
            return self._cut(word)
        known = self._known.get(word)
        if known is None:
            if len(self._known) >= MOST_WORDS:
                self._known.clear()
            known = self._known[word] = self._cut(word)
        return known

    def _cut(self, word: str) -> Pieces:
        """The longest piece of the vocabulary that begins the word, and so on to its end; else the word is unknown."""
        ids: list[int] = []
        spans: list[tuple[int, int]] = []
        start = 0
        while start < len(word) <= LONGEST_WORD:
            before = CONTINUES if start else ""
            for stop in range(min(len(word), start + self._longest), start, -1):
                found = self._vocabulary.get(before + word[start:stop])
                if found is not None:
                    ids.append(found)
                    spans.append((start, stop))
                    start = stop
                    break
            else:
                break
        if start < len(word):
            return Pieces((self._unknown,), ((0, len(word)),))
        return Pieces(tuple(ids), tuple(spans))


def normalized(character: str) -> str:
    """A character in lower case, without accents; an ideograph between blanks; nothing for a control character.

    >>> normalized("É"), normalized("世"), normalized("\\u200b")
    ('e', ' 世 ', '')
    """
    if character in "\t\n\r":
        return " "
    kind = unicodedata.category(character)
    if character == "\ufffd" or kind in ("Cc", "Cf", "Co"):
        return ""
    if kind == "Cs":
        return "?"  # half of a character, which JSON allows and UTF-8 does not
    if character.isspace():
        return " "
    parts = (part for part in unicodedata.normalize("NFD", character) if unicodedata.category(part) != "Mn")
    lower = "".join(part.lower() for part in parts)
    return f" {lower} " if IDEOGRAPHS.match(character) else lower


def is_punctuation(character: str) -> bool:
    """Whether a character is a word of its own: all of ASCII but letters, digits and blanks, and Unicode's."""
    if character.isascii():
        return not character.isalnum() and not character.isspace()
    return unicodedata.category(character).startswith("P")
