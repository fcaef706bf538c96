"""The SDKs and LangChain with three hundred tools, in every way: to a provider as strict as the documentation.

The model calls the tool that the user means: one that it sees, or through `call_tool`, or after a search. The SDKs
know nothing of that.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mock_providers.scripted import Calls, Says, Seen
from model_doors import Gateway, gateway_beside
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from sdk_drivers import DRIVERS, JOBS, RENEW, Ask, Called, Heard, Said

pytest.importorskip("langchain_google_genai", reason="pip install --group sdks")

MANY = JOBS | {f"unit_{number}": f"Read sensor {number} of engine {number}." for number in range(290)}
HINT = "Do what is the fourth on our list."
"""Says nothing of what the tool does: it is not shown."""
AGAIN = "Please do that again."
WANTED = "renew_loan"
SEARCHES = ("search_tools", "tool_search")
WAYS: dict[str, dict[str, Any]] = {
    "by default": {},
    "picked": {"ways": ["tools"], "way_back": True},
    "call_tool": {"ways": ["call_tool"], "way_back": True},
    "deferred": {"ways": ["defer"]},
}
DEFERRED = {"anthropic"}
"""Formats in which these drivers' tools can be deferred: they have OpenAI keep answers. For `store=False` there is
`test_search_output.py`, with as many."""


def model(seen: Seen) -> Says:
    if seen.answered and seen.answered[-1] in (WANTED, "call_tool") and not _asked_again(seen):
        return Says(text="Done.")
    if WANTED in seen.tools:
        return Says(calls=[Calls(tool=WANTED)])
    if "call_tool" in seen.tools:
        return Says(calls=[Calls(tool="call_tool", arguments={"name": WANTED, "arguments": {}})])
    search = next(name for name in SEARCHES if name in seen.tools)
    return Says(text="Let me look.", calls=[Calls(tool=search, arguments={"query": JOBS[WANTED]})])


def _asked_again(seen: Seen) -> bool:
    return AGAIN in str(seen.body)


CASES = [
    (way, name, said)
    for way in WAYS
    for name, driver in DRIVERS.items()
    for said in (RENEW, HINT)
    if (way != "deferred" or driver.format in DEFERRED) and (way != "by default" or said == RENEW)
]
"""By default there is no way back to what was not shown."""


@pytest.fixture(scope="module")
def door(request: pytest.FixtureRequest) -> Iterator[Gateway]:
    parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    with gateway_beside(parts=parts, policy={"k": 1, **WAYS[request.param]}) as found:
        found.mock.model = model
        yield found


@pytest.mark.requirement("providers.three-hundred-tools")
@pytest.mark.parametrize(
    ("door", "name", "said"),
    CASES,
    indirect=["door"],
    ids=[f"{way}-{name}-{'said' if said == RENEW else 'hinted'}" for way, name, said in CASES],
)
def test_with_three_hundred_tools_the_one_that_is_meant_is_called_and_its_result_is_answered(
    door: Gateway, name: str, said: str
) -> None:
    driver = DRIVERS[name]
    door.mock.refused.clear()
    spoken = "gpt-5.6" if driver.format.startswith("openai") else "some-model"

    def ask(*conversation: Said | Called) -> Heard:
        return driver.ask(door.url, Ask(conversation=conversation, tools=MANY, model=spoken))

    asked = ask(Said(text=said))
    answered = ask(Said(text=said), Called(tool=WANTED))
    again = ask(Said(text=said), Called(tool=WANTED), Said(text="Done.", role="assistant"), Said(text=AGAIN))

    assert door.mock.refused == []
    assert asked.called == (WANTED,)
    assert (answered.text, answered.called) == ("Done.", ())
    assert again.called == (WANTED,)
