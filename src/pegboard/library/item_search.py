"""Finds the skills, agents, prompts and resources that go with a query, within what each kind may take."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pegboard.board_items import BOARD_KINDS, ITEM_KINDS, BoardItem, BoardKind, ItemKind
from pegboard.catalog import BpeCounter, compact_json
from pegboard.errors import ConfigError
from pegboard.home_path import home_path
from pegboard.library.given_items import given_items
from pegboard.library.skill_folders import manifests
from pegboard.retrieval.document_index import DocumentIndex
from pegboard.settings.item_settings import ItemSettings

MOST = 3
"""Of each kind, unless the board says otherwise."""
SEARCHED = 50_000
"""Characters of a text that are searched."""
OWN_SKILLS = "skill://pegboard/"
"""What addresses of the configuration's skills begin with: the place of their files is nobody's business."""
HowToRead = Callable[[str], str]
"""What a model is told to do to read the item of this name or address."""
Stamp = tuple[int, int] | None
"""When a file was written last and its size; None where there is none."""
ItemStamps = Mapping[Path, Stamp]
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
        self.stamps: ItemStamps = {}
        """Of the files of a configuration, taken before they were read: what changes from then on is not in here."""

    def found(self, query: str, kinds: Kinds = None) -> tuple[BoardItem, ...]:
        """The items that match, by kind, best first. Raises ConfigError for an unknown kind."""
        asked = asked_kinds(kinds)
        return tuple(item for kind in ITEM_KINDS if kind in asked for item in self._best(kind, query))

    @property
    def any(self) -> bool:
        return any(self._items.values())

    def most_of(self, kind: ItemKind) -> int:
        """How many of a kind are found at most."""
        return self._most.get(kind, MOST)

    def fitting(self, kind: ItemKind, shown: Sequence[Mapping[str, Any]]) -> list[int]:
        """The places of those of the best first that fit the budget of their kind: what does not fit is passed over."""
        budget = self._budgets.get(kind)
        return [*range(len(shown))] if budget is None else _within(shown, budget)

    def skill_at(self, address: str) -> BoardItem | None:
        """The skill of this address in searches; of several the first."""
        return next((each for each in self._items["skill"] if OWN_SKILLS + each.name == address), None)

    def _best(self, kind: ItemKind, query: str) -> list[BoardItem]:
        items = self._items[kind]
        if not items:
            return []
        index = self._indexes.get(kind)
        if index is None:
            index = self._indexes[kind] = DocumentIndex([_document(each) for each in items])
        ranked = [replace(items[place], score=score) for place, score in index.best(query)]
        shown = [each.to_dict() for each in ranked[: self.most_of(kind)]]
        return [ranked[place] for place in self.fitting(kind, shown)]


def item_search(
    settings: ItemSettings,
    given: Sequence[BoardItem] = (),
    most: Mapping[str, int] | None = None,
    budgets: Mapping[str, int] | None = None,
) -> ItemSearch:
    """The search for the items of a configuration and for those that are given beside it. Raises CatalogError and
    ConfigError."""
    stamps = item_stamps(settings)
    own = given_items([*settings.skills], [*settings.agents])
    limits = [
        {**{str(kind): number for kind, number in said.items()}, **(more or {})}
        for said, more in ((settings.most, most), (settings.budgets, budgets))
    ]
    search = ItemSearch([*own, *given], *limits)
    search.stamps = stamps
    return search


def item_files(settings: ItemSettings) -> tuple[Path, ...]:
    """The files that a configuration's items are read from, as far as there are any now."""
    skills = (path for folder in settings.skills for path in manifests(home_path(folder)))
    return (*skills, *(home_path(path) for path in settings.agents))


def item_stamps(settings: ItemSettings) -> ItemStamps:
    """By file that a configuration's items are read from, what tells whether it has changed."""
    return {path: file_stamp(path) for path in item_files(settings)}


def file_stamp(path: Path) -> Stamp:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size


def shown_items(items: Sequence[BoardItem], how: HowToRead) -> dict[str, Any]:
    """Skills and agents as a search of a gateway shows them, and how to read the first skill."""
    skills = [_shown(each, uri=f"{OWN_SKILLS}{each.name}") for each in items if each.kind == "skill"]
    agents = [_shown(each, url=each.address) for each in items if each.kind == "agent"]
    found = {"skills": skills, "read_skill": how(skills[0]["uri"]) if skills else "", "agents": agents}
    return {part: value for part, value in found.items() if value}


def asked_kinds(kinds: Kinds) -> frozenset[str]:
    """The kinds that are asked for. Raises ConfigError for an unknown one."""
    asked = frozenset(BOARD_KINDS if kinds is None else [kinds] if isinstance(kinds, str) else kinds)
    if unknown := sorted(asked - set(BOARD_KINDS)):
        raise ConfigError(
            f"There is no kind {', '.join(map(repr, unknown))}.", remedy=f"Kinds are {', '.join(BOARD_KINDS)}."
        )
    return asked


def _within(shown: Sequence[Mapping[str, Any]], budget: int) -> list[int]:
    kept: list[int] = []
    for place, tokens in enumerate(BpeCounter().count([compact_json(dict(each)) for each in shown])):
        if tokens <= budget:
            kept.append(place)
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


def _shown(item: BoardItem, **address: str) -> dict[str, str]:
    return {"name": item.name, "description": item.description, **address}


def _document(item: BoardItem) -> dict[str, str]:
    return {"name": item.name, "description": item.description, "body": item.text[:SEARCHED]}
