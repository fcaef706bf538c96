from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pegboard.errors import ConfigError
from pegboard.retrieval.fusion import shipped
from pegboard.retrieval.local_fit import LocalFit

WRITTEN = LocalFit(
    encoder="fake", fusions={"words": shipped()["words"]}, threshold=0.24, origin={"queries": 40, "tools": 12}
)


def test_a_calibration_reads_what_it_wrote(tmp_path: Path) -> None:
    (tmp_path / "calibration.json").write_text(WRITTEN.text())

    assert LocalFit.read(tmp_path / "calibration.json") == WRITTEN


def test_a_calibration_that_is_not_there_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.json.*pegboard calibrate"):
        LocalFit.read(tmp_path / "gone.json")


@pytest.mark.parametrize(
    "wrong",
    [
        "no json",
        "[]",
        "{}",
        json.dumps({"encoder": "fake", "threshold": "high", "fusions": {}, "origin": {}}),
        json.dumps({"encoder": "fake", "threshold": None, "fusions": {"none": {}}, "origin": {}}),
        json.dumps({"encoder": "fake", "threshold": None, "fusions": {"hybrid": {"weights": {}}}, "origin": {}}),
    ],
)
def test_a_file_that_is_no_calibration_is_named(tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "wrong.json"
    path.write_text(wrong)

    with pytest.raises(ConfigError, match=r"wrong\.json' is not a calibration"):
        LocalFit.read(path)


@pytest.mark.parametrize("weights", [{"bm25": 0.5, "smell": 0.5}, {}])
def test_a_fusion_of_other_parts_than_are_scored_here_is_no_calibration(
    tmp_path: Path, weights: dict[str, float]
) -> None:
    path = tmp_path / "other.json"
    row = {"encoder": "fake", "threshold": None, "fusions": {"hybrid": saved() | {"weights": weights}}, "origin": {}}
    path.write_text(json.dumps(row))

    with pytest.raises(ConfigError, match="the fusion 'hybrid' has the parts"):
        LocalFit.read(path)


@pytest.mark.requirement("C10")
def test_a_calibration_from_before_a_part_was_added_is_read_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, of_then = tmp_path / "older.json", {"cosine": 0.2, "clause": 1.2, "bm25": 0.2, "server": 0.4}
    row = {"encoder": "fake", "threshold": None, "fusions": {"hybrid": saved() | {"weights": of_then}}, "origin": {}}
    path.write_text(json.dumps(row))

    with caplog.at_level("INFO"):
        fitted = LocalFit.read(path)

    assert fitted.fusions["hybrid"].weights == of_then
    assert re.search(r"older than the parts \[.*'name'", caplog.text)


def saved() -> dict[str, Any]:
    return shipped()["hybrid"].written()
