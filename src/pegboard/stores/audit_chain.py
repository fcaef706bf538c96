"""What the audit logs of all backends share."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from pegboard.audit_entries import AuditEntry, ChainEnds, Link, moment, sealed
from pegboard.errors import StoreError

MOST_UNSURE = 100
"""Appends without an answer that a log remembers."""


def appended(entries: Sequence[AuditEntry], ends: str | bytes, key: bytes) -> tuple[list[bytes], str]:
    """The sealed lines, and the new ends of the chain, from the stored ones."""
    before = ends_of(ends)
    lines, last = sealed(entries, before.last, key)
    return lines, ChainEnds(last=last, removed=before.removed).text(key)


def shortened(ends: str | bytes, removed: Link, key: bytes) -> str:
    """The ends of a chain whose lines up to ``removed`` are gone."""
    return ChainEnds(last=ends_of(ends).last, removed=removed).text(key)


def ends_of(text: str | bytes) -> ChainEnds:
    """The stored ends; those of an empty chain if there are none, or if what is stored cannot be read: the log goes on,
    and its verification shows that."""
    try:
        return ChainEnds.of(text) if text else ChainEnds()
    except ValueError:
        return ChainEnds()


def removable(lines: Iterable[bytes], before: float) -> list[Link]:
    """The links of the lines at the beginning that are not younger than a moment, up to one that cannot be read. Raises
    StoreError if that is the first."""
    until, found = moment(before), list[Link]()
    for line in lines:
        try:
            said = json.loads(line)
            at, link = str(said["at"]), Link(number=int(said["number"]), hash=str(said["hash"]))
        except (ValueError, TypeError, KeyError):
            if found:
                break
            raise StoreError(
                "The oldest line of the audit log cannot be read, so that it is not removed, nor is any after it.",
                remedy="`pegboard audit-log --verify` shows what was changed.",
            ) from None
        if at > until:
            break
        found.append(link)
    return found


def hash_in(line: bytes) -> str:
    """The hash at the end of a sealed line."""
    return line[-66:-2].decode()
