from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.audit_entries import AuditEntry, ChainEnds, Link, digest, findings, sealed, torn_mark
from pegboard.spend_limits import nano_usd

KEY = b"a key of the operator"


def entry(number: int, **more: object) -> AuditEntry:
    return AuditEntry(at=1_000.0 + number, event="call", door="mcp", caller="ann", tool=f"tool_{number}", **more)  # type: ignore[arg-type]


def chain(count: int = 6, key: bytes = b"") -> tuple[list[bytes], ChainEnds]:
    lines, last = sealed([entry(each) for each in range(count)], Link(), key)
    return lines, ChainEnds(last=last)


def kinds(lines: list[bytes], ends: ChainEnds, key: bytes = b"") -> list[tuple[str, int]]:
    return [(each.kind, each.number) for each in findings(lines, ends, key)]


def test_a_line_says_who_called_what_and_leaves_out_what_is_empty() -> None:
    (line,), _ = sealed([entry(1, server="files", outcome="ok", price=nano_usd("0.05"), latency_ms=1.26)], Link())

    said = json.loads(line)
    assert next(iter(said)) == "number"
    assert list(said)[-2:] == ["previous", "hash"]
    assert said["at"] == "1970-01-01T00:16:41.000Z"
    assert (said["caller"], said["server"], said["tool"], said["outcome"]) == ("ann", "files", "tool_1", "ok")
    assert (said["price_usd"], said["latency_ms"]) == ("0.05", 1.3)
    assert "values" not in said
    assert "tenant" not in said


@pytest.mark.parametrize("key", [b"", KEY])
def test_an_untouched_chain_has_no_findings(key: bytes) -> None:
    lines, ends = chain(key=key)

    assert kinds(lines, ends, key) == []
    assert kinds(lines, ChainEnds(), key) == []


@given(st.integers(0, 5), st.data())
def test_any_changed_byte_is_seen(place: int, data: st.DataObject) -> None:
    lines, ends = chain()
    at = data.draw(st.integers(0, len(lines[place]) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != lines[place][at]))
    lines[place] = lines[place][:at] + bytes([other]) + lines[place][at + 1 :]

    assert [each for each in findings(lines, ends) if not each.is_harmless]


@pytest.mark.requirement("signing-in.audit-chain")
@given(st.sets(st.integers(0, 5), min_size=1, max_size=5))
def test_removed_lines_are_seen_wherever_they_were(gone: set[int]) -> None:
    lines, ends = chain()

    left = [line for place, line in enumerate(lines) if place not in gone]
    assert [each.kind for each in findings(left, ends)]


@given(st.permutations(range(6)).filter(lambda order: list(order) != list(range(6))))
def test_another_order_is_seen(order: list[int]) -> None:
    lines, ends = chain()

    assert kinds([lines[place] for place in order], ends)


def test_a_finding_says_which_lines_are_concerned() -> None:
    lines, ends = chain()

    assert [each.text for each in findings(lines[:2] + lines[4:], ends)] == ["the lines 3 to 4 are missing"]
    assert [each.text for each in findings(lines[:4], ends)] == ["the lines 5 to 6 are missing at the end"]
    changed = [*lines[:2], lines[2].replace(b"ann", b"bob"), *lines[3:]]
    assert [each.text for each in findings(changed, ends)] == ["line 3 is not as written"]


def test_a_chain_that_was_computed_anew_is_seen_with_a_key_and_without_one_only_by_its_end() -> None:
    _, ends = chain(key=KEY)
    forged, _ = sealed([entry(each) for each in range(7, 13)], Link())

    assert kinds(forged, ends, KEY)
    assert kinds(forged, chain()[1]) == [("ends", 6)]


def test_a_write_that_was_cut_off_is_told_from_a_change() -> None:
    lines, ends = chain(4)
    more, last = sealed([entry(9)], ends.last)

    assert kinds([*lines, more[0][:40]], ends) == [("torn", 4)]
    after, last = sealed([entry(10, torn=torn_mark([more[0][:40]]))], ends.last)
    assert kinds([*lines, more[0][:40], *after], ChainEnds(last=last)) == [("torn", 4)]


def test_a_line_that_was_cut_after_it_was_written_is_a_change() -> None:
    lines, ends = chain(4)

    assert kinds([*lines[:3], lines[3][:40]], ends) == [("changed", 4), ("missing", 3)]
    assert kinds([*lines[:2], lines[2][:40], lines[3]], ends) == [("changed", 3)]


def test_a_line_cannot_be_hidden_behind_a_write_that_was_cut_off() -> None:
    lines, ends = chain(4)
    after, last = sealed([entry(10, torn=torn_mark([b"{"]))], ends.last)

    assert ("missing", 2) in kinds([*lines[:2], b"{", *after], ChainEnds(last=last))


def test_a_chain_goes_on_after_old_lines_were_removed() -> None:
    lines, ends = chain()
    third = json.loads(lines[2])

    kept = ChainEnds(last=ends.last, removed=Link(number=3, hash=third["hash"]))
    assert kinds(lines[3:], kept) == []
    assert kinds(lines[4:], kept) == [("missing", 3)]


def test_a_digest_does_not_depend_on_the_order_of_keys_and_cannot_be_guessed_with_a_key() -> None:
    assert digest({"a": [1, {"b": 2, "c": 3}]}) == digest({"a": [1, {"c": 3, "b": 2}]})
    assert digest({"pin": "1234"}) != digest({"pin": "1235"})
    assert digest({"pin": "1234"}, KEY) not in {digest({"pin": f"{pin:04}"}) for pin in range(10_000)}
    assert digest({"broken": "\ud800"}).startswith("sha256:")
