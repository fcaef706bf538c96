"""Decodes the content codings of request bodies."""

from __future__ import annotations

import io
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping

from pegboard.errors import RequestNotUnderstood
from pegboard.inflate import WINDOWS

WINDOW_LOG = 27
"""The largest zstd window, which the body chooses: 128 MiB."""
PIECE = 1024 * 1024
LONG = 64 * 1024
"""Strings of more bytes are images or files: each is one value, however long."""
MOST_BESIDE = 16 * 1024 * 1024
"""Bytes of a body besides its long strings: parsed, they take several times as much memory."""
MOST_QUOTES = 1_000_000


def decoded(body: bytes, coding: str, most: int) -> bytes:
    """The decoded body, of at most ``most`` bytes, of which `MOST_BESIDE` may be outside long strings.

    Raises RequestNotUnderstood; never decodes beyond the limit.
    """
    coding = coding.strip().lower()
    undo = UNDO.get(coding)
    if undo is None:
        raise RequestNotUnderstood(
            f"The body's coding {coding!r} is not supported.", remedy="Use gzip, zstd or br, or none."
        )
    plain = undo(body, coding, most)
    if len(plain) > most:
        raise RequestNotUnderstood(f"The body has more than {most:,} bytes.", remedy="Raise llm.most_filtered.")
    if len(plain) > MOST_BESIDE and len(plain) - _in_long_strings(plain) > MOST_BESIDE:
        raise RequestNotUnderstood(
            f"The body has more than {MOST_BESIDE:,} bytes besides its images.", remedy="Send less text."
        )
    return plain


def _identity(body: bytes, coding: str, most: int) -> bytes:
    return body


def _inflated(body: bytes, coding: str, most: int) -> bytes:
    inflater = zlib.decompressobj(WINDOWS[coding])
    try:
        plain = inflater.decompress(body, most + 1)
    except zlib.error as error:
        raise _wrong(coding) from error
    if inflater.eof and inflater.unused_data:
        raise RequestNotUnderstood(
            "The compressed body is followed by other bytes.", remedy="Compress the body as a whole."
        )
    if not inflater.eof and len(plain) <= most:
        raise RequestNotUnderstood("The compressed body ends too early.", remedy="Send all of it.")
    return plain


def _unzstd(body: bytes, coding: str, most: int) -> bytes:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd

    limit = {int(zstd.DecompressionParameter.window_log_max): WINDOW_LOG}
    try:
        with zstd.ZstdFile(io.BytesIO(body), options=limit) as reader:
            return b"".join(_pieces(lambda left: reader.read(min(left, PIECE)), most))
    except EOFError as error:
        raise RequestNotUnderstood("The compressed body ends too early.", remedy="Send all of it.") from error
    except zstd.ZstdError as error:
        raise _wrong(coding) from error


def _unbrotli(body: bytes, coding: str, most: int) -> bytes:
    """A truncated body is not detected here, but fails later as invalid JSON."""
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
    """Yields chunks until the end, or one byte beyond the limit."""
    left = most + 1
    while left > 0 and (piece := more(left)):
        left -= len(piece)
        yield piece


def _wrong(coding: str) -> RequestNotUnderstood:
    return RequestNotUnderstood(f"The body does not match its coding {coding!r}.", remedy="Check it.")


def _in_long_strings(body: bytes) -> int:
    """Bytes of a JSON text between two quotes that are far apart: escaped quotes can only split a string."""
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
    **dict.fromkeys(WINDOWS, _inflated),
    "zstd": _unzstd,
    "br": _unbrotli,
}
"""Decoders by coding; each stops one byte beyond the limit."""
