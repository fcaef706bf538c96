"""Replaces halves of surrogate pairs in JSON: JSON can contain them, text cannot, and most readers refuse the whole."""

from __future__ import annotations

import re

SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|\\.",
    re.DOTALL,
)
REPLACEMENT = rb"\ufffd"
"""U+FFFD as an escape, with the length of a surrogate's escape, so that all other bytes keep their positions."""
MOST_ESCAPES = 200_000
"""The most escapes that are searched for lone surrogates."""


def readable(body: bytes) -> bytes:
    r"""The body with lone surrogates replaced, which JSON can contain but text cannot.

    All other bytes keep their positions. Programs that cut a text in the middle of an emoji send lone surrogates, as
    JavaScript's strings can be cut there.

    >>> readable(rb'["cut \ud83d", "whole \ud83d\ude00", "text \\ud83d"]')
    b'["cut \\ufffd", "whole \\ud83d\\ude00", "text \\\\ud83d"]'
    """
    if body.count(b"\\") > MOST_ESCAPES:
        return body
    if b"\\ud" not in body and b"\\uD" not in body:
        return body
    return SURROGATE.sub(lambda match: REPLACEMENT if match["lone"] else match[0], body)
