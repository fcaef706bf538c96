"""Files that are changed together: all of them, or none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pegboard.errors import ConfigError

PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class _Staged:
    temporary: Path
    target: Path
    before: bytes | None


@dataclass(slots=True)
class Together:
    """Everything is written beside its place first; only when that went well does each take its place, in order."""

    _staged: list[_Staged] = field(default_factory=list)
    _made: list[Path] = field(default_factory=list)
    _old: list[Path] = field(default_factory=list)

    def write(self, path: Path, data: bytes, *, before: bytes | None, mode: int = PRIVATE) -> None:
        """``before`` is what the caller read there, None for nothing: what others wrote since is not overwritten.

        A link stays one: the file it leads to is written.
        """
        target = path.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        self._staged.append(_Staged(Path(name), target, before))
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        Path(name).chmod(mode)

    def create(self, path: Path, data: bytes, mode: int) -> None:
        """A file that must not be there yet."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        self._made.append(path)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        path.chmod(mode)

    def remove(self, path: Path) -> None:
        """Once everything is in its place."""
        self._old.append(path)

    def commit(self) -> None:
        done: list[_Staged] = []
        try:
            for staged in self._staged:
                if _content(staged.target) != staged.before:
                    raise ConfigError(
                        f"{str(staged.target)!r} was changed by another program just now.",
                        remedy="Nothing was changed; run it again.",
                    )
                staged.temporary.replace(staged.target)
                done.append(staged)
        except BaseException:
            for staged in reversed(done):
                _put_back(staged)
            raise
        for path in self._old:
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def discard(self) -> None:
        for path in [*(staged.temporary for staged in self._staged), *self._made]:
            with suppress(OSError):
                path.unlink(missing_ok=True)


@contextmanager
def together() -> Iterator[Together]:
    """Changes are made at the end of the block. Raises ConfigError, with everything as it was, where one cannot be."""
    changes = Together()
    try:
        yield changes
        changes.commit()
    except OSError as error:
        changes.discard()
        raise ConfigError(
            f"Cannot write {str(error.filename2 or error.filename)!r}: {error.strerror}.",
            remedy="Nothing was changed. Make the folder writable, or leave that client out with --client.",
        ) from error
    except BaseException:
        changes.discard()
        raise


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _put_back(staged: _Staged) -> None:
    with suppress(OSError):
        if staged.before is None:
            staged.target.unlink()
        else:
            staged.target.write_bytes(staged.before)
