"""The tokenizer gives what the package `tokenizers` gives for the same file."""

from __future__ import annotations

import json
import unicodedata
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from pegboard.retrieval.encoders.wordpiece import LONGEST_WORD, WordPiece

FILE = files("pegboard.retrieval.encoders").joinpath("minilm", "tokenizer.json").read_text("utf-8")
OWN = WordPiece.from_json(FILE)
THEIRS = Tokenizer.from_str(FILE)
ROOT = Path(__file__).parents[3]
LARGE = range(0x3400, 0xD7A4)
"""Ideographs and Korean syllables: one in fifty is tried."""


def is_settled(character: str) -> bool:
    """Whether its category has been the same since Unicode 3.2: each of the two has tables of its own version."""
    category = unicodedata.category(character)
    return category not in ("Cn", "Cs", "Co") and category == unicodedata.ucd_3_2_0.category(character)


settled = st.characters(exclude_categories=("Cs",)).filter(is_settled)
words = st.sampled_from(
    ["[SEP]", "[CLS]", "[sep]", "don't", "naïve", "ΣΊΣΥΦΟΣ", "世界", "İ", "a" * 120, "snake_case", "\t"]
)


def theirs(texts: list[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
    return [(each.ids, each.offsets) for each in THEIRS.encode_batch(texts)]


@given(st.lists(st.one_of(words, st.text(settled, max_size=12)), max_size=12).map(" ".join))
def test_any_text_has_the_same_tokens_and_offsets(text: str) -> None:
    assert [OWN.encode(text)] == theirs([text])


def test_every_character_has_the_same_tokens_inside_and_after_a_word() -> None:
    codes = (code for code in range(0x20000) if code not in LARGE or code % 50 == 0)
    every = [chr(code) for code in codes if is_settled(chr(code))]
    texts = [f"a{each}b {each}c" for each in every]

    assert [text for text, expected in zip(texts, theirs(texts), strict=True) if OWN.encode(text) != expected] == []


def test_the_documentation_has_the_same_tokens_and_offsets() -> None:
    texts = [path.read_text("utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]

    assert [OWN.encode(text) for text in texts] == theirs(texts)


def test_half_a_character_is_read_as_a_question_mark() -> None:
    assert OWN.encode("a\ud800b").ids == OWN.encode("a?b").ids


def without(*path: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(FILE)
    inside = read
    for name in path[:-1]:
        inside = inside[name]
    del inside[path[-1]]
    return read


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps(without("model", "vocab")),
        json.dumps(without("post_processor", "special_tokens", "[SEP]")),
        json.dumps(json.loads(FILE) | {"normalizer": {"type": "NFC"}}),
        json.dumps(json.loads(FILE) | {"pre_tokenizer": {"type": "ByteLevel"}}),
    ],
    ids=["empty", "list", "no fields", "no words", "no end", "another normal form", "another split"],
)
def test_a_file_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="BERT"):
        WordPiece.from_json(text)


def test_a_word_too_long_to_have_pieces_is_not_kept() -> None:
    own = WordPiece.from_json(FILE)

    assert own.encode("short " + "x" * (LONGEST_WORD + 1)).ids == own.encode("short " + "y" * (LONGEST_WORD + 1)).ids
    assert [*own._known] == ["short"]
