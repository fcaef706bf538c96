"""What the gateway records, and what it never does."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path

import msgspec
import pytest

from model_bodies import asking
from model_doors import gateway
from pegboard.errors import ConfigError
from pegboard.gateways.access_keys import hashed
from pegboard.gateways.llm.shadow.recorder import Recorder, RequestRecord
from pegboard.settings import load_settings
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from shadows import CHAT, SHADOW, one, shadowing

SOME = RequestRecord(at=1.0, upstream="openai", path=CHAT, outcome="shadow", body="{}")


def lines(path: Path) -> list[RequestRecord]:
    return [msgspec.json.decode(line, type=RequestRecord) for line in path.read_bytes().splitlines()]


async def test_a_record_has_the_body_what_was_kept_and_what_was_called(tmp_path: Path) -> None:
    record = tmp_path / "turns.jsonl"
    async with shadowing(record=str(record)) as (found, http):
        await one(http)

    (told,) = lines(record)
    assert told.whole_body == found.mock.last.body
    assert (told.upstream, told.path, told.outcome) == ("openai", "/v1/chat/completions", "shadow")
    assert (told.kept, told.called) == (["renew_loan"], ["renew_loan", "book_flight"])
    assert 0 < told.tokens_after < told.tokens_before
    assert told.answer == "answer_0"


async def test_filtered_requests_are_recorded_as_they_came(tmp_path: Path) -> None:
    record = tmp_path / "turns.jsonl"
    async with shadowing(record=str(record), policy=SHADOW | {"shadow": False}) as (found, http):
        await one(http)

    (told,) = lines(record)
    assert len(json.loads(told.body)["tools"]) == 3
    assert len(found.mock.last.json["tools"]) == 1
    assert (told.outcome, told.kept, told.called) == ("filtered", ["renew_loan"], ["renew_loan"])


async def test_the_name_of_a_conversation_is_recorded_as_a_stand_in(tmp_path: Path) -> None:
    record = tmp_path / "turns.jsonl"
    async with shadowing(record=str(record)) as (_, http):
        for name in ("Anna's trip", "Anna's trip", "another"):
            await one(http, x_pegboard_conversation=name)

    first, second, other = (told.conversation for told in lines(record))
    assert first == second != other
    assert b"Anna" not in record.read_bytes()


async def test_requests_with_a_way_back_are_recorded_too(tmp_path: Path) -> None:
    record = tmp_path / "turns.jsonl"
    async with shadowing(record=str(record), policy=SHADOW | {"shadow": False, "way_back": True}) as (_, http):
        await one(http)

    (told,) = lines(record)
    assert (told.outcome, told.kept) == ("filtered", ["renew_loan"])


@pytest.mark.requirement("M30")
async def test_no_header_and_no_key_is_recorded_but_the_wishes_that_narrow(tmp_path: Path) -> None:
    record, key = tmp_path / "turns.jsonl", "pgb_mine-0123456789abcdef"
    shown = {"authorization": "Bearer sk-secret", "x_api_key": "sk-other", "x_pegboard_key": key, "cookie": "a=b"}
    async with shadowing(record=str(record), keys={"team": {"hash": hashed(key)}}) as (_, http):
        await one(http, x_pegboard_k="1", **shown)
        await one(http, x_pegboard_k="1", **shown)

    first, second = lines(record)
    assert (first.key, first.wishes) == ("team", {"k": "1"})
    assert first.owner == second.owner != ""
    text = record.read_text()
    assert not any(secret in text for secret in ("sk-secret", "sk-other", key, hashed(key), "a=b"))


async def test_answers_that_are_errors_and_requests_without_tools_to_pick_are_not_recorded(tmp_path: Path) -> None:
    record = tmp_path / "turns.jsonl"
    async with shadowing(record=str(record)) as (_, http):
        await http.post(CHAT, json=asking("openai_chat", "renew", ["renew_loan"]) | {"messages": 7})
        await http.get("/openai/v1/models")

    assert lines(record) == []


async def test_a_record_that_can_be_written_no_more_harms_no_request(tmp_path: Path) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    async with shadowing(record=str(folder / "turns.jsonl")) as (_, http):
        (folder / "turns.jsonl").unlink()
        folder.rmdir()
        answer = await one(http)

    assert answer.status_code == 200


async def test_a_record_that_cannot_be_begun_is_an_error_at_the_start(tmp_path: Path) -> None:
    parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    with pytest.raises(ConfigError, match="cannot be recorded"):
        async with gateway(parts=parts, record=str(tmp_path / "nowhere" / "turns.jsonl")):
            pass


def test_only_its_owner_can_read_a_record(tmp_path: Path) -> None:
    record = tmp_path / "turns.jsonl"
    record.write_text("")
    record.chmod(0o644)
    recorder = Recorder(record, 100)
    for _ in range(3):
        recorder.put(SOME)
    recorder.close()

    for path in (record, tmp_path / "turns.jsonl.1"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ConfigError, match="cannot be recorded"):
        Recorder(tmp_path / "link", 100)


def test_records_take_bounded_room_and_no_line_is_cut(tmp_path: Path) -> None:
    record, most = tmp_path / "turns.jsonl", 1000
    recorder = Recorder(record, most)
    for number in range(100):
        recorder.put(msgspec.structs.replace(SOME, at=float(number)))
    recorder.close()

    kept = [*lines(tmp_path / "turns.jsonl.1"), *lines(record)]
    assert [told.at for told in kept] == [float(number) for number in range(100 - len(kept), 100)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["turns.jsonl", "turns.jsonl.1"]
    assert all(path.stat().st_size <= most for path in tmp_path.iterdir())


def test_a_body_that_is_no_text_keeps_its_bytes() -> None:
    body = b'{"a": "\xff"}'
    told = RequestRecord(at=1.0, upstream="a", path="/", outcome="shadow", raw=body)

    line = msgspec.json.encode(told)

    assert base64.b64encode(body) in line
    assert msgspec.json.decode(line, type=RequestRecord).whole_body == body


def test_a_record_is_found_from_the_folder_of_the_file_that_names_it(tmp_path: Path) -> None:
    config = tmp_path / "pegboard.toml"
    config.write_text('[llm]\nrecord = "turns.jsonl"\n')

    assert load_settings([config]).llm.record == tmp_path / "turns.jsonl"
