"""The person who signs in, and how to reach them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

PATIENCE = 300.0
"""Seconds that a person has to sign in."""

ShowCode = Callable[[str, str], Awaitable[None]]
"""Called with the address to open, and the code to enter there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """``open_url`` sends a browser to a page, ``show_code`` tells of a code to enter on another device."""

    open_url: Callable[[str], Awaitable[None]]
    show_code: ShowCode
    seconds: float = PATIENCE
