"""Where sources are had from: a cache that the network fills, or a mirror."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pegboard_bench.sets.packages import Packages
from pegboard_bench.sets.recipe import Files, Package, Source
from pegboard_bench.sets.repositories import Repositories


class Origins:
    """Opens sources. ``mirror`` has OWNER/NAME for repositories, npm/NAME@VERSION.json and pypi/NAME@VERSION.json for
    the answers of servers; ``tell`` is called with a line before something is fetched."""

    def __init__(
        self, cache: Path, mirror: Path | None = None, *, tell: Callable[[str], None] = lambda line: None
    ) -> None:
        self._repositories = Repositories(cache, mirror, tell=tell)
        self._packages = Packages(cache, mirror, tell=tell)

    def open(self, source: Source) -> Files:
        """Raises ConfigError if the source cannot be had."""
        if isinstance(source, Package):
            return self._packages.open(source)
        return self._repositories.open(source)
