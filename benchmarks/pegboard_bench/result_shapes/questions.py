"""Questions whose answers are in a result, made by rule from the result as it was recorded.

JSON: the value at a random path. Pages: how a random text of the page goes on, by Python's own parser of HTML. Other
texts: how a random line goes on that begins like no other.
"""

from __future__ import annotations

import random
import re
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
        return [Question(recording=at, kind="value", path=path, answer=value) for path, value in chosen]
    text = "\n".join(texts)
    page = text[text.lower().find("<!doctype") :] if "<!doctype" in text[:400].lower() else text
    if is_page(page):
        said = [each for each in page_texts(page) if len(each.split()) >= 2 * LEAST_WORDS]
        chosen_texts = draw.sample(said, min(len(said), 12))
        return [Question(recording=at, kind="page", answer=each, begins=_begin(each)) for each in chosen_texts]
    lines = [line for line in text.split("\n") if len(line.split()) >= 2 and len(line) <= LONGEST_LINE]
    starts = [line[: max(3, len(line) // 2)] for line in lines]
    unique = [line for line, start in zip(lines, starts, strict=True) if text.count(start) == 1]
    chosen_lines = draw.sample(unique, min(len(unique), 12))
    return [
        Question(recording=at, kind="line", answer=line, begins=line[: max(3, len(line) // 2)]) for line in chosen_lines
    ]


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
