"""`scripts/environments.py`: what the scripts that install things share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import environments


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What pip would have been asked for; a package named `broken` cannot be installed."""
    asked: list[list[str]] = []

    def create(folder: Path, *, with_pip: bool, clear: bool) -> None:
        assert with_pip
        assert clear
        environments.site_packages(folder).mkdir(parents=True, exist_ok=True)

    def succeeds(command: Sequence[str]) -> bool:
        asked.append(list(command[command.index("--quiet") + 1 :]))
        return "broken" not in command

    monkeypatch.setattr(environments.venv, "create", create)
    monkeypatch.setattr(environments, "succeeds", succeeds)
    return asked


def test_an_environment_is_made_once_and_again_when_its_packages_change(
    commands: list[list[str]], tmp_path: Path
) -> None:
    assert environments.with_packages(tmp_path / "one", ("a==1",), ("--no-deps", "b==2"))
    assert environments.with_packages(tmp_path / "one", ("a==1",), ("--no-deps", "b==2"))
    assert commands == [["a==1"], ["--no-deps", "b==2"]]

    assert environments.with_packages(tmp_path / "one", ("a==2",))
    assert commands[2:] == [["a==2"]]


def test_what_failed_is_tried_again(commands: list[list[str]], tmp_path: Path) -> None:
    for _ in range(2):
        assert not environments.with_packages(tmp_path / "one", ("broken",), ("never reached",))
    assert commands == [["broken"], ["broken"]]


def test_an_environment_beside_another_imports_what_that_has(commands: list[list[str]], tmp_path: Path) -> None:
    assert environments.with_packages(tmp_path / "peer", ("a==1",), beside=tmp_path / "encoder")

    paths = (environments.site_packages(tmp_path / "peer") / "beside.pth").read_text("utf-8").split()
    assert paths == [str(environments.site_packages(tmp_path / "encoder"))]
    assert commands == [["a==1"]]


def test_a_package_from_npm_is_installed_once_and_again_when_its_pin_moves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []

    def succeeds(command: Sequence[str]) -> bool:
        asked.append(command[-1])
        name, _, version = command[-1].rpartition("@")
        (tmp_path / "node_modules" / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / "node_modules" / name / "package.json").write_text(f'{{"version": "{version}"}}', "utf-8")
        return True

    monkeypatch.setattr(environments, "succeeds", succeeds)
    monkeypatch.setattr(environments, "has", lambda *programs: True)
    for wanted in ("@some/agent@1.2.3", "@some/agent@1.2.3", "@some/agent", "@some/agent@1", "@some/agent@1.2.4"):
        assert environments.from_npm(tmp_path, [wanted])

    assert asked == ["@some/agent@1.2.3", "@some/agent@1.2.4"]
