"""Tools and their token counts: the immutable catalog, names on the wire, summaries, and readers of tool
definitions."""

from pegboard.catalog.catalog import Catalog, continued, fingerprint, ordered, server_fingerprint
from pegboard.catalog.names import WireNames
from pegboard.catalog.summaries import summarize
from pegboard.catalog.tokens import BpeCounter, canonical, canonical_text, compact_json

__all__ = [
    "BpeCounter",
    "Catalog",
    "WireNames",
    "canonical",
    "canonical_text",
    "compact_json",
    "continued",
    "fingerprint",
    "ordered",
    "server_fingerprint",
    "summarize",
]
