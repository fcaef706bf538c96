"""The command line: `pegboard`. One module a command; `program.py` is where all of them begin and end."""

from pegboard.apps.cli.app import app, main

__all__ = ["app", "main"]
