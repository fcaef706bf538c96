"""Makes untrusted text safe to show in a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    r"""The text with control characters escaped, so that it cannot colour, clear or forge terminal output.

    Newlines and tabs are kept.

    >>> printable("\x1b[2Jgone")
    '\\x1b[2Jgone'
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else ascii(each)[1:-1] for each in text)
