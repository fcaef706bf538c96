"""Atomic changes of several files: either all are made, or none."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from pegboard import operating_system
from pegboard.errors import ConfigError

PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class _Staged:
    temporary: Path
    target: Path
    before: bytes | None


@dataclass(slots=True)
class FileChanges:
    """Collects changes. New content is first written to temporary files; `commit` renames them in order."""

    _staged: list[_Staged] = field(default_factory=list)
    _made: list[Path] = field(default_factory=list)
    _old: list[Path] = field(default_factory=list)

    def write(self, path: Path, data: bytes, *, before: bytes | None, mode: int = PRIVATE) -> None:
        """``before`` is the content that the caller read, or None for no file; a later change by another program is not
        overwritten. A symbolic link is kept, and its target is written.
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
        """Create a file that must not exist yet."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        self._made.append(path)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        path.chmod(mode)

    def remove(self, path: Path) -> None:
        """Remove a file after everything else was committed."""
        self._old.append(path)

    def commit(self) -> None:
        done: list[_Staged] = []
        try:
            for staged in self._staged:
                if _content(staged.target) != staged.before:
                    raise ConfigError(
                        f"Another program has just changed {str(staged.target)!r}.",
                        remedy="Nothing was changed; run the command again.",
                    )
                operating_system.replace_file(staged.temporary, staged.target)
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
def file_changes() -> Iterator[FileChanges]:
    """Commits the changes at the end of the block. Raises ConfigError, with all files unchanged, if one fails."""
    changes = FileChanges()
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


@contextmanager
def staged(target: Path, *, private: bool = False) -> Iterator[IO[bytes]]:
    """A file that replaces ``target``, or what it links to, at the end of the block; a device is written itself.

    The file is readable by its owner alone if ``private``; else as the file that it replaces, or as new files are.
    Raises ConfigError.
    """
    temporary: Path | None = None
    try:
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        place = target.resolve()
        descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name}.")
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        if not private:
            temporary.chmod(operating_system.mode_in_place_of(place))
        operating_system.replace_file(temporary, place)
    except OSError as error:
        raise ConfigError(
            f"Cannot write {str(target)!r}: {error.strerror}.", remedy="Choose a folder that can be written."
        ) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
