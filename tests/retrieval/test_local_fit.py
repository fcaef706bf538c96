from __future__ import annotations

import json
from pathlib import Path

import pytest

from pegboard.errors import ConfigError
from pegboard.retrieval.fusion import shipped
from pegboard.retrieval.local_fit import LocalFit

WRITTEN = LocalFit(
    encoder="fake", fusions={"words": shipped()["words"]}, threshold=0.24, origin={"queries": 40, "tools": 12}
)


def test_a_calibration_reads_what_it_wrote(tmp_path: Path) -> None:
    WRITTEN.write(tmp_path / "calibration.json")

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

    with pytest.raises(ConfigError, match=r"wrong\.json' is no calibration"):
        LocalFit.read(path)


def test_a_fusion_of_other_parts_than_are_scored_here_is_no_calibration(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    row = {"encoder": "fake", "threshold": None, "fusions": {"hybrid": shipped()["words"].written()}, "origin": {}}
    path.write_text(json.dumps(row))

    with pytest.raises(ConfigError, match="bm25"):
        LocalFit.read(path)
