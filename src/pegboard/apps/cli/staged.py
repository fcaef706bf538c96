"""A large file that is written whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pegboard.errors import ConfigError


@contextmanager
def staged(target: Path) -> Iterator[IO[bytes]]:
    """A file that takes its place at the end of the block, and that nobody else can read. Raises ConfigError."""
    temporary: Path | None = None
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        temporary = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(descriptor)
        temporary.replace(target)
    except OSError as error:
        raise ConfigError(
            f"Cannot write {str(target)!r}: {error.strerror}.", remedy="Choose a folder that can be written."
        ) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
