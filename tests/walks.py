"""The path of one request through the package: the functions that it calls, by file, and which file calls which."""

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pegboard

PACKAGE = str(Path(pegboard.__file__).parent)
IMPORT_HOOK = f"{PACKAGE}/moved_modules.py"
"""Called by the import system for whatever a library imports late: no part of a call's path."""
RESUME = dis.opmap["RESUME"]


class Function(NamedTuple):
    file: str
    name: str


@dataclass
class Walk:
    """The functions that were called between two moments, on every thread that was started while `watched`.

    One function calls another if a frame starts while the other function's frame is the nearest one of the package
    below it on the stack: calls through libraries count. Resuming a coroutine or a generator is not a call.
    """

    functions: dict[Function, None] = field(default_factory=dict)
    """In the order of their first calls."""
    calls: dict[tuple[Function, Function], None] = field(default_factory=dict)
    """Caller and callee."""

    @property
    def files(self) -> list[str]:
        return list(dict.fromkeys(each.file for each in self.functions))

    @property
    def circles(self) -> list[str]:
        """Pairs of files that call each other."""
        between = {(one.file, other.file): f"{one.name} → {other.name}" for one, other in self.calls}
        return [
            f"{one} and {other}: {what}, {between[other, one]}"
            for (one, other), what in between.items()
            if one < other and (other, one) in between
        ]

    def through(self, target: Function) -> list[str]:
        """Files whose functions the call goes through until it reaches the target; all others they only consult."""
        above = {target}
        while more := {one for one, other in self.calls if other in above} - above:
            above |= more
        return list(dict.fromkeys(each.file for each in self.functions if each in above))

    def common(self, other: Walk) -> Walk:
        """What both walks share. It excludes background tasks that happened to run during one of them."""
        functions = {each: None for each in self.functions if each in other.functions}
        return Walk(functions, {each: None for each in self.calls if each in other.calls})

    def __str__(self) -> str:
        """One line per file, with its functions; then the pairs that call each other."""
        lines = [f"{len(self.files)} files, {len(self.functions)} functions"]
        for number, file in enumerate(self.files, 1):
            lines.append(f"{number:3}. {file}: {', '.join(each.name for each in self.functions if each.file == file)}")
        return "\n".join([*lines, *self.circles])


class Watch:
    """Records walks. Threads that were already running are not seen."""

    def __init__(self) -> None:
        self._walk: Walk | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        before = sys.getprofile()
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            threading.setprofile(None)  # type: ignore[arg-type]  # typeshed knows functions alone
            sys.setprofile(before)

    @contextmanager
    def walk(self) -> Iterator[Walk]:
        """Record what is called within it. Use it within `watched`."""
        walk = self._walk = Walk()
        try:
            yield walk
        finally:
            self._walk = None

    def _profile(self, frame: FrameType, event: str, _arg: Any) -> None:
        if self._walk is None or event != "call" or not _starts(frame):
            return
        called, caller = _function(frame), _caller(frame)
        if called is not None:
            self._walk.functions.setdefault(called)
            if caller is not None and caller != called:
                self._walk.calls.setdefault((caller, called))


def _function(frame: FrameType) -> Function | None:
    """The function of a frame; None for code outside the package."""
    path = frame.f_code.co_filename
    if not path.startswith(PACKAGE) or path == IMPORT_HOOK:
        return None
    return Function(path[len(PACKAGE) + 1 :], frame.f_code.co_qualname.replace("<locals>.", ""))


def _caller(frame: FrameType) -> Function | None:
    """The nearest function of the package below this frame."""
    below = frame.f_back
    while below is not None:
        found = _function(below)
        if found is not None:
            return found
        below = below.f_back
    return None


def _starts(frame: FrameType) -> bool:
    """Whether the function starts; coroutines and generators resume at a `RESUME` with another argument."""
    code = frame.f_code.co_code
    return code[frame.f_lasti] == RESUME and code[frame.f_lasti + 1] & 3 == 0
