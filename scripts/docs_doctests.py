"""An extension of griffe, which reads the API for the documentation site: doctests become blocks of code."""

from __future__ import annotations

from typing import Any

import griffe


class Doctests(griffe.Extension):  # type: ignore[misc] # griffe is in the environment of the docs alone
    """Puts each doctest of a docstring between fences: Markdown would take `>>>` for three quotations."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Called once for each module, class, function and attribute."""
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """A docstring with its doctests, which end at an empty line, as Markdown's blocks of code.

    >>> print(fenced("Adds.\\n\\n>>> 1 + 1\\n2\\n\\nMore."))
    Adds.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    More.
    """
    paragraphs = text.split("\n\n")
    return "\n\n".join(f"```pycon\n{each}\n```" if each.startswith(">>>") else each for each in paragraphs)
