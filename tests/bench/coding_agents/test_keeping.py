"""Conversations on the disk, and where agents work."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.errors import ConfigError
from pegboard_bench.coding_agents.agents import AGENTS
from pegboard_bench.coding_agents.conversations import Kept
from pegboard_bench.coding_agents.measure import of_kept
from pegboard_bench.coding_agents.sessions import Session


def test_a_kept_conversation_is_not_held_again_when_a_run_is_resumed(tmp_path: Path) -> None:
    Kept(tmp_path).held("one", lambda: a_session("first"))

    assert Kept(tmp_path, resume=True).held("one", lambda: a_session("second")).prompt == "first"
    assert Kept(tmp_path).held("one", lambda: a_session("third")).prompt == "third"


def test_of_a_run_that_was_broken_off_the_prompts_count_that_both_sides_were_asked(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    for name in ("direct-00", "direct-01", "direct-02", "direct-edit", "gateway-00", "gateway-02", "gateway-edit"):
        hold(kept, f"codex-0-{name}")

    case = of_kept(AGENTS["codex"], 0, 15, kept)

    assert [session.prompt for session in case.direct.prompts] == ["codex-0-direct-00", "codex-0-direct-02"]
    assert [session.prompt for session in case.gateway.prompts] == ["codex-0-gateway-00", "codex-0-gateway-02"]
    assert len(of_kept(AGENTS["codex"], 0, 1, kept).direct.prompts) == 1


def test_without_its_tasks_nothing_is_said_of_an_agent(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    hold(kept, "codex-0-direct-edit")

    with pytest.raises(ConfigError, match="Task edit of Codex with 0 MCP tools"):
        of_kept(AGENTS["codex"], 0, 15, kept)


def hold(kept: Kept, name: str) -> None:
    kept.held(name, lambda: a_session(name))


def test_agents_of_a_resumed_run_work_where_those_before_them_did(tmp_path: Path) -> None:
    """Prompts name the folder: under another one they would not be read from a cache."""
    with Kept(tmp_path / "kept").workplace() as first:
        (first / "left").write_text("over", "utf-8")
    assert not first.exists()
    with Kept(tmp_path / "kept", resume=True).workplace() as second:
        assert not list(second.iterdir())

    assert second == first


def test_runs_that_keep_elsewhere_or_nothing_work_apart(tmp_path: Path) -> None:
    with (
        Kept(tmp_path / "one").workplace() as one,
        Kept(tmp_path / "other").workplace() as other,
        Kept().workplace() as without,
        Kept().workplace() as again,
    ):
        assert len({one, other, without, again}) == 4


def test_what_a_broken_off_run_left_is_cleared_away(tmp_path: Path) -> None:
    with Kept(tmp_path / "kept").workplace() as place:
        (place / "left").mkdir()
        with Kept(tmp_path / "kept").workplace() as again:
            assert again == place
            assert not list(again.iterdir())


def a_session(prompt: str) -> Session:
    return Session(prompt=prompt, code=0, seconds=1.0, requests=[], refused=[], missed=[], said="")
