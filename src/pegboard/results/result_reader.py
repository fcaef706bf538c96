"""What `read_result` answers: parts of a kept result, within its budget of tokens."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from pegboard.errors import ArgumentsInvalid
from pegboard.extras import required
from pegboard.model import JsonObject
from pegboard.protocols import TokenCounter
from pegboard.results.json_tables import HEADER, NotShaped, parsed_json, table_text
from pegboard.results.shape import READ, ShapePolicy, shaped_texts, texts_of

MOST_LINES = 2_000
MOST_SAID = 200_000
"""Values and characters that a path may say of a result that has fewer."""
MOST_TIMES = 4
"""How many times what a longer result has a path may say."""
LINES = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
READER_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "handle": {"type": "string", "description": "As the shortened result names it"},
        "lines": {
            "type": "string",
            "description": "Lines by number, such as 40 or 40-120",
            "pattern": "^\\d{1,9}(-\\d{1,9})?$",
        },
        "grep": {"type": "string", "description": "Lines with this text; | separates several", "minLength": 1},
        "path": {"type": "string", "description": "A JMESPath expression on the JSON", "minLength": 1},
        "page": {
            "type": "integer",
            "minimum": 1,
            "description": "One page after the other, of all or of what is asked for; the default is the first",
        },
        "original": {"type": "boolean", "description": "Read it as the tool sent it"},
    },
    "required": ["handle"],
    "additionalProperties": False,
}
READER: JsonObject = {
    "name": READ,
    "description": "Read more of a tool's result that was shortened: some lines, the lines with a text, values by a "
    "JMESPath, or page by page.",
    "inputSchema": READER_SCHEMA,
    "annotations": {"readOnlyHint": True, "openWorldHint": False},
}
WAYS = ("lines", "grep", "path")


def part_of(
    result: JsonObject,
    arguments: JsonObject,
    policy: ShapePolicy,
    counter: TokenCounter,
    *,
    schema: JsonObject | None = None,
) -> str:
    """The part of a result that valid arguments of `read_result` ask for, cut to the budget. Its lines are those of the
    result as it was shaped, with the ``schema`` of its tool.

    Raises ArgumentsInvalid for two parts at once, lines that are not there, and a path that cannot be used.
    """
    asked = [way for way in WAYS if way in arguments]
    if len(asked) > 1:
        raise ArgumentsInvalid(READ, [f"{' and '.join(asked)} exclude each other"], READER_SCHEMA)
    return _within(_asked_for(texts_of(result), arguments, schema), int(arguments.get("page", 1)), policy, counter)


def _asked_for(texts: Sequence[str], arguments: JsonObject, schema: JsonObject | None) -> list[str]:
    """The lines that arguments ask for, of all pages."""
    if "path" in arguments:
        return _at_path(texts, arguments["path"]).split("\n")
    if not arguments.get("original"):
        texts = [each.text for each in shaped_texts(texts, schema=schema, pages=True)]
    lines = "\n".join(texts).split("\n")
    if "grep" in arguments:
        return _with_text(lines, arguments["grep"])
    return _numbered(lines, arguments["lines"]) if "lines" in arguments else lines


def _at_path(texts: Sequence[str], path: str) -> str:
    """The values at a JMESPath, as JSON or tables. Raises ArgumentsInvalid."""
    jmespath = required("jmespath", "results")
    try:
        values = [json.loads(text[_json_start(text) : _json_end(text)]) for text in texts]
    except (ValueError, RecursionError) as error:
        raise ArgumentsInvalid(
            READ, ["the result is no JSON, so it has no path: use grep or lines"], READER_SCHEMA
        ) from error
    search = jmespath.visitor.TreeInterpreter()
    search.visit = _bounded(search.visit, max(MOST_SAID, MOST_TIMES * sum(map(len, texts))))
    try:
        found = search.visit(jmespath.compile(path).parsed, values[0] if len(values) == 1 else values)
        text = json.dumps(found, ensure_ascii=False)
    except (jmespath.exceptions.JMESPathError, ArithmeticError, TypeError, ValueError, RecursionError) as error:
        raise ArgumentsInvalid(READ, [f"path: {error}"], READER_SCHEMA) from error
    try:
        return "\n".join(table_text(parsed_json(text)).lines)
    except NotShaped:
        return text


def _bounded(visit: Callable[..., Any], most: int) -> Callable[..., Any]:
    """The steps of a search, which raise ValueError if a value has more than ``most`` to write, or all of them have
    more items: a list may have the same list many times, at no cost."""
    sizes = _Sizes()

    def step(*given: Any) -> Any:
        found = visit(*given)
        if sizes.of(found) > most or sizes.items > most:
            raise ValueError("it says too much, ask for less")
        return found

    return step


class _Sizes:
    """About how much there is to write of values; what is seen twice is measured once. ``items`` are those measured."""

    def __init__(self) -> None:
        self.items = 0
        self._known: dict[int, tuple[Any, int]] = {}

    def of(self, value: Any) -> int:
        if isinstance(value, str):
            return 1 + len(value)
        if not isinstance(value, list | dict):
            return 1
        if id(value) not in self._known:
            inner = value.values() if isinstance(value, dict) else value
            size = 1 + sum(map(self.of, inner)) + (sum(map(len, value)) if isinstance(value, dict) else 0)
            self._known[id(value)] = (value, size)
            self.items += len(value)
        return self._known[id(value)][1]


def _json_start(text: str) -> int:
    return min((at for mark in "{[" if (at := text.find(mark)) >= 0), default=0)


def _json_end(text: str) -> int:
    return max(text.rfind("}"), text.rfind("]")) + 1


def _with_text(lines: Sequence[str], wanted: str) -> list[str]:
    """The lines that contain one of the texts, with their numbers; before rows of a table, the names of its fields."""
    texts = [each.casefold() for each in wanted.split("|") if each]
    headed: dict[int, str] = {}
    found: list[str] = []
    fields, until = "", -1
    for number, line in enumerate(lines, 1):
        if (head := HEADER.fullmatch(line)) and number < len(lines):
            fields, until = lines[number], number + 1 + int(head[2])
        if any(each in line.casefold() for each in texts):
            if number <= until and fields and fields not in headed.values():
                headed[number] = fields
                found.append(f"fields: {fields}")
            found.append(f"{number}: {line}")
    count = len(found) - len(headed)
    return [f"[{count} lines contain it]" if count else "[no line contains it]", *found]


def _numbered(lines: Sequence[str], wanted: str) -> list[str]:
    match = LINES.fullmatch(wanted)
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= first <= min(last, len(lines)):
        raise ArgumentsInvalid(READ, [f"lines: there are lines 1 to {len(lines)}"], READER_SCHEMA)
    return [*lines[first - 1 : last]]


def _within(lines: Sequence[str], page: int, policy: ShapePolicy, counter: TokenCounter) -> str:
    """A page of the lines, with a note if there are more pages. A line that is longer than a page is divided."""
    pages = _pages("\n".join(lines), policy.budget, counter, page)
    if len(pages) < page:
        raise ArgumentsInvalid(READ, [f"page: there are {len(pages)} pages"], READER_SCHEMA)
    found, more = pages[page - 1], len(pages) > page
    return f"{found}\n[more follows: page {page + 1} of it, or ask for less]" if more else found


def _pages(text: str, budget: int, counter: TokenCounter, page: int) -> list[str]:
    """The pages up to the one after ``page``."""
    pages: list[str] = []
    while (text or not pages) and len(pages) <= page:
        kept = counter.cut(text[: budget * 8], budget) or text[:1]
        if len(kept) < len(text):
            end = kept.rfind("\n") + 1
            kept = kept[:end] if end > len(kept) // 2 else kept
        pages.append(kept.removesuffix("\n"))
        text = text[len(kept) :]
    return pages
