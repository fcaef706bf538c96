"""Programs made of the library."""

import sys

from pegboard.collector import stop_collecting
from pegboard.extras import missing_extra


def main() -> None:
    """The entry point of `pegboard` and of `python -m pegboard`. Says what to install if the extra `cli` is missing."""
    try:
        from pegboard.apps.cli import main as run
    except ModuleNotFoundError as error:
        told = missing_extra(error)
        if told is None:
            raise
        sys.stderr.write(f"pegboard: {told}\n")
        sys.exit(2)
    try:
        run()
    finally:
        stop_collecting()
