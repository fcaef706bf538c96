"""Measures shaped results: `make bench-results`. Writes `bench/results/shaping.json`."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import accumulate, cycle, islice, takewhile
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer

from pegboard.catalog.tokens import BpeCounter
from pegboard.results.asked_lines import asked_by
from pegboard.results.json_tables import NotShaped, json_text, parsed_json
from pegboard.results.result_reader import part_of
from pegboard.results.shape import ShapedResult, ShapePolicy, framed_json, shape, texts_of
from pegboard_bench import results
from pegboard_bench.page import write_page
from pegboard_bench.result_shapes.billing import WORDS, billed
from pegboard_bench.result_shapes.checker import first_answer, second_answer
from pegboard_bench.result_shapes.questions import Question, questions
from pegboard_bench.result_shapes.recordings import Recording, recordings

COMMAND = "make bench-results"
POLICY = ShapePolicy()
COUNTER = BpeCounter("o200k_base")
SEED = 7
QUESTIONS = 400
RUNS = 15
MEGABYTE = 1_000_000
FORMS = ("shaped", "handle")
OTHER_WORDS = 80
"""Words that a user says besides a question."""
SEED_OF_OTHERS = 11
"""Of a second draw of questions."""


def formed(recording: Recording, form: str, asked: str = "") -> ShapedResult:
    schema = recording.schema or None
    return shape(recording.result, POLICY, COUNTER, schema=schema, handles=form == "handle", asked=asked)


def asked_in(question: Question, recording: Recording) -> str:
    """What stands before a call that a question leads to: other words, the question, and the recorded arguments."""
    other = random.Random(repr((question.recording, question.path, question.begins)))  # noqa: S311
    words = " ".join(other.choices(WORDS, k=OTHER_WORDS))
    return asked_by(f"{words}\n{question.said}", json.dumps(recording.arguments, ensure_ascii=False))


def text_of(result: Any) -> str:
    return "\n".join(texts_of(result))


def digest(recorded: Sequence[Recording]) -> str:
    """A hash of every byte that is sent."""
    sent = [json.dumps(formed(each, form).result) for each in recorded for form in FORMS]
    asked = [(each, recorded[each.recording]) for each in questions(recorded, QUESTIONS, SEED)]
    sent += [json.dumps(formed(of, "handle", asked_in(each, of)).result) for each, of in asked]
    return hashlib.sha256("\n".join(sent).encode()).hexdigest()


def digest_of_another_process() -> str:
    """The same in a new process, with another seed of Python's hashes."""
    command = [sys.executable, "-m", "pegboard_bench.result_shapes", "--digest"]
    run = subprocess.run(command, env=os.environ | {"PYTHONHASHSEED": "4"}, capture_output=True, text=True, check=True)
    return run.stdout.strip()


def answered(
    recorded: Sequence[Recording], asked: Sequence[Question], form: str, *, before: bool = True
) -> dict[str, Any]:
    """How many questions the text answers, and how many of the others one reading on. ``before`` is whether they stand
    before the call, or come up later."""
    first, second, missed = 0, 0, []
    within, within_first = 0, 0
    for question in asked:
        recording = recorded[question.recording]
        shaped = formed(recording, form, asked_in(question, recording) if before else "")
        right = first_answer(question, text_of(shaped.result))
        whole = "cut" not in shaped.rules
        within, within_first, first = within + whole, within_first + (whole and right), first + right
        if not right and shaped.kept:
            right = second_answer(question, lambda of=recording, **given: part_of(of.result, given, POLICY, COUNTER))
            second += right
        if not right:
            missed.append({"tool": recording.name, "path": [*map(str, question.path)], "begins": question.begins})
    return {"first": first, "second": second, "missed": missed, "within": within, "within_first": within_first}


def minified(text: str) -> str:
    """The peer that every client can be: JSON without blanks."""
    framed = framed_json(text)
    return "\n".join(filter(None, [framed[0], json_text(framed[1]), framed[2]])) if framed is not None else text


def in_toon(encode: Callable[[Any], str], text: str) -> str:
    """The text with its JSON in TOON, where that is shorter."""
    framed = framed_json(text)
    if framed is None:
        return text
    try:
        said = encode(json.loads(json_text(framed[1])))
    except Exception:  # noqa: BLE001 - what the peer cannot say stays as it is
        return text
    return "\n".join(filter(None, [framed[0], said, framed[2]]))


def fewest(before: Sequence[str], after: Sequence[str]) -> int:
    """Tokens where each text is taken in the form that has fewer."""
    pairs = zip(COUNTER.count(list(before)), COUNTER.count(list(after)), strict=True)
    return sum(min(pair) for pair in pairs)


def cut_at_the_head(recorded: Sequence[Recording], asked: Sequence[Question]) -> int:
    """Questions that the first tokens of a result answer, as many as the form `handle` has: what truncation keeps."""
    right = 0
    for question in asked:
        recording = recorded[question.recording]
        shaped = formed(recording, "handle")
        text = text_of(recording.result)
        kept = text if shaped.after >= shaped.before else COUNTER.cut(text, shaped.after)
        if question.kind == "value":
            right += kept == text or _literal(question.answer) in kept
        else:
            right += first_answer(question, kept)
    return right


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if not isinstance(value, str) else json_text(value)


def seconds(recorded: Sequence[Recording], asked_of: Question) -> dict[str, float]:
    """Milliseconds of processor time that a result of 1 MB and one of 4 KB take, by kind: medians of runs. ``asked`` is
    the form handle with a question before the call."""
    rows: list[Any] = []
    flat: list[Any] = []
    page, log = "", ""
    for each in recorded:
        for text in texts_of(each.result):
            try:
                value = parsed_json(text)
            except NotShaped:
                value = None
            if isinstance(value, list) and value and isinstance(value[0], dict) and not rows:
                rows = value
            if isinstance(value, list) and len(value) > len(flat) and all(map(_is_flat, value)):
                flat = value
            if each.name == "fetch/fetch" and "<!DOCTYPE" in text[:300]:
                page = max(page, text[text.find("<!DOCTYPE") :], key=len)
            if each.server == "git" and len(text) > len(log):
                log = text
    texts = {
        "json-1mb": _repeated_rows(rows, MEGABYTE),
        "rows-1mb": _repeated_rows(flat, MEGABYTE),
        "text-1mb": (log * (MEGABYTE // max(1, len(log)) + 1))[:MEGABYTE],
        "page-1mb": _long_page(page),
        "json-4kb": _repeated_rows(rows, 4_000),
        "rows-4kb": _repeated_rows(flat, 4_000),
        "text-4kb": log[:4_000],
    }
    found: dict[str, float] = {}
    for form, asked in (("shaped", ""), ("handle", ""), ("asked", asked_in(asked_of, recorded[asked_of.recording]))):
        for name, text in texts.items():
            result = {"content": [{"type": "text", "text": text}]}
            times = []
            for _ in range(RUNS):
                begin = time.process_time()
                shape(result, POLICY, COUNTER, handles=form != "shaped", asked=asked)
                times.append((time.process_time() - begin) * 1000)
            found[f"ms/{form}/{name}"] = median(times)
    return found


def _is_flat(row: Any) -> bool:
    return isinstance(row, dict) and not any(isinstance(each, list | dict) for each in row.values())


def _repeated_rows(rows: Sequence[Any], size: int) -> str:
    """JSON of the rows, again and again with a number, of about ``size`` characters, and not more."""
    numbered = (row | {"n": at} for at, row in enumerate(cycle(rows)))
    ends = accumulate(len(json.dumps(row)) + len(", ") for row in numbered)
    fit = sum(1 for _ in takewhile(lambda end: end <= size, ends))
    return json.dumps([row | {"n": at} for at, row in enumerate(islice(cycle(rows), fit))])


def _long_page(page: str) -> str:
    head, tag, body = page.partition("<body")
    return f"{head}{tag}{body * (MEGABYTE // max(1, len(body)) + 1)}"[:MEGABYTE]


def main(
    out: Annotated[Path, typer.Option(help="Folder of results files.")] = Path("bench/results"),
    toon: Annotated[Path | None, typer.Option(help="Folder with the package toon_format.")] = None,
    page: Annotated[Path | None, typer.Option(help="The page of all benchmarks, to be written again.")] = None,
    part: Annotated[str, typer.Option(help="shapes, times, billing, or all.")] = "all",
    digest_only: Annotated[bool, typer.Option("--digest", hidden=True)] = False,
) -> None:
    recorded = recordings()
    if digest_only:
        print(digest(recorded))  # noqa: T201
        return
    if part in ("shapes", "all"):
        print(shapes(recorded, out, toon))  # noqa: T201
    if part in ("times", "all"):
        asked = questions(recorded, 1, SEED)[0]
        times = seconds(recorded, asked) | {"load/times": os.getloadavg()[0]}
        results.extend(out / "shaping.json", "times", figures=times, table={"runs": RUNS})
    if part in ("billing", "all"):
        of_billing, table = billed(recorded, SEED)
        results.extend(out / "shaping.json", "billing", figures=of_billing, table=table)
    if page is not None:
        write_page(page, out)


def shapes(recorded: Sequence[Recording], out: Path, toon: Path | None) -> Path:
    """Measure what shapes save and say, in a new results file."""
    asked = questions(recorded, QUESTIONS, SEED)
    figures: dict[str, float] = {}
    tools: dict[str, dict[str, int]] = defaultdict(lambda: {"results": 0, "before": 0, "shaped": 0, "handle": 0})
    rules: dict[str, int] = defaultdict(int)
    missed: dict[str, Any] = {}
    for each in recorded:
        row = tools[each.name]
        row["results"] += 1
        for form in FORMS:
            made = formed(each, form)
            row[form] += sum(COUNTER.count(texts_of(made.result)))
            if form == "handle":
                row["before"] += sum(COUNTER.count(texts_of(each.result)))
                for rule in made.rules or ("whole",):
                    rules[rule] += 1
    before = sum(row["before"] for row in tools.values())
    texts = [text for each in recorded for text in texts_of(each.result)]
    json_texts = [text for text in texts if framed_json(text) is not None]
    figures |= {"results": len(recorded), "tools": len(tools), "servers": len({each.server for each in recorded})}
    figures |= {"tokens/before": before, "questions": len(asked)}
    for form in FORMS:
        after = sum(row[form] for row in tools.values())
        found = answered(recorded, asked, form)
        figures |= {f"tokens/{form}": after, f"saved/{form}": 1 - after / before}
        figures |= {f"answered/{form}": found["first"] / len(asked)}
        figures |= {f"recoverable/{form}": (found["first"] + found["second"]) / len(asked)}
        figures |= {f"within/{form}": found["within_first"] / max(1, found["within"]), f"uncut/{form}": found["within"]}
        missed[form] = found["missed"]
        figures[f"missed/{form}"] = len(found["missed"])
    later, others = (
        answered(recorded, asked, "handle", before=False),
        answered(recorded, questions(recorded, QUESTIONS, SEED_OF_OTHERS), "handle"),
    )
    for name, found in (("later", later), ("others", others)):
        figures[f"answered/handle/{name}"] = found["first"] / len(asked)
        figures[f"recoverable/handle/{name}"] = (found["first"] + found["second"]) / len(asked)
    figures["answered/head"] = cut_at_the_head(recorded, asked) / len(asked)
    figures["json/before"] = sum(COUNTER.count(json_texts))
    figures["json/minified"] = fewest(json_texts, [minified(text) for text in json_texts])
    shaped_texts = [text_of(shape(_result(text), POLICY, COUNTER).result) for text in json_texts]
    figures["json/shaped"] = sum(COUNTER.count(shaped_texts))
    if toon is not None:
        sys.path.append(str(toon))
        from toon_format import encode

        figures["json/toon"] = fewest(json_texts, [in_toon(encode, text) for text in json_texts])
    figures["stable"] = float(digest(recorded) == digest_of_another_process())
    kinds = {kind: sum(each.kind == kind for each in asked) for kind in ("value", "line", "page")}
    tables = {
        "tools": dict(sorted(tools.items())),
        "rules": dict(rules),
        "kinds": kinds,
        "budget": POLICY.budget,
        "missed": missed,
    }
    return results.write("shaping", command=COMMAND, seed=SEED, figures=figures, tables=tables, folder=out)


def _result(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


if __name__ == "__main__":
    typer.run(main)
