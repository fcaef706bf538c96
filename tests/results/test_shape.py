"""Results as models get them."""

from __future__ import annotations

import html
import json
import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.catalog.tokens import BpeCounter
from pegboard.errors import ArgumentsInvalid
from pegboard.model import Tool, ToolId
from pegboard.results import html_text, result_shaper
from pegboard.results.html_text import page_text
from pegboard.results.json_tables import restored
from pegboard.results.line_folds import folded, unfolded
from pegboard.results.projection import projected
from pegboard.results.result_reader import part_of
from pegboard.results.shape import FAR, LEGEND, ShapePolicy, handle_of, shape
from pegboard.settings.result_settings import ResultSettings
from pegboard.stores.memory.events import MemoryEvents
from pegboard.stores.memory.kept_results import MemoryResults
from pegboard.testing import FakeClock

COUNTER = BpeCounter("o200k_base")
POLICY = ShapePolicy(threshold=50, budget=600)
ROWS = [{"id": at, "name": f"part {at}", "state": "open", "price": at / 4, "owner": None} for at in range(300)]


def result_of(*texts: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text} for text in texts], **more}


def text_of(result: Any) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")


def test_an_array_of_objects_becomes_a_table_that_says_the_same() -> None:
    shaped = shape(result_of(json.dumps(ROWS[:40], indent=2)), POLICY, COUNTER)

    legend, _, table = text_of(shaped.result).partition("\n")
    assert legend == LEGEND
    assert restored(table) == ROWS[:40]
    assert shaped.after < shaped.before / 3
    assert not shaped.kept


def test_text_around_the_json_stays() -> None:
    shaped = shape(result_of(f"Found 40 parts:\n{json.dumps(ROWS[:40])}\nThat is all."), POLICY, COUNTER)

    assert text_of(shaped.result).startswith(f"Found 40 parts:\n{LEGEND}\n@1 40 rows")
    assert text_of(shaped.result).endswith("\nThat is all.")


def test_texts_of_one_object_each_become_one_table() -> None:
    shaped = shape(result_of(*(json.dumps(row) for row in ROWS[:40])), POLICY, COUNTER)

    assert len(shaped.result["content"]) == 1
    assert restored(text_of(shaped.result).partition("row]\n")[2]) == ROWS[:40]


@pytest.mark.parametrize(
    "result",
    [
        result_of(json.dumps(ROWS[:1])),
        result_of(json.dumps(ROWS), isError=True),
        result_of("def f():\n    return 1\n" + "\n".join(f"x{at} = {at}" for at in range(80))),
        {"content": [{"type": "image", "data": "AAAA" * 500, "mimeType": "image/png"}]},
        {"content": []},
        {"resultType": "input_required", "inputRequests": {}},
    ],
    ids=["small", "error", "code", "image", "empty", "question"],
)
@pytest.mark.requirement("results.stable")
def test_what_no_rule_is_for_stays_as_it_is(result: dict[str, Any]) -> None:
    assert shape(result, POLICY, COUNTER, handles=False).result is result


def test_other_blocks_and_fields_stay() -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    result = result_of(json.dumps(ROWS[:40]), structuredContent={"other": 1}, _meta={"a": 1})
    result["content"].append(image)

    shaped = shape(result, POLICY, COUNTER, structured=False).result

    assert (shaped["content"][1], shaped["structuredContent"], shaped["_meta"]) == (image, {"other": 1}, {"a": 1})


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.requirement("results.structured")
def test_structured_content_that_the_text_says_too_is_left_out_only_where_that_is_allowed(*, wrapped: bool) -> None:
    structured = {"result": ROWS[:40]} if wrapped else {"items": ROWS[:40]}
    said = ROWS[:40] if wrapped else structured
    result = result_of(json.dumps(said), structuredContent=structured)

    assert shape(result, POLICY, COUNTER, structured=True).result["structuredContent"] == structured
    assert "structuredContent" not in shape(result, POLICY, COUNTER, structured=False).result


def test_a_result_above_the_budget_shows_its_head_and_what_it_holds() -> None:
    result = result_of(json.dumps({"total": 300, "items": ROWS}))

    shaped = shape(result, POLICY, COUNTER, handles=True)

    said = text_of(shaped.result)
    assert shaped.after <= POLICY.budget
    assert shaped.handle == handle_of(result)
    assert f'read_result with handle "{shaped.handle}"' in said
    assert "@1 holds 300 rows: id: 0 to 299; name: 300 different; price: 0.0 to 74.75" in said
    assert "\n1\tpart 1\t0.25\n" in said
    assert "of 304 are left out]" in said


def test_the_end_of_a_long_text_is_shown_too() -> None:
    log = "\n".join(f"2026-01-01 line {at} of the log" for at in range(3000)) + "\nERROR: disk full"

    said = text_of(shape(result_of(log), POLICY, COUNTER, handles=True).result)

    assert said.startswith("2026-01-01 line 0 of the log\n")
    assert "ERROR: disk full\n[All of it is kept" in said


def test_what_is_cut_keeps_the_rows_about_what_was_asked() -> None:
    result = result_of(json.dumps({"total": 300, "items": ROWS}))

    said = text_of(shape(result, POLICY, COUNTER, handles=True, asked="What does part 217 weigh?").result)

    assert "\n217\tpart 217\t54.25\n[lines 223 to 304 of 304 are left out]\n" in said
    assert "\n1\tpart 1\t0.25\n" in said


def test_rows_about_what_was_asked_come_with_the_fields_of_their_table() -> None:
    others = [{"code": at * 7, "colour": f"colour {at}"} for at in range(200)]
    result = result_of(json.dumps({"parts": ROWS, "colours": others}))

    said = text_of(shape(result, POLICY, COUNTER, handles=True, asked="Which code has colour 173?").result)

    assert re.search(r"\n@2 200 rows\ncode\tcolour\n(?:\[lines .* left out\]\n)?(?:.*\n)*1211\tcolour 173\n", said)


def test_lines_about_what_was_asked_come_with_those_beside_them() -> None:
    log = "\n".join(f"2026-01-01 line {at} of the log" for at in range(3000))

    said = text_of(shape(result_of(log), POLICY, COUNTER, handles=True, asked="Why did line 1777 fail?").result)

    assert "\n".join(f"2026-01-01 line {at} of the log" for at in range(1776, 1780)) in said


def test_words_that_say_nothing_change_nothing() -> None:
    result = result_of("\n".join(f"2026-01-01 line {at} of the log" for at in range(3000)))

    plain, asked = (shape(result, POLICY, COUNTER, handles=True, asked=each) for each in ("", "the Log of a LINE?"))

    assert asked == plain


@pytest.mark.requirement("results.handles")
def test_without_a_handle_nothing_is_left_out() -> None:
    page = f"<!doctype html><p>{'word ' * 2000}</p>"
    for text in (page, "\n".join(f"line {at}" for at in range(3000))):
        result = result_of(text)
        assert shape(result, POLICY, COUNTER, handles=False).result is result


@given(
    texts=st.lists(
        st.one_of(
            st.text(max_size=400),
            st.lists(st.sampled_from(["a", "b", "}", ""]), max_size=40).map("\n".join),
            st.lists(st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=9)), max_size=20).map(
                json.dumps
            ),
        ),
        max_size=4,
    ),
    handles=st.booleans(),
    asked=st.sampled_from(["", "a", "b } a", "which 1 is 2?"]) | st.text(max_size=60),
)
@settings(max_examples=200, deadline=None)
@pytest.mark.requirement("results.stable")
def test_a_shaped_result_is_never_larger_and_always_the_same(texts: list[str], asked: str, *, handles: bool) -> None:
    policy = ShapePolicy(threshold=1, budget=100)
    result = result_of(*texts)

    one, other = (shape(result, policy, COUNTER, handles=handles, asked=asked) for _ in range(2))

    assert json.dumps(one.result) == json.dumps(other.result)
    assert one.after <= one.before
    if "cut" in one.rules or sum(map(len, texts)) <= FAR * policy.budget:
        assert sum(COUNTER.count([block["text"] for block in one.result["content"]])) == one.after


@given(lines=st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=60))
@pytest.mark.requirement("results.shapes")
def test_repeated_lines_can_be_unfolded(lines: list[str]) -> None:
    text = "\n".join(lines)

    assert unfolded(folded(text)) == text


def test_a_page_keeps_headings_links_rows_and_the_blanks_of_code() -> None:
    page = """<!DOCTYPE html><html><head><title>Manual</title><style>p {color: red}</style></head><body>
      <h2>Install</h2><p>See <a href="/guide">the <b>guide</b></a>.</p>
      <ul><li>one</li><li>two</li></ul>
      <table><tr><th>name</th><th>port</th></tr><tr><td>web</td><td>8080</td></tr></table>
      <pre><span>def</span> f():
    return 1</pre><script>track()</script></body></html>"""

    assert page_text(page).split("\n") == [
        "Manual", "## Install", "See the guide (/guide).", "- one", "- two", "name\tport", "web\t8080", "def f():",
        "    return 1",
    ]  # fmt: skip


@pytest.mark.parametrize("mark", ["&#xE000;99&#xE001;", "&#xE000;0&#xE001;", "&#57344;a-0&#57345;", "\ue0000\ue001"])
def test_a_page_that_writes_our_marks_is_read_as_any_other(mark: str) -> None:
    said = page_text(f"<html><body><p>before {mark} after</p><pre>the code</pre></body></html>")

    before, code = said.split("\n")
    assert before == f"before {html.unescape(mark) if '&' in mark else '0'} after"
    assert code == "the code"


def test_a_long_run_of_blanks_in_a_page_is_read_once() -> None:
    began = time.monotonic()

    assert page_text(f"<html><body><p>a{' ' * 300_000}b</p></body></html>") == f"a{' ' * 300_000}b"
    assert time.monotonic() - began < 20


@given(text=st.text(st.sampled_from([*" \t\r\f\v\u00a0\n\u2003\u2028ab"])))
def test_the_lines_of_a_page_end_without_blanks_and_none_is_empty(text: str) -> None:
    assert html_text._without_blanks(text) == re.sub(r"[ \t\r\f\v\u00a0]*\n\s*", "\n", text).strip()


async def test_a_result_whose_shaping_fails_is_handed_on_as_it_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, events: MemoryEvents, clock: FakeClock
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise IndexError

    monkeypatch.setattr(result_shaper, "shape", fail)
    options = ResultSettings(policy="handle")
    shaper = result_shaper.ResultShaper(options, MemoryResults(clock), COUNTER, events=events, clock=clock)
    result = result_of(json.dumps(ROWS))

    given = await shaper.shaped(Tool(id=ToolId("parts", "list")), result, "handle", owner="", structured=True)

    assert given == result
    assert "Shaping a result of parts/list failed" in caplog.text


def test_a_page_is_text_and_its_original_is_kept() -> None:
    page = f"<!doctype html><body>{''.join(f'<div class=row><p>word {at}</p></div>' for at in range(60))}</body>"
    result = result_of(page)

    shaped = shape(result, POLICY, COUNTER, handles=True)

    assert text_of(shaped.result).startswith("word 0\nword 1\n")
    assert f'read_result with handle "{shaped.handle}" and original true' in text_of(shaped.result)
    assert part_of(result, {"handle": "", "original": True}, ShapePolicy(budget=9_000), COUNTER) == page


@pytest.mark.requirement("results.handles")
def test_of_a_page_far_beyond_the_budget_the_beginning_is_shown_and_the_rest_is_read_by_its_lines() -> None:
    rows = "".join(f"<div><p>word {at}</p><script>{'x' * 200}</script></div>" for at in range(2_000))
    result = result_of(f"From /manual:\n<html><head><title>All</title></head><body>{rows}</body></html>")

    said = text_of(shape(result, POLICY, COUNTER, handles=True, asked="{}").result).split("\n")

    assert said[:3] == ["From /manual:", "All", "word 0"]
    following = re.fullmatch(r"\[the lines from (\d+) on are left out\]", said[-2])
    assert following is not None
    read = part_of(result, {"handle": "", "lines": following[1]}, POLICY, COUNTER)
    assert read == f"word {int(said[-3].split()[1]) + 1}"


def far_rows(count: int, size: int = 200) -> list[dict[str, Any]]:
    """Rows far beyond any budget."""
    return [
        {"id": at, "name": f"part {at}", "made": {"by": ("Ann", "Bob")[at % 2]}, "note": str(at % 3) * size}
        for at in range(count)
    ]


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(far_rows(9_000)),
        json.dumps(far_rows(9_000), indent=1),
        json.dumps({"total": 9_000, "found": {"items": far_rows(9_000), "links": [{"a": at} for at in range(4)]}}),
        f"Rows of parts:\n{json.dumps(far_rows(9_000))}\nThat was all.",
    ],
    ids=["array", "indented", "in an object", "framed"],
)
def test_of_json_far_beyond_the_budget_the_rows_about_what_was_asked_are_shown_at_their_lines(text: str) -> None:
    result = result_of(text)

    said = text_of(shape(result, POLICY, COUNTER, handles=True, asked="What is part 7217 of?").result)

    gap = re.search(r"\[lines \d+ to (\d+) of (\d+) are left out\]\n7217\tpart 7217\tBob\t", said)
    assert gap is not None
    read = part_of(result, {"handle": "", "lines": str(int(gap[1]) + 1)}, POLICY, COUNTER)
    assert read.startswith("7217\tpart 7217\t")
    with pytest.raises(ArgumentsInvalid, match=f"there are lines 1 to {gap[2]}"):
        part_of(result, {"handle": "", "lines": "99999"}, POLICY, COUNTER)
    assert " 9000 rows, of which " in said


def test_rows_that_are_shown_and_larger_than_the_others_are_not_all_that_a_table_is_measured_by() -> None:
    rows = [{"id": at, "parts": far_rows(40 if at < 60 else 1)} for at in range(3_000)]

    shaped = shape(result_of(json.dumps(rows)), POLICY, COUNTER, handles=True, asked="part 17")

    assert "table" in shaped.rules


def test_of_many_texts_far_beyond_the_budget_those_about_what_was_asked_are_shown() -> None:
    content = [{"type": "text", "text": json.dumps(row)} for row in far_rows(3_000)]

    said = text_of(shape({"content": content}, POLICY, COUNTER, handles=True, asked="part 2217").result)

    assert "@1 3000 rows\n" in said
    assert "\n2217\tpart 2217\tBob\t" in said


def test_long_json_that_is_no_table_is_cut_as_any_other_text() -> None:
    result = result_of(json.dumps({"names": [f"part {at} of the pump" for at in range(20_000)]}))

    shaped = shape(result, POLICY, COUNTER, handles=True, asked="part 7217")

    assert text_of(shaped.result).startswith('{"names":["part 0 of the pump","part 1 of the pump"')
    assert shaped.kept


@pytest.mark.parametrize("place", [170, 8217])
def test_of_a_page_far_beyond_the_budget_the_pieces_about_what_was_asked_are_shown(place: int) -> None:
    rows = "".join(f"<div><p>word {at} is <b>here</b></p><script>word({at})</script></div>" for at in range(9_000))
    result = result_of(f"<html><body>{rows}</body></html>")

    said = text_of(shape(result, POLICY, COUNTER, handles=True, asked=f"Where is word {place}?").result)

    assert f"\nword {place} is here\n" in said


def test_a_script_without_an_end_hides_no_piece_of_a_page() -> None:
    rows = "".join(f"<div><p>word {at} is <b>here</b></p><svg><g/></svg></div>\n" for at in range(9_000))
    result = result_of(f"<html><body>{rows}<svgs>no word</svgs><script><style>word 8</style><script>1</body></html>")

    said = text_of(shape(result, POLICY, COUNTER, handles=True, asked="Where is word 8217?").result)

    assert "\nword 8217 is here\n" in said


def test_a_null_in_the_first_rows_of_a_long_table_is_none_that_is_missing() -> None:
    rows = [{"id": at, "end": None if at % 2 else "now"} for at in range(9_000)] + [{"id": 9_000}]
    result = result_of(json.dumps(rows))

    said = text_of(shape(result, POLICY, COUNTER, handles=True).result).split("\n")

    assert said[:4] == [LEGEND, "@1 9001 rows", "id\tend?", "0\tnow"]
    assert said[4] == "1\tnull"


def test_fields_that_the_schema_does_not_name_are_left_out() -> None:
    schema = {
        "type": "object",
        "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/item"}}},
        "$defs": {"item": {"properties": {"id": {}, "tags": {"type": "object"}}}},
    }
    value = {"items": [{"id": 1, "etag": "x", "tags": {"any": 1}}], "next": None}

    assert projected(value, schema) == {"items": [{"id": 1, "tags": {"any": 1}}]}
    assert projected(value, {"type": "object", "additionalProperties": True}) == value


class TestReading:
    result = result_of(json.dumps({"total": 300, "items": ROWS}))

    def read(self, **arguments: Any) -> str:
        return part_of(self.result, {"handle": "r1", **arguments}, POLICY, COUNTER)

    def test_lines(self) -> None:
        assert self.read(lines="5-6") == "0\tpart 0\t0.0\n1\tpart 1\t0.25"

    def test_lines_with_a_text_come_with_the_names_of_their_fields(self) -> None:
        assert self.read(grep="part 299|PART 7\t").split("\n") == [
            "[2 lines contain it]", "fields: id\tname\tprice", "12: 7\tpart 7\t1.75", "304: 299\tpart 299\t74.75",
        ]  # fmt: skip

    def test_values_by_a_path(self) -> None:
        assert self.read(path="items[?id==`299`].price | [0]") == "74.75"
        assert self.read(path="length(items)") == "300"

    def test_all_pages_are_the_whole(self) -> None:
        pages: list[str] = []
        while not pages or "\n[more follows" in pages[-1]:
            pages.append(self.read(page=len(pages) + 1))
        text = "\n".join(page.partition("\n[more follows")[0] for page in pages)

        assert len(pages) > 3
        assert restored(text.removeprefix(f"{LEGEND}\n")) == {"total": 300, "items": ROWS}

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({"lines": "900"}, "there are lines 1 to 304"),
            ({"lines": "9-3"}, "there are lines 1 to 304"),
            ({"path": "items[?"}, "path:"),
            ({"page": 99}, "pages"),
            ({"page": 99.0}, "pages"),
            ({"lines": "9" * 5_000}, "there are lines 1 to 304"),
            ({"path": "ceil(to_number('1e999'))"}, "path:"),
            ({"path": "&items"}, "path:"),
            ({"grep": "a", "lines": "2"}, "lines and grep exclude each other"),
            ({"grep": "part 299", "page": 2}, "there are 1 pages"),
        ],
    )
    def test_what_cannot_be_read_is_said(self, arguments: dict[str, Any], said: str) -> None:
        with pytest.raises(ArgumentsInvalid, match=said):
            self.read(**arguments)

    @pytest.mark.parametrize("asked", [{"grep": "part"}, {"lines": "4-290"}, {"path": "items[].name"}])
    def test_what_is_asked_for_has_pages_too(self, asked: dict[str, Any]) -> None:
        pages: list[str] = []
        while not pages or "\n[more follows" in pages[-1]:
            pages.append(self.read(**asked, page=len(pages) + 1))

        assert len(pages) > 1
        assert self.read(**asked) == pages[0]
        assert all(f"part {at}" in "".join(pages) for at in range(10, 280))

    @pytest.mark.parametrize(
        "path",
        [
            "|".join(["[@,@]"] * 40),
            "|".join(["[@,@]"] * 40 + ["to_string(@)"]),
            "|".join(["{a:@,b:@}"] * 40),
            "|".join(["[@,@][]"] * 40),
            "|".join(["to_string(@)"] + ["join('',[@,@])"] * 40),
        ],
    )
    def test_a_path_that_says_all_again_and_again_is_refused(self, path: str) -> None:
        with pytest.raises(ArgumentsInvalid, match="path: it says too much"):
            self.read(path=path)

    def test_a_path_may_say_the_same_a_few_times(self) -> None:
        assert self.read(path="[items,items,items] | [2][299].id") == "299"
        assert json.loads(self.read(path="[total,total] | [@,@]")) == [[300, 300], [300, 300]]

    def test_what_is_nested_too_deep_has_no_path(self) -> None:
        deep = result_of("[" * 200_000 + "]" * 200_000)

        with pytest.raises(ArgumentsInvalid, match="no path"):
            part_of(deep, {"handle": "r1", "path": "@"}, POLICY, COUNTER)

    def test_a_line_like_the_head_of_a_table_with_more_rows_than_there_are_is_a_line(self) -> None:
        result = result_of(f"@1 {'9' * 5_000} rows\nabove it")

        assert part_of(result, {"handle": "r1", "grep": "above"}, POLICY, COUNTER).endswith("\n2: above it")

    def test_a_page_may_be_a_number_with_a_point(self) -> None:
        assert self.read(page=2.0) == self.read(page=2)


async def test_the_lines_that_are_read_are_those_of_the_fields_that_were_shown(
    events: MemoryEvents, clock: FakeClock
) -> None:
    options = ResultSettings(policy="handle", threshold=50, budget=600)
    shaper = result_shaper.ResultShaper(options, MemoryResults(clock), COUNTER, events=events, clock=clock)
    named = {each: {"type": "array", "items": {"properties": {"id": {}, "name": {}}}} for each in ("items", "more")}
    tool = Tool(id=ToolId("parts", "list"), output_schema={"type": "object", "properties": named})
    rows = [{**row, "etag": ["x" * 9, {"n": 1}]} for row in ROWS]
    result = result_of(json.dumps({"etags": rows[:9], "items": rows, "more": rows[:7]}))

    lines = text_of(await shaper.shaped(tool, result, "handle", owner="ann", structured=True)).split("\n")
    shown = next(at for at, line in enumerate(lines) if re.match(r"\[lines? \d+", line))
    handle = lines[-1].partition('with handle "')[2].partition('"')[0]
    read = await shaper.read({"handle": handle, "lines": f"1-{shown}"}, "ann")
    original = await shaper.read({"handle": handle, "lines": "1", "original": True}, "ann")

    assert read.split("\n") == lines[:shown]
    assert "etag" not in read
    assert "etag" in original


def test_a_page_without_text_leaves_no_empty_text() -> None:
    result = result_of(f"<html><body><script>{'track();' * 200}</script></body></html>", "and another text")

    shaped = shape(result, POLICY, COUNTER, handles=True)

    assert shaped.rules == ("page",)
    (block,) = shaped.result["content"]
    assert block["text"].startswith("and another text\n[The original is kept")


def test_structured_content_beside_a_text_that_is_nested_too_deep_stays() -> None:
    result = result_of("[" * 20_000 + "]" * 20_000, json.dumps(ROWS), structuredContent={"a": 1})

    shaped = shape(result, POLICY, COUNTER, structured=False)

    assert shaped.rules == ("table",)
    assert shaped.result["structuredContent"] == {"a": 1}


@pytest.mark.parametrize("front", ["", "Contents of http://127.0.0.1/a:\n", "It cannot be simplified:\nSource: a\n"])
def test_a_page_becomes_text_also_behind_the_lines_that_a_tool_puts_in_front_of_it(front: str) -> None:
    page = "<!DOCTYPE html><html><body>" + "<p>A sentence <b>of</b> the page.</p>" * 60 + "</body></html>"

    shaped = shape(result_of(front + page), POLICY, COUNTER, handles=True)

    assert text_of(shaped.result).startswith(f"{front}A sentence")
    assert "<p>" not in text_of(shaped.result)
    assert shaped.kept


@pytest.mark.parametrize("front", ["```html\n", "Write <code> as\n", "{}\n", "x" * 700 + "\n"])
def test_a_page_that_is_an_example_stays_as_it_is(front: str) -> None:
    page = "<html><body>" + "<p>A sentence of the page.</p>" * 60 + "</body></html>"

    assert shape(result_of(front + page), POLICY, COUNTER, handles=True).rules in ((), ("cut",))


def test_rows_that_python_printed_become_a_table_of_the_same_values() -> None:
    shaped = shape(result_of(repr(ROWS[:40])), POLICY, COUNTER)

    assert restored(text_of(shaped.result).partition("\n")[2]) == ROWS[:40]
    assert text_of(shaped.result).startswith("[Python values as tables")


@pytest.mark.parametrize(
    "other", [{"at": b"7"}, {"at": (1, 2)}, {"at": {1, 2}}, {7: "a"}, {"at": float("nan")}, {"at": 1j}]
)
def test_values_that_json_does_not_have_stay_as_python_printed_them(other: Any) -> None:
    assert shape(result_of(repr([*ROWS[:40], other])), POLICY, COUNTER).rules == ()
