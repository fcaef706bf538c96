"""How a pin is written, alike in SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pegboard.model import NEVER, Fingerprint, ToolId

Row = tuple[str, str, str, str, str | None, str | None]


def seeing(mark: str) -> str:
    """What was seen, row by row as `seen_rows` has them; ``mark`` stands for a value.

    A text that is not given takes none away; the one seen is that of the approved definition too where both are one.
    """
    return (
        "INSERT INTO pins (server, name, approved, seen, approved_text, seen_text) "  # noqa: S608
        f"VALUES ({', '.join([mark] * 6)}) "
        "ON CONFLICT (server, name) DO UPDATE SET seen = excluded.seen, "
        "seen_text = CASE WHEN pins.seen = excluded.seen THEN coalesce(excluded.seen_text, pins.seen_text) "
        "ELSE excluded.seen_text END, "
        "approved_text = CASE WHEN pins.approved = excluded.seen "
        "THEN coalesce(excluded.seen_text, pins.approved_text) ELSE pins.approved_text END"
    )


def approving(mark: str) -> str:
    """A fingerprint that is approved, with the text it stands for where that is known."""
    return (
        f"INSERT INTO pins (server, name, approved, seen) VALUES ({', '.join([mark] * 4)}) "  # noqa: S608
        "ON CONFLICT (server, name) DO UPDATE SET approved = excluded.approved, "
        "approved_text = CASE excluded.approved WHEN pins.approved THEN pins.approved_text "
        "WHEN pins.seen THEN pins.seen_text END"
    )


def seen_rows(
    seen: Mapping[ToolId, Fingerprint], texts: Mapping[ToolId, str], doubted: Collection[ToolId]
) -> list[Row]:
    """In one order by everybody: nobody waits for somebody who waits for him."""
    return [
        (*tool, NEVER, seen[tool], None, texts.get(tool))
        if tool in doubted
        else (*tool, seen[tool], seen[tool], texts.get(tool), texts.get(tool))
        for tool in sorted(seen)
    ]
