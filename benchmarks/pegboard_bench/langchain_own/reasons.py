"""Why a test of LangChain's fails with our middleware before the others: what it says, to a reason."""

from __future__ import annotations

from collections.abc import Mapping

ANY = "any"
REASONS: Mapping[str, str] = {
    ANY: "Any middleware with these hooks fails it, one that does nothing too: the agent's graph has one node or edge "
    "more, or one place more in a list; and where a middleware wraps calls, LangChain hands it those of tools that "
    "nobody has, and no longer raises.",
    "refused": "The model calls a tool that the agent does not have: the gate answers the model; LangChain raises.",
}
"""Each reason's key is in the results file."""


def reason_of(test: str, said: str) -> str:
    """The key of the reason, or nothing where none of them is known to be it.

    >>> reason_of("core/test_tools.py::test_unknown_tool_raises_error", "Failed: DID NOT RAISE ValueError")
    'refused'
    """
    refused = "DID NOT RAISE ValueError" in said and ("unknown_tool" in test or "without_handler" in test)
    return "refused" if refused else ""
