"""The library: what people who write agents import. Start with `board.py`."""

from pegboard.library.board import Board, Gate

__all__ = ["Board", "Gate"]
