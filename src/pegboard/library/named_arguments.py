"""Functions whose arguments are given by name, as models give them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from inspect import BoundArguments, Parameter, Signature
from typing import Any

from pegboard.errors import CatalogError
from pegboard.model import JsonObject

Function = Callable[[JsonObject], Any]
"""Takes a call's arguments and returns a value, an awaitable or a generator."""


def by_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with a name for each argument, also for those that it takes by place alone.

    >>> def share(part: float, whole: float = 100, /) -> float:
    ...     return part / whole
    >>> by_name(share)(part=50)
    0.5
    """
    signature = _signature(function)
    if signature is None or all(each.kind != Parameter.POSITIONAL_ONLY for each in signature.parameters.values()):
        return function
    named = signature.replace(parameters=[_named(each) for each in signature.parameters.values()])

    @wraps(function)
    def call(*given: Any, **said: Any) -> Any:
        bound = named.bind(*given, **said)
        bound.apply_defaults()
        placed = BoundArguments(signature, bound.arguments)
        return function(*placed.args, **placed.kwargs)

    call.__signature__ = named  # type: ignore[attr-defined]
    return call


def with_keywords(function: Callable[..., Any]) -> Function:
    """What calls the function with a call's arguments."""
    return lambda arguments: by_name(function)(**arguments)


def check_names(function: Callable[..., Any], name: str) -> None:
    """Raises CatalogError for a function with arguments that have no name."""
    signature = _signature(function)
    if signature is not None and any(each.kind == Parameter.VAR_POSITIONAL for each in signature.parameters.values()):
        raise CatalogError(
            f"The function {name!r} takes any number of arguments without names, and models give them by name.",
            remedy="Give it a parameter that is a list, or pair a schema with a function that takes keywords.",
        )


def _named(parameter: Parameter) -> Parameter:
    is_placed = parameter.kind == Parameter.POSITIONAL_ONLY
    return parameter.replace(kind=Parameter.POSITIONAL_OR_KEYWORD) if is_placed else parameter


def _signature(function: Callable[..., Any]) -> Signature | None:
    """None for what has none that can be read, as some functions of C."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None
