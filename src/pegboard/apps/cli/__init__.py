"""The command line `pegboard`: one module per command; `program` runs them and reports their errors."""

from pegboard.apps.cli.program import app, main

__all__ = ["app", "main"]
