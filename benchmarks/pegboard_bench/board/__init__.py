"""Boards of thousands of tools that change: `make bench-board`."""
