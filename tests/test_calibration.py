"""A calibration in the settings: where it is looked for, what it changes, and when it is not used."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pegboard import Catalog
from pegboard.errors import ConfigError
from pegboard.retrieval.fusion import shipped
from pegboard.retrieval.local_fit import LocalFit
from pegboard.routing_board import RoutingBoard
from pegboard.settings import load_settings
from pegboard.testing import FakeEncoder

BoardOf = Callable[..., RoutingBoard]


@pytest.fixture
def calibration(tmp_path: Path) -> Path:
    """Fitted for the fake encoder: words count for nothing, and θ is 0.12."""
    hybrid = shipped()["hybrid"]
    changed = replace(hybrid, weights={**hybrid.weights, "bm25": 0.0})
    path = tmp_path / "calibration.json"
    path.write_text(LocalFit(encoder=FakeEncoder.model, fusions={"hybrid": changed}, threshold=0.12).text())
    return path


def test_a_calibration_is_looked_for_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    file = tmp_path / "project" / "pegboard.toml"
    file.write_text('calibration = "calibration.json"\n')

    assert load_settings([file]).calibration == tmp_path / "project" / "calibration.json"


def test_the_environment_names_a_calibration_from_the_current_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGBOARD_CALIBRATION", "here.json")

    assert load_settings().calibration == Path("here.json")


async def test_hybrid_scores_with_the_fusion_that_was_fitted_here(
    town: Catalog, board_of: BoardOf, calibration: Path
) -> None:
    plain, fitted = board_of(town), board_of(town, calibration=calibration)
    here, there = await fitted.scores("renew a book"), await plain.scores("renew a book")

    assert here is not None
    assert there is not None
    assert (here.parts["bm25"] == there.parts["bm25"]).all()
    assert (here.values != there.values).any()


async def test_a_changed_catalog_keeps_the_fusion(town: Catalog, board_of: BoardOf, calibration: Path) -> None:
    board = board_of(town, calibration=calibration)
    before = await board.scores("renew a book")
    board.replace_catalog(town)
    after = await board.scores("renew a book")

    assert before is not None
    assert after is not None
    assert (before.values == after.values).all()


def test_attention_takes_the_threshold_unless_one_is_set_and_no_other_profile_does(
    town: Catalog, board_of: BoardOf, calibration: Path
) -> None:
    def threshold(**options: object) -> float | None:
        return board_of(town, calibration=calibration, **options).profile.threshold

    assert threshold(profile="attention") == 0.12
    assert threshold(profile="attention", threshold=0.4) == 0.4
    assert threshold(profile="keyword") == 1.0
    assert threshold(profile="hybrid") is None


async def test_a_calibration_for_another_encoder_is_not_used_and_that_is_said(
    town: Catalog, board_of: BoardOf, calibration: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Other(FakeEncoder):
        model = "another-model"

    with caplog.at_level(logging.WARNING):
        board = board_of(town, calibration=calibration, profile="attention", parts={"encoder": Other()})

    assert board.profile.threshold == 0.28
    assert "is for the encoder 'bag-of-words', not for 'another-model'" in caplog.text
    assert "pegboard calibrate" in caplog.text


def test_a_calibration_that_is_not_there_stops_the_board(town: Catalog, board_of: BoardOf, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.json"):
        board_of(town, calibration=tmp_path / "gone.json")
