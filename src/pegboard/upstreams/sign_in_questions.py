"""Sends the person at a client to the page on which they sign in to a server (MCP 2025-11-25, elicitation)."""

from __future__ import annotations

import asyncio
import logging
from uuid import uuid4

import mcp_types as types

from pegboard.errors import PegboardError
from pegboard.settings.server_spec import ServerSpec
from pegboard.upstreams.oauth.person import PATIENCE, Person
from pegboard.upstreams.oauth.sign_ins import SignIns
from pegboard.upstreams.request_origin import ORIGIN, Origin

LOGGER = logging.getLogger(__name__)

PAGE_SECONDS = 60.0
"""Time in which an authorization server has to be found, and this client registered there."""


class _SignIn:
    """One sign-in that is under way, for all callers that wait for it."""

    def __init__(self, sign_ins: SignIns, spec: ServerSpec, user: str) -> None:
        self.page: asyncio.Future[tuple[str, str]] = asyncio.get_running_loop().create_future()
        self._sign_ins, self._server, self._user = sign_ins, spec.name, user
        self._returns = sign_ins.returns.begun(spec.name) if user else None
        person = Person(open_url=self._open, show_code=self._show, seconds=PATIENCE, returns=self._returns)
        self.task = asyncio.create_task(sign_ins.sign_in(spec, person, user=user))
        self.task.add_done_callback(self._over)

    async def _open(self, url: str) -> None:
        if self._returns is not None:
            name = self._sign_ins.name_of(self._user)
            url = self._sign_ins.returns.page(self._returns, self._server, name, url)
        self.page.set_result((url, ""))

    async def _show(self, url: str, code: str) -> None:
        self.page.set_result((url, code))

    def _over(self, task: asyncio.Task[object]) -> None:
        if self._returns is not None:
            self._sign_ins.returns.end(self._returns)
        error = None if task.cancelled() else task.exception()
        if not self.page.done():
            self.page.set_exception(error or PegboardError("The sign-in was ended."))
            self.page.exception()  # whoever waits for it has the task's


class SignInQuestions:
    """Asks clients to have their person sign in, if all clients are one person on this machine, or for a user.

    Callers that need the same sign-in share it, so that they register no client and open no page each.
    """

    def __init__(self, sign_ins: SignIns) -> None:
        self._sign_ins = sign_ins
        self._under_way: dict[tuple[str, str], _SignIn] = {}

    async def ask(self, spec: ServerSpec, user: str = "") -> bool:
        """Whether the person at the client of this request has signed in to the server of an `expanded` spec."""
        origin = ORIGIN.get()
        if not (self._sign_ins.local or user) or origin is None or not _opens_pages(origin):
            return False
        under_way = self._begun(spec, user)
        try:
            async with asyncio.timeout(PAGE_SECONDS):
                url, code = await asyncio.shield(under_way.page)
            question = _question(spec.name, url, code)
            answer = await origin.ask(types.ElicitRequest(params=question))
            if not isinstance(answer, types.ElicitResult) or answer.action != "accept":
                return under_way.task.done() and _succeeded(under_way.task)
            await asyncio.shield(under_way.task)
            await _say_done(origin, question)
        except (PegboardError, TimeoutError) as error:
            LOGGER.warning("Server %s: the sign-in that a client asked for came to nothing: %s", spec.name, error)
            return False
        return True

    def close(self) -> None:
        for each in self._under_way.values():
            each.task.cancel()

    def _begun(self, spec: ServerSpec, user: str) -> _SignIn:
        key = (spec.name, user)
        found = self._under_way.get(key)
        if found is None or found.task.done():
            begun = found = self._under_way[key] = _SignIn(self._sign_ins, spec, user)
            begun.task.add_done_callback(lambda _: self._ended(key, begun))
        return found

    def _ended(self, key: tuple[str, str], ended: _SignIn) -> None:
        """Forget it; whoever waits for it holds it. Another one may have begun since it was done."""
        if self._under_way.get(key) is ended:
            del self._under_way[key]


def _opens_pages(origin: Origin) -> bool:
    elicitation = origin.capabilities.elicitation
    return elicitation is not None and elicitation.url is not None


def _succeeded(task: asyncio.Task[object]) -> bool:
    return not task.cancelled() and task.exception() is None


async def _say_done(origin: Origin, question: types.ElicitRequestURLParams) -> None:
    """Clients of the handshake era may show it until they hear that it is over."""
    if origin.takes_requests and question.elicitation_id is not None:
        params = types.ElicitCompleteNotificationParams(elicitation_id=question.elicitation_id)
        await origin.tell(types.ElicitCompleteNotification(params=params))


def _question(server: str, url: str, code: str) -> types.ElicitRequestURLParams:
    message = f"Sign in to the server {server!r}, which Pegboard is to use for you."
    message += f" Enter the code {code} there." if code else ""
    return types.ElicitRequestURLParams(message=message, url=url, elicitation_id=uuid4().hex)
