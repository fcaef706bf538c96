"""`pegboard replay`: recorded requests, by the file that the gateway writes and by lines made by hand."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import Result

from model_bodies import asking, called
from pegboard.gateways.llm.shadow.recorder import RequestRecord
from shadows import CHAT, SHADOW, one, shadowing

Run = Callable[..., Result]

JOBS = ("renew_loan", "book_flight", "tune_piano")
PATH = "/v1/chat/completions"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PEGBOARD_STATE_DIR", str(tmp_path / "state"))
    return tmp_path


@pytest.fixture
def written(folder: Path) -> Callable[..., Path]:
    """A log with these lines."""

    def write(*lines: RequestRecord | bytes) -> Path:
        log = folder / "turns.jsonl"
        encoded = (line if isinstance(line, bytes) else msgspec.json.encode(line) for line in lines)
        log.write_bytes(b"".join(line + b"\n" for line in encoded))
        return log

    return write


@pytest.fixture
def config(folder: Path) -> Callable[..., Path]:
    """A configuration whose policy is this."""

    def write(**policy: Any) -> Path:
        path = folder / "new.toml"
        said = {"profile": "semantic", "least_tools": 0, "least_tokens": 0, "way_back": False} | policy
        lines = (f"{name} = {json.dumps(value)}" for name, value in said.items())
        path.write_text("\n".join(["[llm.policy]", *lines]) + "\n")
        return path

    return write


def turn(said: str, calls: Sequence[str], kept: Sequence[str] | None = JOBS, **more: Any) -> RequestRecord:
    body = json.dumps(asking("openai_chat", said, JOBS, model="m"))
    fields = {"at": 1.0, "upstream": "openai", "path": PATH, "outcome": "shadow", "body": body} | more
    return RequestRecord(**fields, kept=None if kept is None else list(kept), called=list(calls))


def test_both_configurations_are_compared_over_the_same_calls(
    run_json: Callable[..., Any], written: Callable[..., Path], config: Callable[..., Path]
) -> None:
    log = written(
        turn("renew the loan", ["renew_loan"], tokens_before=90, tokens_after=90),
        turn("book the flight", ["tune_piano", "of_nobody"], tokens_before=90, tokens_after=90),
        turn("tune the piano", ["tune_piano"], ["book_flight"], tokens_before=90, tokens_after=30),
    )
    told = run_json("replay", log, "--config", config(k=1))

    assert told["replayed"] == 3
    assert told["recorded"] | {"recall": 0} == {
        "kept_per_turn": 2.333,
        "tokens_per_turn": 70.0,
        "calls": 3,
        "missed": 1,
        "recall": 0,
    }
    assert (told["new"]["kept_per_turn"], told["new"]["calls"], told["new"]["missed"]) == (1.0, 3, 1)
    assert told["difference"]["recall"][0] == 0.0
    assert told["difference"]["recall"][1] < 0 < told["difference"]["recall"][2]
    assert told["difference"]["kept_per_turn"][0] == pytest.approx(-4 / 3, abs=1e-3)
    assert told["tools"][0] == {"tool": "tune_piano", "calls": 2, "missed_recorded": 1, "missed_new": 1}


def test_broken_lines_are_named_and_skipped(
    run: Run, written: Callable[..., Path], config: Callable[..., Path]
) -> None:
    log = written(b"{", turn("renew the loan", ["renew_loan"]), b'{"at": "now"}', b"\xff", b"[]")
    done = run("replay", log, "--config", config(k=1), "--json")
    told = json.loads(done.stdout)

    assert told["replayed"] == 1
    assert [each["line"] for each in told["broken"]] == [1, 3, 4, 5]
    assert all(f"Line {number} of" in done.stderr for number in (1, 3, 4, 5))


def test_what_says_nothing_is_left_out_with_the_reason(
    run_json: Callable[..., Any], written: Callable[..., Path], config: Callable[..., Path]
) -> None:
    log = written(
        turn("renew the loan", ["renew_loan"]),
        turn("renew the loan", ["renew_loan"], None),
        turn("renew the loan", [], upstream="elsewhere"),
        turn("renew the loan", [], path="/v1/files"),
        turn("renew the loan", [], body='{"tools": 7}'),
        turn("renew the loan", [], wishes={"k": "many"}),
    )
    told = run_json("replay", log, "--config", config(k=1))

    assert told["replayed"] == 1
    assert told["left_out"] == {
        "not_picked_when_recorded": 1,
        "no_upstream_of_that_name": 1,
        "path_not_known": 1,
        "request_not_understood": 1,
        "wish_not_understood": 1,
    }


def test_a_configuration_in_the_shadow_or_that_fails_closed_is_replayed_as_if_it_filtered(
    run_json: Callable[..., Any], written: Callable[..., Path], config: Callable[..., Path]
) -> None:
    log = written(turn("renew the loan", ["renew_loan"]))
    told = run_json("replay", log, "--config", config(k=1, shadow=True, fail="closed"))

    assert told["new"]["kept_per_turn"] == 1


def test_one_that_filters_nothing_keeps_all_tokens(
    run_json: Callable[..., Any], written: Callable[..., Path], config: Callable[..., Path]
) -> None:
    log = written(turn("renew the loan", ["renew_loan"], ["book_flight"], tokens_before=90, tokens_after=30))
    told = run_json("replay", log, "--config", config(filter=False))

    assert (told["new"]["kept_per_turn"], told["new"]["tokens_per_turn"], told["new"]["missed"]) == (3, 90, 0)
    assert told["recorded"]["missed"] == 1


def test_conversations_that_the_provider_keeps_are_gone_on_with(
    run_json: Callable[..., Any], written: Callable[..., Path], config: Callable[..., Path]
) -> None:
    def response(said: Any, answer: str, **more: Any) -> RequestRecord:
        body = json.dumps(asking("openai_responses", "", JOBS) | {"input": said} | more)
        return turn("", [], body=body, path="/v1/responses", answer=answer, owner="somebody")

    results = called("openai_responses", "renew_loan")[1:]
    log = written(response("renew the loan", "one"), response(results, "two", previous_response_id="one"))

    told = run_json("replay", log, "--config", config(profile="hybrid", k=1))

    assert told["new"]["kept_per_turn"] == 1


def test_a_key_that_is_not_configured_counts_as_none(
    run_json: Callable[..., Any], written: Callable[..., Path], config: Callable[..., Path]
) -> None:
    log = written(turn("renew the loan", ["renew_loan"], key="gone"))

    assert run_json("replay", log, "--config", config(k=1))["new"]["kept_per_turn"] == 1


def test_models_that_could_not_call_what_was_removed_are_told_of(
    run: Run, written: Callable[..., Path], config: Callable[..., Path]
) -> None:
    log = written(turn("renew the loan", ["renew_loan"], ["renew_loan"], outcome="filtered"))
    text = run("replay", log, "--config", config(k=1)).stdout

    assert "1 of these requests were filtered when they were recorded" in text
    assert "recall of 1 calls" in text


def test_packed_logs_are_read(
    run_json: Callable[..., Any], written: Callable[..., Path], config: Callable[..., Path]
) -> None:
    log = written(turn("renew the loan", ["renew_loan"]))
    packed = log.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(log.read_bytes()))

    assert run_json("replay", packed, "--config", config(k=1))["replayed"] == 1


def test_a_log_of_which_nothing_can_be_replayed_fails_and_says_why(
    run: Run, written: Callable[..., Path], config: Callable[..., Path]
) -> None:
    done = run("replay", written(turn("x", [], None)), "--config", config(k=1))

    assert done.exit_code == 1
    assert "not_picked_when_recorded" in done.stderr


def test_a_log_that_is_not_there_is_wrong_use(run: Run, config: Callable[..., Path], folder: Path) -> None:
    done = run("replay", folder / "nothing.jsonl", "--config", config(k=1))

    assert done.exit_code == 2
    assert "Cannot read" in done.stderr


def test_what_the_gateway_recorded_is_picked_again_by_the_same_configuration(
    run_json: Callable[..., Any], config: Callable[..., Path], folder: Path
) -> None:
    log = folder / "live.jsonl"

    async def record() -> None:
        async with shadowing(record=str(log)) as (_, http):
            for format_ in ("openai_chat", "openai_responses", "anthropic", "gemini"):
                await one(http, format_)
            await http.post(
                CHAT, json=asking("openai_chat", "tune the piano", JOBS), headers={"x-pegboard-never": "tune_*"}
            )

    asyncio.run(record())
    told = run_json("replay", log, "--config", config(**SHADOW))

    assert told["replayed"] == len(log.read_bytes().splitlines()) >= 3
    assert told["new"] == told["recorded"]
    assert told["difference"]["kept_per_turn"] == told["difference"]["tokens_per_turn"] == [0, 0, 0]
    assert told["difference"]["recall"][0] == 0
