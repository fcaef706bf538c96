"""The file of an export: what is in it comes back, and what is wrong with it is said with its line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from pegboard.errors import ConfigError
from pegboard.records import KINDS, MeterRecord, PinRecord, Record, SessionRecord, SessionState
from pegboard.stores import SqliteArchive
from pegboard.stores.transfer import export, records
from pegboard.testing import FakeClock
from records import NOW, everything

PIN = {"record": "pin", "server": "git", "name": "log", "approved": "a", "seen": "b"}
TEXTS = {"approved_text": None, "seen_text": None}
"""What an export says of a pin besides, and one from before says not."""
HEADER = {"format": "pegboard state", "version": 1, "backend": "sqlite", "date": "1970-01-01T00:16:40+00:00"}


def archive(folder: Path) -> SqliteArchive:
    return SqliteArchive(folder / "state.sqlite", folder / "cache.sqlite", FakeClock(NOW))


async def exported(store: SqliteArchive) -> bytes:
    file = io.BytesIO()
    await export(store, KINDS, file, now=NOW, report=lambda done: None)
    return file.getvalue()


async def test_an_export_is_json_lines_that_say_what_they_are(tmp_path: Path) -> None:
    store = archive(tmp_path)
    state = SessionState(enabled=[["git", "log"]], answered=["log"], notices=0, client={"name": "é"})
    await store.write(
        [
            SessionRecord(key="5e", version=2, expires=2e3, state=state),
            MeterRecord(kind="key", name="alice", spent=7, used=None),
            PinRecord(server="git", name="log", approved="a", seen="b"),
        ]
    )

    lines = [json.loads(line) for line in (await exported(store)).splitlines()]

    assert lines == [
        HEADER,
        {
            "record": "session",
            "key": "5e",
            "version": 2,
            "expires": 2000.0,
            "state": {
                "enabled": [["git", "log"]],
                "answered": ["log"],
                "notices": 0,
                "client": {"name": "é"},
                "replica": None,
                "watched": [],
                "level": None,
            },
        },
        {"record": "meter", "kind": "key", "name": "alice", "spent": 7, "used": None},
        PIN | TEXTS,
        {"records": 3},
    ]
    store.close()


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(given_records=everything)
async def test_any_records_come_back_from_a_file_as_they_were(tmp_path: Path, given_records: list[Record]) -> None:
    store, file = archive(tmp_path), tmp_path / "state.jsonl"
    for kind in KINDS:
        await store.remove(kind)
    await store.write(given_records)

    file.write_bytes(await exported(store))

    assert list(records(file)) == given_records
    store.close()


def written(path: Path, *lines: Any) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines), "utf-8")
    return path


@pytest.mark.parametrize(
    ("lines", "number", "said"),
    [
        ((), 1, "not a JSON object"),
        (({"format": "something"},), 1, "does not begin with"),
        ((HEADER,), 2, "its last line is missing"),
        ((HEADER, PIN), 3, "its last line is missing"),
        ((HEADER, PIN, {"records": 2}), 3, "it states 2 records, but there are 1"),
        ((HEADER, {"records": 0}, PIN), 3, "it follows the last line"),
        ((HEADER, PIN, '{"record": "pin", "ser', {"records": 2}), 3, "not a JSON object"),
        ((HEADER, "[]", {"records": 1}), 2, "not a JSON object"),
        ((HEADER, {"record": "spell"}, {"records": 1}), 2, "unknown kind of record 'spell'"),
        ((HEADER, {"record": "pin", "server": "git"}, {"records": 1}), 2, "name: Field required"),
        ((HEADER, PIN | {"more": 1}, {"records": 1}), 2, "more: Unexpected keyword argument"),
        ((HEADER, PIN | {"seen": 1}, {"records": 1}), 2, "seen: Input should be a valid string"),
        ((HEADER, PIN | {"seen": "\0"}, {"records": 1}), 2, "seen: String should match pattern"),
        (
            (HEADER, {"record": "meter", "kind": "key", "name": "a", "spent": -1, "used": None}, {"records": 1}),
            2,
            "spent: Input should be greater than or equal to 0",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, lines: tuple[Any, ...], number: int, said: str) -> None:
    file = written(tmp_path / "state.jsonl", *lines)

    with pytest.raises(ConfigError) as caught:
        list(records(file))

    assert caught.value.message.startswith(f"{str(file)!r}, line {number}: ")
    assert said in caught.value.message
    assert "Nothing was imported" in caught.value.remedy


def test_a_value_of_a_line_that_is_wrong_is_not_repeated(tmp_path: Path) -> None:
    file = written(tmp_path / "state.jsonl", HEADER, PIN | {"seen": ["s3cret"]}, {"records": 1})

    with pytest.raises(ConfigError) as caught:
        list(records(file))
    assert "s3cret" not in str(caught.value)


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has format 2, but this version of Pegboard reads 1\. Upgrade"):
        list(records(written(tmp_path / "state.jsonl", HEADER | {"version": 2}, {"records": 0})))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Cannot read .*nowhere"):
        list(records(tmp_path / "nowhere"))


async def test_what_no_import_would_take_is_left_out_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = archive(tmp_path)
    pins = [PinRecord(server="git", name=name, approved="a", seen="b") for name in ("log", "a\0b")]
    await store.write([*pins, MeterRecord(kind="key", name="al\0ice", spent=7, used=None)])

    (tmp_path / "export").write_bytes(await exported(store))

    assert list(records(tmp_path / "export")) == pins[:1]
    assert "2 records are left out" in caplog.text
    store.close()
