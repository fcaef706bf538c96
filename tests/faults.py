"""Servers that do what no server should: how they are reached, and what this process takes beside them."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pegboard.settings.server_spec import ServerSpec

FAULTY = str(Path(__file__).parent / "servers" / "faulty.py")


@dataclass(frozen=True, slots=True)
class Way:
    """How a server is reached and what it speaks; ``client`` is the SDK's mode for the gateway's own client."""

    name: str
    client: str
    modern: bool = False
    http: bool = False
    json: bool = False

    @property
    def environment(self) -> dict[str, str]:
        flags = {"FAULTY_MODERN": self.modern, "FAULTY_JSON": self.json}
        return {name: "1" for name, is_set in flags.items() if is_set}


WAYS = [
    Way("stdio-2025", "auto"),
    Way("stdio-2026", "legacy", modern=True),
    Way("events-2025", "legacy", http=True),
    Way("events-2026", "auto", http=True, modern=True),
    Way("json-2026", "legacy", http=True, modern=True, json=True),
]
PIPES = [way for way in WAYS if not way.http]

MakeFaulty = Callable[..., ServerSpec]


def over(*ways: Way) -> Any:
    """Run a test over these ways only."""
    return pytest.mark.parametrize("way", ways, ids=lambda way: way.name, indirect=True)


def descriptors() -> int:
    """How many files, pipes and sockets this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def resident() -> int:
    """Bytes of memory that this process takes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
