"""Answers questions from what a model would get: the shaped text, and where it was cut, `read_result`."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any

from pegboard.results.json_tables import HEADER, NotShaped, json_text, parsed_json, restored
from pegboard.results.line_folds import unfolded
from pegboard.results.shape import JOINED, LEGEND, PYTHON_LEGEND
from pegboard_bench.result_shapes.questions import Path, Question

GAP = re.compile(r"\[lines (\d+) to (\d+) of (\d+) are left out\]")
NOTE = re.compile(r"\n\[(?:All of it|The original) is kept for .*\]$")
MORE = re.compile(r"\n\[more follows: page \d+ of it, or ask for less\]$")
ROW = re.compile(JOINED.format(r"\d+").replace("[", r"\[").replace("]", r"\]"))
Read = Callable[..., str]


def first_answer(question: Question, text: str) -> bool:
    """Whether the text alone gives the right answer."""
    if question.kind == "value":
        found, value = value_in(text, question.path)
        return found and same(value, question.answer)
    plain = unfolded(NOTE.sub("", text))
    if question.kind == "line":
        return question.answer in plain.split("\n")
    return question.answer in _plain(plain)


def second_answer(question: Question, read: Read) -> bool:
    """Whether `read_result` gives it: by path or text, else, for a page, in what the tool sent, page by page."""
    if question.kind == "value":
        found = read(path=jmespath_of(question.path))
        try:
            return same(json.loads(found), question.answer)
        except ValueError:
            return False
    said = read(grep=question.begins)
    if question.kind == "line" and any(line.partition(": ")[2] == question.answer for line in said.split("\n")):
        return True
    if question.kind == "page" and question.answer in _plain(said):
        return True
    pages: list[str] = []
    while not pages or MORE.search(pages[-1]):
        pages.append(read(page=len(pages) + 1, original=True))
    whole = "\n".join(MORE.sub("", page) for page in pages)
    return question.answer in (_plain(whole) if question.kind == "page" else whole)


def _plain(text: str) -> str:
    """A text without tags, references to characters, and line breaks."""
    return re.sub(r"\s+", " ", html.unescape(re.sub("<[^>]*>", "", text)))


def value_in(text: str, path: Path) -> tuple[bool, Any]:
    """The value at a path of the JSON that a text holds, whole or cut; false if it is not there."""
    lines = [
        line
        for line in NOTE.sub("", text).split("\n")
        if line not in (LEGEND, PYTHON_LEGEND) and not ROW.fullmatch(line)
    ]
    if (gap := next((at for at, line in enumerate(lines) if GAP.fullmatch(line)), None)) is not None:
        return _in_part(lines[:gap], path)
    start = next((at for at, line in enumerate(lines) if line[:1] in ("{", "[", "@")), 0)
    for end in (len(lines), *range(len(lines) - 1, start, -1)):
        try:
            value: Any = _read("\n".join(lines[start:end]))
        except (ValueError, NotShaped, IndexError, KeyError):
            continue
        return _at(value, path)
    return False, None


def _read(text: str) -> Any:
    """JSON as tables or as it was sent, with its literals as they are written."""
    if "\n@" in text or text.startswith("@"):
        return restored(text)
    return parsed_json(text)


def _in_part(lines: list[str], path: Path) -> tuple[bool, Any]:
    """The value in the head of a result: of the last table that began, the rows that are there."""
    heads = [at for at, line in enumerate(lines) if HEADER.fullmatch(line)]
    if not heads:
        return False, None
    last = heads[-1]
    there = len(lines) - last - 2
    if there <= 0:
        return False, None
    lines[last] = re.sub(r"^(@\d+) \d+ rows", rf"\1 {there} rows", lines[last])
    start = next((at for at, line in enumerate(lines) if line[:1] in ("{", "[", "@")), 0)
    try:
        value = restored("\n".join(lines[start:]))
    except (ValueError, KeyError, IndexError):
        return False, None
    return _at(value, path)


def _at(value: Any, path: Path) -> tuple[bool, Any]:
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return False, None
    return True, value


def same(found: Any, wanted: Any) -> bool:
    """Equal as JSON; the literals of numbers by their value."""
    if isinstance(found, bool) or isinstance(wanted, bool) or found is None or wanted is None:
        return found is wanted
    if type(found) is str and type(wanted) is str:
        return found == wanted or json_text(found) == json_text(wanted)
    return float(json_text(found)) == float(json_text(wanted)) if _is_number(found) and _is_number(wanted) else False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and not json_text(value).startswith('"'))


def jmespath_of(path: Path) -> str:
    """The path as an expression.

    >>> jmespath_of(("items", 3, "user.name"))
    '"items"[3]."user.name"'
    """
    said = ""
    for step in path:
        said += f"[{step}]" if isinstance(step, int) else f"{'.' if said else ''}{json.dumps(step, ensure_ascii=False)}"
    return said or "@"
