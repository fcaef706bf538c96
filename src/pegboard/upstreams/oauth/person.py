"""The person who signs in, and how to reach them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from pegboard.upstreams.oauth.loopback import Loopback

PATIENCE = 300.0
"""Seconds that a person has to sign in."""

ShowCode = Callable[[str, str], Awaitable[None]]
"""Called with the address to open, and the code to enter there."""


Paste = Callable[[Callable[[str], str]], Coroutine[Any, Any, None]]
"""Called with what takes an address that the person pastes, and returns what is wrong with it: empty if nothing is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """``open_url`` sends a browser to a page, ``show_code`` tells of a code to enter on another device.

    ``returns`` is where the browser comes back to, if that is no port of this machine. ``paste`` gives away what the
    person pastes, until it is cancelled; None if they cannot.
    """

    open_url: Callable[[str], Awaitable[None]]
    show_code: ShowCode
    paste: Paste | None = None
    seconds: float = PATIENCE
    returns: Loopback | None = None
