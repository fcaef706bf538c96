"""Options of what a board offers besides tools: skills and agents."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt

from pegboard.board_items import ItemKind


class ItemSettings(BaseModel):
    """``skills`` are folders of SKILL.md files, ``agents`` files of A2A agent cards. Searches find at most ``most`` of
    a kind (3), whose names, descriptions and addresses take at most ``budgets`` tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    skills: tuple[Path, ...] = ()
    agents: tuple[Path, ...] = ()
    most: dict[ItemKind, NonNegativeInt] = Field(default_factory=dict)
    budgets: dict[ItemKind, NonNegativeInt] = Field(default_factory=dict)

    @property
    def files(self) -> tuple[Path, ...]:
        """What is read beside the configuration."""
        return self.skills + self.agents
