"""Answers questions from what a model would get: the shaped text, and where it was cut, `read_result`."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pegboard.results.json_tables import HEADER, NotShaped, json_text, parsed_json, restored
from pegboard.results.line_folds import unfolded
from pegboard.results.shape import JOINED, LEGEND, PYTHON_LEGEND
from pegboard_bench.result_shapes.questions import Path, Question

GAP = re.compile(r"\[lines (\d+) to (\d+) of (\d+) are left out\]")
NOTE = re.compile(r"\n\[(?:All of it|The original) is kept for .*\]$")
MORE = re.compile(r"\n\[more follows: page \d+ of it, or ask for less\]$")
ROW = re.compile(JOINED.format(r"\d+").replace("[", r"\[").replace("]", r"\]"))
LEGENDS = (LEGEND, PYTHON_LEGEND)
GONE = "\x00gone"
"""A cell of a row that was left out."""
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
    lines = NOTE.sub("", text).split("\n")
    if any(GAP.fullmatch(line) for line in lines):
        return _in_part(_numbered(lines), path)
    lines = [line for line in lines if line not in LEGENDS and not ROW.fullmatch(line)]
    start = next((at for at, line in enumerate(lines) if _begins_json(line)), 0)
    for end in (len(lines), *range(len(lines) - 1, start, -1)):
        try:
            value: Any = _read("\n".join(lines[start:end]))
        except (ValueError, NotShaped, IndexError, KeyError):
            continue
        return _at(value, path)
    return False, None


def _begins_json(line: str) -> bool:
    return line[:1] in ("{", "[", "@") and line not in LEGENDS and not ROW.fullmatch(line)


def _read(text: str) -> Any:
    """JSON as tables or as it was sent, with its literals as they are written."""
    if "\n@" in text or text.startswith("@"):
        return restored(text)
    return parsed_json(text)


def _in_part(numbered: Mapping[int, str], path: Path) -> tuple[bool, Any]:
    """The value in what is there of a result that was cut: in the rows of tables whose fields are there too."""
    tables: dict[str, list[str]] = {}
    for at, line in numbered.items():
        if (head := HEADER.fullmatch(line)) and at + 1 in numbered:
            gone = "\t".join([GONE] * (numbered[at + 1].count("\t") + 1))
            rows = [numbered.get(each, gone) for each in range(at + 2, at + 2 + int(head[2]))]
            tables[head[1]] = [line, numbered[at + 1], *rows]
    first = min((at for at, line in numbered.items() if _begins_json(line)), default=0)
    root = numbered.get(first, "")
    missing = set(re.findall(r"@(\d+)", root)) - tables.keys()
    text = [*([] if HEADER.fullmatch(root) else [root]), *(line for each in tables.values() for line in each)]
    try:
        found, value = _at(restored("\n".join([*text, *(f"@{each} 1 rows\n\n" for each in missing)])), path)
    except (ValueError, KeyError, IndexError):
        return False, None
    return found and value != GONE, value


def _numbered(lines: Sequence[str]) -> dict[int, str]:
    """The whole lines of a result that was cut, by their numbers."""
    found: dict[int, str] = {}
    at = 0
    for line in lines:
        if gap := GAP.fullmatch(line):
            found.pop(int(gap[1]), None)
            at = int(gap[2])
        else:
            at += 1
            found[at] = line
    return found


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
