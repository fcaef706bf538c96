"""How a program that stays logs."""

from __future__ import annotations

import json
import logging
from datetime import datetime

import pytest

from pegboard.apps.cli import stderr_log


@pytest.fixture(autouse=True)
def _level() -> None:
    stderr_log.OURS.setLevel(logging.NOTSET)


def failed(capsys: pytest.CaptureFixture[str], *, debugging: bool) -> dict[str, str]:
    """What is logged of an exception."""
    with stderr_log.to_stderr(debugging=debugging):
        stderr_log.set_format("json")
        try:
            raise ValueError("the text of a request")
        except ValueError:
            stderr_log.OURS.exception("It failed\non two lines")
    (line,) = capsys.readouterr().err.splitlines()
    return dict(json.loads(line))


def test_a_record_is_one_object_with_time_level_logger_and_message(capsys: pytest.CaptureFixture[str]) -> None:
    said = failed(capsys, debugging=False)

    assert datetime.fromisoformat(said.pop("time")).utcoffset() is not None
    assert said == {
        "level": "error",
        "logger": "pegboard",
        "message": "It failed\non two lines",
        "exception": "ValueError",
    }


def test_the_text_of_an_exception_is_for_developers(capsys: pytest.CaptureFixture[str]) -> None:
    assert "the text of a request" in failed(capsys, debugging=True)["traceback"]


def test_fields_stand_beside_the_message_and_never_take_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    with stderr_log.to_stderr(debugging=True):
        stderr_log.set_format("json")
        stderr_log.OURS.info("Said", extra={"fields": {"status": 200, "message": "other"}})
    said = json.loads(capsys.readouterr().err)

    assert (said["message"], said["status"]) == ("Said", 200)


def test_text_is_the_form_without_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    with stderr_log.to_stderr(debugging=True):
        stderr_log.OURS.info("Said")

    assert capsys.readouterr().err == "pegboard: INFO: Said\n"
