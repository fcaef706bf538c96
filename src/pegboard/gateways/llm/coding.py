"""Content codings of bodies that are read here."""

from __future__ import annotations

import zlib
from collections.abc import Mapping

from pegboard.errors import RequestNotUnderstood

INFLATING: Mapping[str, int] = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""Content codings that zlib undoes, and its window for each."""


def decoded(body: bytes, coding: str, most: int) -> bytes:
    """The body without its content coding, at most so many bytes. Raises RequestNotUnderstood."""
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        plain = body
    elif coding in INFLATING:
        inflater = zlib.decompressobj(INFLATING[coding])
        try:
            plain = inflater.decompress(body, most + 1)
        except zlib.error as error:
            raise RequestNotUnderstood(
                f"The body is not what its coding {coding!r} says.", remedy="Check it."
            ) from error
        if inflater.eof and inflater.unused_data:
            raise RequestNotUnderstood("Something follows the compressed body.", remedy="Compress it as one.")
        if not inflater.eof and len(plain) <= most:
            raise RequestNotUnderstood("The compressed body ends too early.", remedy="Send all of it.")
    else:
        raise RequestNotUnderstood(f"The body's coding {coding!r} is not read here.", remedy="Use gzip, or none.")
    if len(plain) > most:
        raise RequestNotUnderstood(f"The body has more than {most:,} bytes.", remedy="Raise llm.most_filtered.")
    return plain
