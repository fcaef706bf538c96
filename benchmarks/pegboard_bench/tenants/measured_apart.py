"""Measures in a process of its own, and says what was measured in few numbers."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import ParamSpec, TypeVar

import numpy as np

Given = ParamSpec("Given")
T = TypeVar("T")


def percentiles(name: str, times: Sequence[float]) -> dict[str, float]:
    return {f"p{at}_ms/{name}": float(np.percentile(times, at)) for at in (50, 95, 99)} | {
        f"most_ms/{name}": float(max(times))
    }


def apart(work: Callable[Given, T], *given: Given.args, **named: Given.kwargs) -> T:
    """In a process of its own, so that its memory is its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *given, **named).result()
