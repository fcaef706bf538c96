"""Lines of a server's output, whatever the chunks; of one that is too long its ends say whom it answers."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.upstreams.line_reader import ENDS_BYTES, LineReader, TooLong, answered

IDS = st.one_of(st.integers(0, 10**15), st.text(max_size=20))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=30)),
    lambda each: st.one_of(st.lists(each, max_size=3), st.dictionaries(st.text(max_size=8), each, max_size=3)),
    max_leaves=8,
)


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=8), st.data())
def test_lines_are_the_same_however_they_come(lines: list[bytes], data: st.DataObject) -> None:
    text = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    reader = LineReader(1000)
    chunks = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert [line for chunk in chunks for line in reader.feed(chunk)] == lines


@given(IDS, JSON, st.booleans(), st.booleans(), st.integers(1, 5000))
def test_of_an_answer_that_is_too_long_it_is_known_whose_it_is(
    name: int | str, result: Any, id_first: bool, compact: bool, chunk: int
) -> None:
    body = {"result": {"more": result, "text": "x" * 10_000, "id": 7}}
    envelope: dict[str, Any] = {"jsonrpc": "2.0", "id": name}
    message = envelope | body if id_first else body | envelope
    line = json.dumps(message, separators=(",", ":") if compact else None).encode()
    reader = LineReader(5000)
    data = line + b'\n{"next": 1}\n'
    found = [each for at in range(0, len(data), chunk) for each in reader.feed(data[at : at + chunk])]
    assert found == [TooLong(len(line), name), b'{"next": 1}']


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 5, "method": "sampling/createMessage", "params": {"text": "x" * 9000}},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"id": 5, "text": "x" * 9000}},
        {"method": "notifications/message", "params": {"text": "x" * 9000}, "id": 5},
        {"result": {"text": "x" * 9000, "id": 5}},
        {"result": {"text": "x" * 9000 + '"id":5}'}},
        ["x" * 9000, {"id": 5}],
    ],
)
def test_what_is_no_answer_or_says_nowhere_whose_it_is_is_nobodys(message: Any) -> None:
    line = json.dumps(message).encode()
    assert answered(line[:ENDS_BYTES], line[-ENDS_BYTES:]) is None


def test_a_long_line_is_read_in_time_that_grows_with_its_length_and_not_kept_beyond_the_limit() -> None:
    reader, chunk = LineReader(1_000_000), b"x" * 65_536
    started = time.process_time()
    for _ in range(3000):
        assert not list(reader.feed(chunk))
    [line] = reader.feed(b"\n")
    assert line == TooLong(3000 * 65_536, None)
    assert time.process_time() - started < 20, "200 MB; in time that grows with the square it is minutes"
