"""Why a test of LangChain's fails with our middleware before the others: what it says, to a reason."""

from __future__ import annotations

from collections.abc import Mapping

ANY = "any"
REASONS: Mapping[str, str] = {
    ANY: "Any middleware with these hooks fails it, one that does nothing too: the agent's graph has one node or edge "
    "more, or one place more in a list.",
    "blocks": "The test calls the agent's sync `invoke` from within an event loop. Sync hooks wait for the board's "
    "thread, and BlockBuster takes that wait for a mistake; `ainvoke` does not wait.",
    "refused": "The model calls a tool that the agent does not have: the gate answers the model; LangChain raises.",
    "summaries": "The system prompt has the summaries of all tools at its end: the test compares its text, or "
    "counts the messages and finds one more.",
    "arguments": "The gate checks arguments against the schema first, and its error has other words.",
    "order": "A selector behind ours is asked for a tool that ours has left out of the turn; put it first.",
}
"""Each reason's key is in the results file."""

BY_NAME: Mapping[str, str] = {
    "test_framework.py::test_create_agent_invoke": "summaries",
    "test_invalid_tool_calls.py::": "summaries",
    "test_create_agent_tool_validation.py::": "arguments",
    "test_tool_selection.py::": "order",
}
"""Tests whose message does not say it: they were read."""


def reason_of(test: str, said: str) -> str:
    """The key of the reason, or nothing where none of them is known to be it.

    >>> reason_of("core/test_framework.py::test_one[False]", "BlockingError: Blocking call to lock.acquire")
    'blocks'
    """
    if "Blocking call to lock.acquire" in said and "[" in test:
        return "blocks"
    if "DID NOT RAISE ValueError" in said and ("unknown_tool" in test or "without_handler" in test):
        return "refused"
    if "All tools. Only those that were given to you" in said:
        return "summaries"
    return next((reason for part, reason in BY_NAME.items() if part in test), "")
