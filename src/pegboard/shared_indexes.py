"""What is read from tools alone, once for all boards whose tools are the same: those of users, and of toolsets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from weakref import WeakValueDictionary

from pegboard.catalog import Catalog
from pegboard.protocols import Encoder
from pegboard.retrieval import CachedEncoder, Retriever

Encoders = tuple[CachedEncoder, CachedEncoder]
"""For tools, and for queries."""


class SharedIndexes:
    """Catalogs and the indexes over them, each kept as long as a board uses it.

    Two boards share one only if their tools have the same definitions, object by object, and are equal: a board finds
    here nothing that it does not have. `SharedTools` makes one object of definitions that are equal to the byte.
    """

    def __init__(self) -> None:
        self._encoders: dict[int, tuple[Encoder, Encoders]] = {}
        self._catalogs: WeakValueDictionary[str, Catalog] = WeakValueDictionary()
        self._listed: WeakValueDictionary[object, Catalog] = WeakValueDictionary()
        self._retrievers: WeakValueDictionary[tuple[int, str], Retriever] = WeakValueDictionary()

    def encoders(self, encoder: Encoder, make: Callable[[], Encoders]) -> Encoders:
        """The caches in front of an encoder."""
        if id(encoder) not in self._encoders:
            self._encoders[id(encoder)] = encoder, make()
        return self._encoders[id(encoder)][1]

    def catalog(self, catalog: Catalog) -> Catalog:
        """That of another board which is the same, or this one."""
        found = self._catalogs.setdefault(catalog.fingerprint, catalog)
        return found if found is catalog or _are_same(found, catalog) else catalog

    def listed(self, catalog: Catalog) -> Catalog:
        """That of another user to whom servers list the very same objects, or this one."""
        key = tuple(map(id, catalog.tools)), tuple(catalog.servers.items())
        return self._listed.setdefault(key, catalog)

    def retriever(
        self,
        catalog: Catalog,
        documents: Encoder,
        category_descriptions: Mapping[str, str],
        make: Callable[[], Retriever],
    ) -> Retriever:
        """That of another board with this very catalog, or what ``make`` makes."""
        key = id(documents), catalog.fingerprint
        found = self._retrievers.get(key)
        if found is None or not found.is_of(catalog.tools, category_descriptions):
            self._retrievers[key] = found = make()
        return found


def _are_same(one: Catalog, other: Catalog) -> bool:
    return (
        len(one) == len(other)
        and all(mine.definition is its.definition for mine, its in zip(one.tools, other.tools, strict=True))
        and one.tools == other.tools
        and list(one.servers.items()) == list(other.servers.items())
    )
