"""The library for people who write agents. Start with `board.py`."""

from pegboard.library.board import Board, Gate
from pegboard.library.from_settings import build

__all__ = ["Board", "Gate", "build"]
