"""Content codings of bodies that are read here."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping

from pegboard.errors import RequestNotUnderstood

INFLATING: Mapping[str, int] = {"gzip": 31, "x-gzip": 31, "deflate": 47}
"""Content codings that zlib undoes, and its window for each."""
WINDOW = 128 * 1024 * 1024
"""Bytes that undoing zstd may keep at hand, as a body may ask for."""
PIECE = 1024 * 1024
LONG = 64 * 1024
"""Bytes of a string from which on it is an image, or a file: it is one value, however long it is."""
MOST_BESIDE = 16 * 1024 * 1024
"""Bytes of a body beside its long strings: read, those take many times as much memory."""
MOST_QUOTES = 1_000_000


def decoded(body: bytes, coding: str, most: int) -> bytes:
    """The body without its content coding, at most so many bytes, and `MOST_BESIDE` beside its long strings.

    Raises RequestNotUnderstood; nothing is undone beyond what may be read.
    """
    coding = coding.strip().lower()
    undo = UNDO.get(coding)
    if undo is None:
        raise RequestNotUnderstood(
            f"The body's coding {coding!r} is not read here.", remedy="Use gzip, zstd or br, or none."
        )
    plain = undo(body, coding, most)
    if len(plain) > most:
        raise RequestNotUnderstood(f"The body has more than {most:,} bytes.", remedy="Raise llm.most_filtered.")
    if len(plain) > MOST_BESIDE and len(plain) - _in_long_strings(plain) > MOST_BESIDE:
        raise RequestNotUnderstood(
            f"The body has more than {MOST_BESIDE:,} bytes beside its images.", remedy="Send less text."
        )
    return plain


def _identity(body: bytes, coding: str, most: int) -> bytes:
    return body


def _inflated(body: bytes, coding: str, most: int) -> bytes:
    inflater = zlib.decompressobj(INFLATING[coding])
    try:
        plain = inflater.decompress(body, most + 1)
    except zlib.error as error:
        raise _wrong(coding) from error
    if inflater.eof and inflater.unused_data:
        raise RequestNotUnderstood("Something follows the compressed body.", remedy="Compress it as one.")
    if not inflater.eof and len(plain) <= most:
        raise RequestNotUnderstood("The compressed body ends too early.", remedy="Send all of it.")
    return plain


def _unzstd(body: bytes, coding: str, most: int) -> bytes:
    """One that ends too early is no JSON, which shows later."""
    import zstandard

    undoing = zstandard.ZstdDecompressor(max_window_size=WINDOW)
    try:
        with undoing.stream_reader(body, read_across_frames=True) as reader:
            return b"".join(_pieces(lambda left: reader.read(min(left, PIECE)), most))
    except zstandard.ZstdError as error:
        raise _wrong(coding) from error


def _unbrotli(body: bytes, coding: str, most: int) -> bytes:
    """One that ends too early is no JSON, which shows later."""
    import brotli

    undoing, given = brotli.Decompressor(), [body]

    def more(left: int) -> bytes:
        if undoing.is_finished():
            return b""
        piece: bytes = undoing.process(given.pop() if given else b"", output_buffer_limit=min(left, PIECE))
        return piece

    try:
        return b"".join(_pieces(more, most))
    except brotli.error as error:
        raise _wrong(coding) from error


def _pieces(more: Callable[[int], bytes], most: int) -> Iterator[bytes]:
    """Until there is no more, or a byte more than so many."""
    left = most + 1
    while left > 0 and (piece := more(left)):
        left -= len(piece)
        yield piece


def _wrong(coding: str) -> RequestNotUnderstood:
    return RequestNotUnderstood(f"The body is not what its coding {coding!r} says.", remedy="Check it.")


def _in_long_strings(body: bytes) -> int:
    """Bytes of a JSON text that stand between two quotes far apart: a string's own quotes split it at worst."""
    found, start = 0, body.find(b'"')
    for _ in range(MOST_QUOTES):
        end = body.find(b'"', start + 1) if start >= 0 else -1
        if end < 0:
            break
        found += end - start if end - start > LONG else 0
        start = end
    return found


UNDO: Mapping[str, Callable[[bytes, str, int], bytes]] = {
    "": _identity,
    "identity": _identity,
    **dict.fromkeys(INFLATING, _inflated),
    "zstd": _unzstd,
    "br": _unbrotli,
}
"""What undoes a coding, up to a byte more than so many."""
