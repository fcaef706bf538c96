"""Headers that begin as ours do and mean nothing here: the request is served, and its answer and the log say so."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pegboard.gateways.llm.policies import WISH
from pegboard.gateways.llm.upstream import Headers

LOGGER = logging.getLogger(__name__)

KNOWN = ("k", "budget", "threshold", "never", "filter", "way-back", "key", "conversation")
"""Headers of requests to models, without their common beginning."""
OF_MCP = frozenset({"session", "exposure", "forwarded"})
"""Those of the MCP gateway, which a client may send everywhere."""
MOST_LOGGED = 100
"""Different names that are logged: clients choose them."""
MOST_SHOWN = 5


class UnknownHeaders:
    """Notes each unknown name once."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def warning(self, names: Iterable[str]) -> Headers:
        """The header of an answer that names the unknown ones among ``names``, which come without `x-pegboard-`."""
        unknown = sorted({name for name in names if name not in KNOWN and name not in OF_MCP})
        if not unknown:
            return []
        for name in unknown:
            if name not in self._logged and len(self._logged) < MOST_LOGGED:
                self._logged.add(name)
                LOGGER.warning("Requests have the header %s%s, which means nothing here. %s", WISH, name, USE)
        shown = ", ".join(WISH + name for name in unknown[:MOST_SHOWN])
        return [(b"x-pegboard-warning", f"unknown: {shown}. {USE}".encode("latin-1"))]


USE = f"Known are {WISH}{', '.join(KNOWN)}."
