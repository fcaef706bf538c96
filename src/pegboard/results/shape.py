"""The shape in which a model gets a tool's result: a pure function of the result, its schema and the policy.

rules       JSON as tables (`json_tables`), repeated lines once (`line_folds`): the text says all that the result says
with handle pages as text (`html_text`), fields that the schema names (`projection`), head and counts of what is longer
            than the budget (`excerpts`): the rest is read by the handle under which the result is kept

Errors, results below the threshold, and what no rule makes shorter stay as they are, and so do blocks that are no
texts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Any

from pegboard.errors import ConfigError
from pegboard.model import JsonObject
from pegboard.protocols import TokenCounter
from pegboard.results.asked_lines import WORD, asked_lines
from pegboard.results.excerpts import ASKED, GAP_TOKENS, MOST_CHARACTERS, contents, excerpt, table_heads
from pegboard.results.html_text import page_beginning, page_pieces, page_start, page_text
from pegboard.results.json_parts import LONG, written_json
from pegboard.results.json_samples import sampled_json, sampled_rows
from pegboard.results.json_tables import JsonTable, NotShaped, TableText, parsed_json, table_text
from pegboard.results.line_folds import folded_lines
from pegboard.results.projection import projected
from pegboard.results.python_values import parsed_python

LEGEND = "[JSON as tables: tab-separated, fields in the first row, empty = null]"
PYTHON_LEGEND = "[Python values as tables of JSON: tab-separated, fields in the first row, empty = null]"
JOINED = "[{} texts, each the JSON of one row]"
FRAME = 2_000
"""Most characters before and after the JSON in a text."""
LEAST_JOINED = 3
FAR = 40
"""Characters for each token of the budget; a text that is longer is cut by any measure."""
SAMPLE, SAMPLES = 1_000, 24
"""Characters of a sample, and how many are counted of a long text, about."""
PAGE_CHARACTERS = 5
"""Characters of a token, about: more than this times the budget is not read of a long page."""
HANDLE_LENGTH = 24
HANDLE = re.compile(rf"r[0-9a-f]{{{HANDLE_LENGTH}}}")
WAYS = "lines, grep, path or page"
WAYS_EXPLAINED = "lines (40-120), grep (a|b), path (JMESPath) or page"
"""Where the definition of the tool does not explain them, as many conversations carry it that never read on."""
NESTED = (":{", ": {", ":[", ": [")
"""One of these is in JSON as programs write it, where an object has another value in it."""
READ = "read_result"
"""The name of the tool that reads a kept result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapePolicy:
    """Results of fewer than ``threshold`` tokens stay whole; those of more than ``budget`` are cut, if there may be a
    handle. ``seconds`` is how long they are kept; 0 means as long as whoever reads them has them."""

    threshold: int = 400
    budget: int = 6_000
    seconds: float = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedResult:
    """``result`` is what the model gets, ``before`` and ``after`` the tokens of its texts, ``rules`` what was done.
    For results that are far longer than the budget, ``before`` is an estimate by samples, and so is ``after`` if
    nothing is cut. With ``kept``, the original has to be kept under ``handle``."""

    result: JsonObject
    before: int
    after: int
    rules: tuple[str, ...] = ()
    handle: str = ""
    uncut: int = 0
    """Tokens of what could have been handed on without a handle, about."""

    @property
    def kept(self) -> bool:
        return bool(self.handle)


@dataclass(frozen=True, slots=True)
class PartRead:
    """What is read of a text that is far longer than its budget: ``tokens`` from its beginning, and what is about what
    was ``asked``."""

    tokens: int
    asked: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedText:
    """A text by the rules: its lines, the tables among them, and whether something is left out.

    Of a `PartRead`, ``numbers`` are the places of the lines among the ``total`` of the whole text, None if nobody knows
    them; ``about`` are those about what was asked, the best first; and ``share`` is what part of the text they are,
    about.
    """

    lines: list[str]
    rules: tuple[str, ...] = ()
    tables: tuple[JsonTable, ...] = field(default=())
    lossy: bool = False
    numbers: Sequence[int | None] | None = None
    total: int | None = None
    about: Sequence[int] = ()
    share: float = 1.0

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def shape(
    result: JsonObject,
    policy: ShapePolicy,
    counter: TokenCounter,
    *,
    schema: JsonObject | None = None,
    handles: bool = False,
    structured: bool = True,
    asked: str = "",
) -> ShapedResult:
    """The result as its model gets it. The same arguments give the same bytes.

    ``asked`` are words that tell what is looked for: those that stand before the call, and its arguments. What is cut
    keeps the lines about them.

    ``handles`` is whether the original can be kept. Without ``structured``, `structuredContent` that the texts say too
    is left out; with it, it stays as it is.
    """
    texts = texts_of(result)
    long = sum(map(len, texts)) > FAR * policy.budget
    before = 0 if result.get("isError") else _sampled(texts, counter) if long else sum(counter.count(texts))
    if before < max(1, policy.threshold):
        return ShapedResult(result=result, before=before, after=before)
    asked = asked if WORD.search(asked) else ""
    part = PartRead(policy.budget, asked) if handles and long else None
    shaped = shaped_texts(texts, schema=schema if handles else None, pages=handles, part=part)
    said, after = texts, before
    if any(each.rules for each in shaped):
        said = [each.text for each in shaped]
        after = round(before * _size(shaped) / sum(map(len, texts))) if long else sum(counter.count(said))
        if after >= before:
            shaped, said, after = [ShapedText(lines=text.split("\n")) for text in texts], texts, before
    rules = tuple(dict.fromkeys(rule for each in shaped for rule in each.rules))
    handle, uncut, beyond = "", after, any(each.share < 1 for each in shaped)
    if handles and (beyond or after > policy.budget or any(each.lossy for each in shaped)):
        handle = handle_of(result)
        if beyond or after > policy.budget:
            said, rules = [_cut(shaped, handle, policy, counter, asked)], (*rules, "cut")
        else:
            said = [*said[:-1], f"{said[-1]}\n{_how_to_read(handle, policy, whole=True)}"]
        after = sum(counter.count(said))
    if not rules or after >= before:
        return ShapedResult(result=result, before=before, after=before)
    sent = with_texts(result, said)
    if not structured and "structuredContent" in sent and is_said(result, texts):
        sent = {key: value for key, value in sent.items() if key != "structuredContent"}
        rules = (*rules, "structured")
    return ShapedResult(result=sent, before=before, after=after, rules=rules, handle=handle, uncut=uncut)


def _size(shaped: Sequence[ShapedText]) -> float:
    """Characters that the texts would have, about, if all of each were written."""
    return sum(sum(map(len, each.lines)) / each.share for each in shaped)


def _sampled(texts: Sequence[str], counter: TokenCounter) -> int:
    """Tokens of long texts, about: by samples from all over each."""
    parts = [_samples(text) for text in texts]
    counted = [sum(counter.count(each)) if each else 0 for each in parts]
    sizes = [sum(map(len, each)) for each in parts]
    return sum(round(count * len(text) / max(1, size)) for text, count, size in zip(texts, counted, sizes, strict=True))


def _samples(text: str) -> list[str]:
    every = len(text) // SAMPLES
    return [text] if every <= SAMPLE else [text[at : at + SAMPLE] for at in range(0, len(text), every)]


def texts_of(result: JsonObject) -> list[str]:
    """The texts of a result that are for the model."""
    return [block["text"] for block in result.get("content") or () if _is_for_model(block)]


def _is_for_model(block: Any) -> bool:
    if not isinstance(block, dict) or block.get("type") != "text" or not isinstance(block.get("text"), str):
        return False
    audience = (block.get("annotations") or {}).get("audience")
    return not audience or "assistant" in audience


def with_texts(result: JsonObject, texts: Sequence[str]) -> dict[str, Any]:
    """The result with these texts in place of its own; those of one text take the place of its first. A text of which
    nothing is left has no block, since providers refuse empty ones."""
    left, content = list(texts), []
    for block in result["content"]:
        if not _is_for_model(block):
            content.append(block)
        elif left and ((text := left.pop(0)) or not block["text"]):
            content.append({**block, "text": text})
    return {**result, "content": content}


def shaped_texts(
    texts: Sequence[str], *, schema: JsonObject | None = None, pages: bool, part: PartRead | None = None
) -> list[ShapedText]:
    """Texts by the rules, or parts of them. Several texts that are the JSON of one object each become one table."""
    joined = _joined(texts, part) if len(texts) >= LEAST_JOINED else None
    return [joined] if joined is not None else [_shaped_text(text, schema, part, pages=pages) for text in texts]


def _shaped_text(text: str, schema: JsonObject | None, part: PartRead | None, *, pages: bool) -> ShapedText:
    for read in _readings(text, schema, part):
        if (of_json := _shaped_json(text, schema, read)) is not None:
            return of_json
    if (written := parsed_python(text)) is not None and (made := table_text(written)).tables:
        return ShapedText(lines=[PYTHON_LEGEND, *made.lines], rules=("table",), tables=made.parsed)
    start = page_start(text) if pages else None
    if start is not None:
        try:
            return _shaped_page(text[:start].rstrip(), text[start:], part)
        except ConfigError:  # without the extra, pages stay pages
            return ShapedText(lines=text.split("\n"))
    lines = text.split("\n")
    kept = folded_lines(lines)
    return ShapedText(lines=kept, rules=("fold",) if kept is not lines else ())


def _readings(text: str, schema: JsonObject | None, part: PartRead | None) -> Iterator[Callable[[str], Any]]:
    """The ways to read JSON in a text, the fastest first; the last one can read all that can be written."""
    if part is not None:
        yield partial(sampled_json, asked=part.asked, characters=_characters(part))
    if schema is None and len(text) > LONG and any(each in text[:LONG] for each in NESTED):
        yield written_json
    yield parsed_json


def _shaped_json(text: str, schema: JsonObject | None, read: Callable[[str], Any]) -> ShapedText | None:
    """A text with JSON in it; None if there is none, or if it cannot be written as it was ``read``."""
    framed = framed_json(text, read)
    if framed is None:
        return None
    head, value, tail = framed
    kept = projected(value, schema) if schema is not None else value
    try:
        made = table_text(kept)
    except NotShaped:
        return None
    front = [*_lines(head), *([LEGEND] if made.tables else [])]
    whole = _with_tables(front, made, _lines(tail), "table" if made.tables else "json")
    return whole if kept == value else replace(whole, rules=(*whole.rules, "projection"), lossy=True)


def _with_tables(front: Sequence[str], made: TableText, behind: Sequence[str], *rules: str) -> ShapedText:
    """Tables with the lines before and after them."""
    whole = ShapedText(lines=[*front, *made.lines, *behind], rules=rules, tables=made.parsed)
    some = [each.some for each in made.parsed if each.some is not None]
    if not some:
        return whole
    numbers, end = made.numbers
    begin, total = len(front), len(front) + end + len(behind)
    return replace(
        whole,
        numbers=[*range(begin), *(begin + each for each in numbers), *range(begin + end, total)],
        total=total,
        about=[begin + at for at in sorted(made.ranks, key=made.ranks.__getitem__)],
        share=sum(each.read for each in some) / max(1, sum(each.size for each in some)),
    )


def _lines(text: str) -> list[str]:
    return text.split("\n") if text else []


def _shaped_page(front: str, page: str, part: PartRead | None) -> ShapedText:
    """What stands before a page, and the page as text, or its beginning and its pieces about what was asked."""
    said, share = (page_text(page), 1.0) if part is None else page_beginning(page, _beginning(part))
    lines = "\n".join(filter(None, [front, said])).split("\n")
    if part is None or share == 1:
        return ShapedText(lines=lines, rules=("page",), lossy=True)
    pieces = page_pieces(page[int(share * len(page)) :], part.asked) if part.asked else []
    more = [line for piece in pieces for line in piece.split("\n")]
    return ShapedText(
        lines=[*lines, *more],
        rules=("page",),
        lossy=True,
        numbers=[*range(len(lines)), *[None] * len(more)],
        about=range(len(lines), len(lines) + len(more)),
        share=share,
    )


def _beginning(part: PartRead) -> int:
    """Characters of the beginning of a page: what is asked is looked for behind it, so it must not be longer than what
    is shown of it."""
    return int(part.tokens * PAGE_CHARACTERS * (1 - ASKED if part.asked else 1))


def _characters(part: PartRead) -> int:
    """Of JSON, whose tables are shorter."""
    return 2 * part.tokens * MOST_CHARACTERS


def framed_json(text: str, read: Callable[[str], Any] = parsed_json) -> tuple[str, Any, str] | None:
    """The JSON object or array in a text, as ``read``, with the text before and after it; None if there is none."""
    stripped = text.strip()
    if stripped[:1] in "{[" and stripped[-1:] in "}]":
        try:
            return "", read(stripped), ""
        except NotShaped:
            return None
    starts = [at for mark in ("\n{", "\n[") if (at := stripped.find(mark, 0, FRAME)) >= 0]
    late = max(0, len(stripped) - FRAME)
    ends = [at for mark in ("}\n", "]\n", "}", "]") if (at := stripped.rfind(mark, late)) >= 0]
    if not starts or not ends:
        return None
    start, end = min(starts), max(ends) + 1
    try:
        return stripped[:start], read(stripped[start + 1 : end]), stripped[end:].removeprefix("\n")
    except NotShaped:
        return None


def _joined(texts: Sequence[str], part: PartRead | None) -> ShapedText | None:
    if any(not text.lstrip().startswith("{") for text in texts):
        return None
    try:
        rows = (
            [parsed_json(text) for text in texts]
            if part is None
            else sampled_rows(texts, part.asked, _characters(part))
        )
        made = table_text(rows)
    except NotShaped:
        return None
    if made.root != "@1":
        return None
    return _with_tables([LEGEND, JOINED.format(len(texts))], made, (), "joined", "table")


def _cut(shaped: Sequence[ShapedText], handle: str, policy: ShapePolicy, counter: TokenCounter, asked: str) -> str:
    """Head, counts and tail of texts that are longer than the budget, and what they say about what was asked."""
    lines = [line for each in shaped for line in each.lines]
    tables = [table for each in shaped for table in each.tables]
    held = contents(tables) if len(shaped) == 1 else []
    advice = _how_to_read(handle, policy, whole=False)
    room = policy.budget - sum(counter.count(["\n".join([*held, advice])])) - GAP_TOKENS
    if all(each.numbers is None for each in shaped):
        heads = table_heads(lines) if tables else []
        about = asked_lines(lines, asked, heads[0] if heads else 0) if asked else []
        said = excerpt(lines, room, counter, tail=not tables, about=about)
    else:
        numbers, total, about = _numbered(shaped, asked)
        said = excerpt(lines, room, counter, tail=False, about=about, numbers=numbers, total=total)
    return "\n".join([said, *held, advice])


def _numbered(shaped: Sequence[ShapedText], asked: str) -> tuple[list[int | None], int | None, list[int]]:
    """The places that the lines of all texts have, how many there are, and which are about what was asked."""
    numbers: list[int | None] = []
    total: int | None = 0
    about: list[list[int]] = []
    for each in shaped:
        whole = each.numbers is None
        best = asked_lines(each.lines, asked) if whole and asked else each.about
        about.append([len(numbers) + at for at in best])
        own = range(len(each.lines)) if each.numbers is None else each.numbers
        numbers += [None if total is None or at is None else total + at for at in own]
        more = len(each.lines) if whole else each.total
        total = None if total is None or more is None else total + more
    return numbers, total, [at for group in zip_longest(*about) for at in group if at is not None]


def _how_to_read(handle: str, policy: ShapePolicy, *, whole: bool) -> str:
    kept = f"kept for {max(1, round(policy.seconds / 3600))} hours" if policy.seconds else "kept"
    if whole:
        return f'[The original is {kept}: {READ} with handle "{handle}" and original true]'
    ways = WAYS if policy.seconds else WAYS_EXPLAINED
    return f'[All of it is {kept}: {READ} with handle "{handle}" and {ways}]'


def handle_of(result: JsonObject) -> str:
    """The name under which a result is kept: a hash of it, so that the same result has the same name (`HANDLE`)."""
    texts = texts_of(result)
    rest = with_texts(result, [str(len(text)) for text in texts])
    said = hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode("ascii"))
    for text in texts:
        said.update(text.encode("utf-8", "surrogatepass"))
    return f"r{said.hexdigest()[:HANDLE_LENGTH]}"


def is_said(result: JsonObject, texts: Sequence[str]) -> bool:
    """Whether the texts say what `structuredContent` does: as JSON, in the wrapper `result` or without it."""
    structured = result.get("structuredContent")
    inner = structured["result"] if isinstance(structured, dict) and structured.keys() == {"result"} else structured
    try:
        said = _loaded(texts)
        known = [said, said[0] if len(said) == 1 else said]
        return any(each in (structured, inner) for each in known)
    except RecursionError:  # they are too deep to be compared
        return False


def _loaded(texts: Sequence[str]) -> list[Any]:
    """The values of texts that are JSON; the texts, if one is not."""
    try:
        return [json.loads(text) for text in texts]
    except ValueError:
        return list(texts)
