"""Questions whose answers are in a result, made by rule from the result as it was recorded.

JSON: the value at a random path. Pages: how a random text of the page goes on, by Python's own parser of HTML. Other
texts: how a random line goes on that begins like no other. In words, a value is that of a field where another field of
the same row is what it is in no other row; in a row without such a field it has its place alone.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any, Literal

from pegboard.results.html_text import is_page
from pegboard.results.shape import framed_json, texts_of
from pegboard_bench.result_shapes.recordings import Recording

LEAST_WORDS = 5
LONGEST_LINE = 400
Path = tuple[str | int, ...]
Kind = Literal["value", "line", "page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """``path`` leads to the ``answer`` in JSON; in a text, ``begins`` is what the answer begins with."""

    recording: int
    kind: Kind
    answer: Any
    path: Path = ()
    begins: str = ""
    said: str = ""
    """The question in words, without its answer."""


def questions(recorded: Sequence[Recording], number: int, seed: int) -> list[Question]:
    """So many questions, as many of each result as of any other, as far as it has them."""
    draw = random.Random(seed)  # noqa: S311
    pools = [_pool(at, each, draw) for at, each in enumerate(recorded)]
    found: list[Question] = []
    while len(found) < number and any(pools):
        for pool in pools:
            if pool and len(found) < number:
                found.append(pool.pop())
    return found


def _pool(at: int, recording: Recording, draw: random.Random) -> list[Question]:
    """A few different questions about one result."""
    texts = texts_of(recording.result)
    values = [framed[1] for text in texts if (framed := framed_json(text)) is not None]
    if texts and len(values) == len(texts):
        whole = values[0] if len(values) == 1 else values
        leaves = list(_leaves(whole, ()))
        chosen = draw.sample(leaves, min(len(leaves), 12))
        return [
            Question(recording=at, kind="value", path=path, answer=value, said=in_words(whole, path))
            for path, value in chosen
        ]
    text = "\n".join(texts)
    page = text[text.lower().find("<!doctype") :] if "<!doctype" in text[:400].lower() else text
    if is_page(page):
        said = [each for each in page_texts(page) if len(each.split()) >= 2 * LEAST_WORDS]
        chosen_texts = draw.sample(said, min(len(said), 12))
        return [
            Question(recording=at, kind="page", answer=each, begins=_begin(each), said=_after(_begin(each)))
            for each in chosen_texts
        ]
    lines = [line for line in text.split("\n") if len(line.split()) >= 2 and len(line) <= LONGEST_LINE]
    starts = [line[: max(3, len(line) // 2)] for line in lines]
    unique = [line for line, start in zip(lines, starts, strict=True) if text.count(start) == 1]
    chosen_lines = draw.sample(unique, min(len(unique), 12))
    halves = [(line, line[: max(3, len(line) // 2)]) for line in chosen_lines]
    return [
        Question(recording=at, kind="line", answer=line, begins=half, said=_after(_whole_words(line, half)))
        for line, half in halves
    ]


def _whole_words(line: str, begins: str) -> str:
    """The beginning of a line up to the end of its last word."""
    rest = re.match(r"\w*", line[len(begins) :])
    return begins + (rest[0] if rest else "")


def _after(begins: str) -> str:
    return f"What comes after {begins!r}?"


def in_words(whole: Any, path: Path) -> str:
    """What is asked for, without its place where another field of its row says which row it is."""
    value, told = whole, [f"What is {'.'.join(str(step) for step in path if isinstance(step, str)) or 'there'}"]
    for depth, step in enumerate(path):
        if isinstance(value, list) and isinstance(step, int):
            told.append(_which(value, step, path[depth + 1 :]))
        value = value[step]
    return " ".join(told) + "?"


def _which(rows: Sequence[Any], at: int, rest: Path) -> str:
    """The shortest of the fields, but the one that is asked for, that no other of the rows has."""
    given = dict(_leaves(rows[at], ()))
    own = {field: value for field, value in given.items() if field and field != rest}
    others = Counter((field, str(value)) for row in rows for field, value in _leaves(row, ()) if field in own)
    alone = [(field, str(value)) for field, value in own.items() if others[field, str(value)] == 1 and str(value)]
    if not alone:
        return f"in number {at + 1}"
    field, value = min(alone, key=lambda each: len(each[1]))
    return f"where {'.'.join(map(str, field))} is {value}"


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, (*path, key))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from _leaves(each, (*path, at))
    else:
        yield path, value


def _begin(text: str) -> str:
    return " ".join(text.split()[:LEAST_WORDS])


class _Texts(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._unseen = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._unseen += tag in ("script", "style", "noscript", "template", "svg", "title")

    def handle_endtag(self, tag: str) -> None:
        self._unseen -= tag in ("script", "style", "noscript", "template", "svg", "title")

    def handle_data(self, data: str) -> None:
        if self._unseen <= 0 and data.strip():
            self.found.append(re.sub(r"\s+", " ", data.strip()))


def page_texts(page: str) -> list[str]:
    """The texts between the tags of a page that its readers see."""
    reader = _Texts()
    reader.feed(page)
    return reader.found
