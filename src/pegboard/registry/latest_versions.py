"""Which version of a server counts: the latest that was not deleted.

As the official registry decides (docs/modelcontextprotocol-io/versioning.mdx): its own mark first, then semantic
versions, then the time of publication.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pegboard.registry.server_entries import ServerListing

SEMANTIC = re.compile(
    r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?"
)
"""Semantic Versioning 2.0.0; minor and patch may be missing."""
FINAL: tuple[tuple[int, int, str], ...] = ((2, 0, ""),)
"""A version without a pre-release comes after those with one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestVersions:
    """``listings`` by name, one of each server. ``older`` and ``deleted`` count versions that were left out, and
    ``repeated`` those that were there more than once."""

    listings: tuple[ServerListing, ...]
    older: int = 0
    deleted: int = 0
    repeated: int = 0


def latest_versions(listings: Iterable[ServerListing]) -> LatestVersions:
    """The latest version of each server; none of a server whose versions are all deleted.

    Of the same version, the one that was updated last counts, and a deletion more than the rest.
    """
    versions: dict[tuple[str, str], ServerListing] = {}
    repeated = 0
    for each in listings:
        key = each.name.casefold(), each.server.version
        before = versions.get(key)
        repeated += before is not None
        if before is None or _recency(each) > _recency(before):
            versions[key] = each
    by_name: dict[str, list[ServerListing]] = {}
    for each in versions.values():
        if each.standing.status != "deleted":
            by_name.setdefault(each.name.casefold(), []).append(each)
    there = sum(map(len, by_name.values()))
    chosen = tuple(sorted(map(_latest, by_name.values()), key=lambda each: (each.name.casefold(), each.name)))
    return LatestVersions(listings=chosen, older=there - len(chosen), deleted=len(versions) - there, repeated=repeated)


def _recency(listing: ServerListing) -> tuple[bool, str, str]:
    standing = listing.standing
    return standing.status == "deleted", standing.updated_at or standing.published_at, str(listing.as_json())


def _latest(versions: Sequence[ServerListing]) -> ServerListing:
    marked = [each for each in versions if each.standing.is_latest]
    candidates = marked or versions
    semantic = all(order(each.server.version) is not None for each in candidates)
    return max(
        candidates,
        key=lambda each: (
            (order(each.server.version) or (0, 0, 0, FINAL)) if semantic else (0, 0, 0, FINAL),
            each.standing.published_at,
            each.server.version,
        ),
    )


def order(version: str) -> tuple[int, int, int, tuple[tuple[int, int, str], ...]] | None:
    """What semantic versions compare by; None for another version.

    >>> order("1.10.0") > order("1.9.3") > order("1.9.3-rc.2") > order("1.9.3-beta"), order("spring")
    (True, None)
    """
    found = SEMANTIC.fullmatch(version)
    if found is None:
        return None
    major, minor, patch = (int(part or 0) for part in found.group(1, 2, 3))
    before = found.group(4)
    if before is None:
        return major, minor, patch, FINAL
    return (
        major,
        minor,
        patch,
        tuple((0, int(part), "") if part.isdigit() and len(part) < 10 else (1, 0, part) for part in before.split(".")),
    )
