"""Finds the skills, agents, prompts and resources that go with a query, within what each kind may take."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pegboard.board_items import BOARD_KINDS, ITEM_KINDS, BoardItem, BoardKind, ItemKind
from pegboard.catalog import BpeCounter, compact_json
from pegboard.errors import ConfigError
from pegboard.retrieval.document_index import DocumentIndex

MOST = 3
"""Of each kind, unless the board says otherwise."""
SEARCHED = 50_000
"""Characters of a text that are searched."""
Kinds = Collection[BoardKind] | None
"""The kinds that are asked for; None means all."""


class ItemSearch:
    """``most`` are items of each kind (3), ``budgets`` the most tokens of what a model is shown of a kind (unlimited).

    Raises ConfigError for unknown kinds and negative numbers. Indexes are made by the first search.
    """

    def __init__(
        self,
        items: Sequence[BoardItem],
        most: Mapping[str, int] | None = None,
        budgets: Mapping[str, int] | None = None,
    ) -> None:
        self._most, self._budgets = _checked("most", most), _checked("budgets", budgets)
        self._items = {kind: [each for each in items if each.kind == kind] for kind in ITEM_KINDS}
        self._indexes: dict[ItemKind, DocumentIndex] = {}

    def found(self, query: str, kinds: Kinds = None) -> tuple[BoardItem, ...]:
        """The items that match, by kind, best first. Raises ConfigError for an unknown kind."""
        asked = asked_kinds(kinds)
        return tuple(item for kind in ITEM_KINDS if kind in asked for item in self._best(kind, query))

    def _best(self, kind: ItemKind, query: str) -> list[BoardItem]:
        items = self._items[kind]
        if not items:
            return []
        index = self._indexes.get(kind)
        if index is None:
            index = self._indexes[kind] = DocumentIndex([_document(each) for each in items])
        ranked = [replace(items[place], score=score) for place, score in index.best(query)]
        return _within(ranked[: self._most.get(kind, MOST)], self._budgets.get(kind))


def asked_kinds(kinds: Kinds) -> frozenset[str]:
    """The kinds that are asked for. Raises ConfigError for an unknown one."""
    asked = frozenset(BOARD_KINDS if kinds is None else [kinds] if isinstance(kinds, str) else kinds)
    if unknown := sorted(asked - set(BOARD_KINDS)):
        raise ConfigError(
            f"There is no kind {', '.join(map(repr, unknown))}.", remedy=f"Kinds are {', '.join(BOARD_KINDS)}."
        )
    return asked


def _within(items: list[BoardItem], budget: int | None) -> list[BoardItem]:
    """The best items whose listing fits a budget of tokens: one that does not fit is passed over."""
    if budget is None:
        return items
    kept: list[BoardItem] = []
    counts = BpeCounter().count([compact_json(each.to_dict()) for each in items])
    for item, tokens in zip(items, counts, strict=True):
        if tokens <= budget:
            kept.append(item)
            budget -= tokens
    return kept


def _checked(name: str, limits: Mapping[str, Any] | None) -> Mapping[str, int]:
    for kind, most in (limits or {}).items():
        if kind not in ITEM_KINDS:
            said = " For tools, set `k` and `budget`." if kind == "tool" else ""
            raise ConfigError(f"{name} names the kind {kind!r}.", remedy=f"It may name {', '.join(ITEM_KINDS)}.{said}")
        if not isinstance(most, int) or isinstance(most, bool) or most < 0:
            raise ConfigError(f"{name} of {kind} is {most!r}.", remedy="Give a whole number of at least 0.")
    return dict(limits or {})


def _document(item: BoardItem) -> dict[str, str]:
    return {"name": item.name, "description": item.description, "body": item.text[:SEARCHED]}
