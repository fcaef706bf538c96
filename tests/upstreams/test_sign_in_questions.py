"""A sign-in that callers share is known as long as it is under way."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import mcp_types as types
import pytest

from pegboard.errors import PegboardError
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams import sign_in_questions
from pegboard.upstreams.oauth.person import Person
from pegboard.upstreams.request_origin import ORIGIN
from pegboard.upstreams.sign_in_questions import SignInQuestions
from processes import until

SPEC = ServerSpec(name="signed", url="https://signed.example/mcp")
CAPABILITIES = types.ClientCapabilities(elicitation=types.ElicitationCapability(url=types.UrlElicitationCapability()))


class Signed:
    """Sign-ins that end when the test says how: an empty text is success."""

    local = False

    def __init__(self) -> None:
        self.returns = SimpleNamespace(begun=lambda _server: None, end=lambda _waiting: None)
        self.begun = 0
        self.ends: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def sign_in(self, spec: ServerSpec, person: Person, *, user: str = "") -> str:
        self.begun += 1
        await person.open_url(f"https://signed.example/{user}")
        if why := await asyncio.shield(self.ends):
            raise PegboardError(why)
        return spec.name


class Client:
    """A client whose person opens the page."""

    capabilities, takes_requests = CAPABILITIES, False

    async def ask(self, _request: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept")


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> WeakSet[Any]:
    """The sign-ins that are still in memory."""
    found = WeakSet[Any]()

    class Noted(sign_in_questions._SignIn):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            found.add(self)

    monkeypatch.setattr(sign_in_questions, "_SignIn", Noted)
    return found


@pytest.fixture(autouse=True)
def client() -> Iterator[None]:
    token = ORIGIN.set(Client())  # type: ignore[arg-type]
    yield
    ORIGIN.reset(token)


@pytest.mark.parametrize("why", ["", "refused"], ids=["signed in", "refused"])
async def test_a_sign_in_that_has_ended_is_kept_for_nobody(
    kept: WeakSet[Any], caplog: pytest.LogCaptureFixture, why: str
) -> None:
    caplog.set_level(logging.CRITICAL, "pegboard")  # what is logged has the error
    signed = Signed()
    questions = SignInQuestions(signed)  # type: ignore[arg-type]
    asked = [asyncio.create_task(questions.ask(SPEC, user)) for user in ("ann", "ben", "ann")]
    await until(lambda: signed.begun == 2)
    assert len(kept) == 2, "callers for one user share theirs"

    signed.ends.set_result(why)
    assert await asyncio.gather(*asked) == [not why] * 3
    asked.clear()
    gc.collect()
    assert len(kept) == 0

    signed.ends = asyncio.get_running_loop().create_future()
    again = asyncio.create_task(questions.ask(SPEC, "ann"))
    await until(lambda: signed.begun == 3)
    questions.close()
    with pytest.raises(asyncio.CancelledError):
        await again
