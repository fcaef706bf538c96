"""What a board offers besides tools: skills, agents, prompts and resources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

ItemKind = Literal["skill", "agent", "prompt", "resource"]
ITEM_KINDS: tuple[ItemKind, ...] = get_args(ItemKind)
BoardKind = Literal["tool", "skill", "agent", "prompt", "resource"]
BOARD_KINDS: tuple[BoardKind, ...] = get_args(BoardKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardItem:
    """A skill, an agent, a prompt or a resource.

    ``address`` is where it is: the path of a `SKILL.md`, the URL of an agent, the URI of a resource; a prompt has none.
    ``text`` is searched besides name and description: the body of a skill, the skills and examples of an agent card.
    ``score`` is its BM25F for the query, comparable within one answer and kind; 0 before it was searched for.
    """

    kind: ItemKind
    name: str
    description: str = ""
    address: str = ""
    text: str = ""
    score: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """What a model is shown of it: name, description and address.

        >>> BoardItem(kind="resource", name="Tides", address="sea://tides").to_dict()
        {'name': 'Tides', 'address': 'sea://tides'}
        """
        shown = {"name": self.name, "description": self.description, "address": self.address}
        return {key: value for key, value in shown.items() if value}
