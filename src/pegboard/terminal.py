"""Texts of anybody's, for people to read in a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""With what a terminal would obey written out: nobody colours, clears or forges what people read.

    Line ends and tabs stay as they are.

    >>> printable("\x1b[2Jgone")
    '\\x1b[2Jgone'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else ascii(each)[1:-1] for each in text)
