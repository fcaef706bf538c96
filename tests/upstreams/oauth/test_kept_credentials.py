"""What one request writes about a sign-in undoes nothing that a renewal or another process has written meanwhile."""

from __future__ import annotations

import asyncio
import errno
import gc
import threading
import weakref
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import httpx2
import pytest
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from pegboard.apps.cli import logout
from pegboard.errors import PegboardError
from pegboard.settings import Settings
from pegboard.settings.oauth_settings import OAuthSettings
from pegboard.settings.server_spec import ServerSpec
from pegboard.testing import FakeClock
from pegboard.upstreams.oauth import bearer_auth, credential_store, oauth_login, token_requests
from pegboard.upstreams.oauth.bearer_auth import BearerAuth
from pegboard.upstreams.oauth.challenges import TokenNotRenewed
from pegboard.upstreams.oauth.credential_store import CredentialStore
from pegboard.upstreams.oauth.credentials import CredentialKey, OAuthCredentials
from pegboard.upstreams.oauth.sign_ins import SignIns
from pegboard.upstreams.oauth.token_requests import SignInEnded
from signers import Signer

URL = "https://signed.example/mcp"
LIFETIME = 3600.0
MORE = {"www-authenticate": 'Bearer error="insufficient_scope", scope="write"'}

Flow = AsyncGenerator[httpx2.Request, httpx2.Response]


def credentials(number: int, clock: FakeClock) -> OAuthCredentials:
    """Those of the sign-in, or of the renewal with this number."""
    return OAuthCredentials(
        server="signed",
        url=URL,
        tokens=OAuthToken(access_token=f"A{number}", refresh_token=f"R{number}", scope="read"),
        client=OAuthClientInformationFull(client_id="us", redirect_uris=None),
        obtained_at=clock.time(),
        expires_at=clock.time() + LIFETIME,
    )


@pytest.fixture
def store(tmp_path: Path) -> CredentialStore:
    return CredentialStore(tmp_path, key_file=tmp_path / "user" / "credentials.key", place="file")


@pytest.fixture
def auth(store: CredentialStore, clock: FakeClock) -> BearerAuth:
    """Signed in, with the tokens A1 and R1."""
    first = credentials(1, clock)
    store.write(first)
    return BearerAuth(first.key, store, clock, OAuthSettings())


async def begun(auth: BearerAuth) -> tuple[Flow, httpx2.Request]:
    """A request that is on its way."""
    flow = auth.async_auth_flow(httpx2.Request("POST", URL))
    return flow, await anext(flow)


async def answered(flow: Flow, response: httpx2.Response) -> None:
    with pytest.raises(StopAsyncIteration):
        await flow.asend(response)


def answering(answer: httpx2.Response) -> Callable[..., httpx2.AsyncClient]:
    """In place of `guarded_client`, for an authorization server that always answers so."""
    return lambda *_of, **_options: httpx2.AsyncClient(transport=httpx2.MockTransport(lambda request: answer))


@pytest.mark.parametrize("given_up", [False, True], ids=["both wait", "the first gives up"])
async def test_a_request_that_comes_while_another_reads_the_credentials_waits_for_them(
    auth: BearerAuth, store: CredentialStore, monkeypatch: pytest.MonkeyPatch, given_up: bool
) -> None:
    """As after a start, or when somebody has just signed in: without them it would be refused."""
    reading, go_on, read = threading.Event(), threading.Event(), store.read

    def slow(key: CredentialKey) -> OAuthCredentials | None:
        reading.set()
        go_on.wait(60)
        return read(key)

    monkeypatch.setattr(store, "read", slow)
    first = asyncio.create_task(begun(auth))
    await asyncio.to_thread(reading.wait, 60)
    second = asyncio.create_task(begun(auth))
    await asyncio.sleep(0)
    if given_up:
        first.cancel()
        await asyncio.wait([first])
    go_on.set()
    _, request = await second
    assert request.headers.get("Authorization") == "Bearer A1"
    if not given_up:
        assert (await first)[1].headers["Authorization"] == "Bearer A1"


async def test_a_server_that_wants_more_during_a_renewal_does_not_bring_the_old_tokens_back(
    auth: BearerAuth, store: CredentialStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def renewed(_old: OAuthCredentials, **_options: object) -> OAuthCredentials:
        asked.set()
        await go_on.wait()
        return credentials(2, clock)

    monkeypatch.setattr(bearer_auth, "renewed", renewed)
    refused, _ = await begun(auth)
    clock.advance(LIFETIME - 1)
    renewing = asyncio.create_task(begun(auth))
    await asked.wait()
    wanting = asyncio.create_task(answered(refused, httpx2.Response(403, headers=MORE)))
    await asyncio.sleep(0)
    go_on.set()
    _, request = await renewing
    await wanting

    kept = store.read(credentials(1, clock).key)
    assert request.headers["Authorization"] == "Bearer A2"
    assert kept is not None
    assert (kept.tokens.refresh_token, kept.wanted) == ("R2", ("write",))


async def test_requests_use_a_token_that_holds_while_another_one_renews_it(
    auth: BearerAuth, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def renewed(_old: OAuthCredentials, **_options: object) -> OAuthCredentials:
        asked.set()
        await go_on.wait()
        return credentials(2, clock)

    monkeypatch.setattr(bearer_auth, "renewed", renewed)
    await begun(auth)
    clock.advance(LIFETIME - 2)
    renewing = asyncio.create_task(begun(auth))
    await asked.wait()

    _, meanwhile = await asyncio.wait_for(begun(auth), 60)
    clock.advance(2)
    late = asyncio.create_task(begun(auth))
    await asyncio.sleep(0)
    go_on.set()
    assert meanwhile.headers["Authorization"] == "Bearer A1"
    assert [(await each)[1].headers["Authorization"] for each in (renewing, late)] == ["Bearer A2", "Bearer A2"]


async def test_a_server_that_wants_more_does_not_bring_back_what_another_process_has_renewed(
    auth: BearerAuth, store: CredentialStore, clock: FakeClock
) -> None:
    refused, _ = await begun(auth)
    store.write(credentials(2, clock))
    await answered(refused, httpx2.Response(403, headers=MORE))
    _, request = await begun(auth)

    kept = store.read(credentials(1, clock).key)
    assert request.headers["Authorization"] == "Bearer A2"
    assert kept is not None
    assert (kept.tokens.refresh_token, kept.wanted) == ("R2", ("write",))


async def test_a_server_that_wants_more_does_not_bring_back_a_sign_in_that_was_removed(
    auth: BearerAuth, store: CredentialStore, clock: FakeClock
) -> None:
    refused, _ = await begun(auth)
    store.delete(credentials(1, clock).key)
    await answered(refused, httpx2.Response(403, headers=MORE))

    assert store.read(credentials(1, clock).key) is None


async def test_a_refused_renewal_does_not_end_a_sign_in_of_meanwhile(
    auth: BearerAuth, store: CredentialStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def renewed(_old: OAuthCredentials, **_options: object) -> OAuthCredentials:
        store.write(credentials(2, clock))
        raise SignInEnded("The sign-in has ended or was revoked.")

    monkeypatch.setattr(bearer_auth, "renewed", renewed)
    clock.advance(LIFETIME - 1)
    _, request = await begun(auth)

    kept = store.read(credentials(1, clock).key)
    assert request.headers["Authorization"] == "Bearer A2"
    assert kept is not None
    assert (kept.tokens.refresh_token, kept.ended) == ("R2", False)


async def test_a_token_that_cannot_be_renewed_is_tried_again_until_its_end(
    auth: BearerAuth, store: CredentialStore, clock: FakeClock
) -> None:
    """A server that cannot check tokens for a moment answers 401, too."""
    first = credentials(1, clock)
    alone = first.model_copy(update={"tokens": first.tokens.model_copy(update={"refresh_token": None})})
    store.write(alone)
    refused, _ = await begun(auth)
    await answered(refused, httpx2.Response(401))

    clock.advance(LIFETIME - 1)
    _, request = await begun(auth)
    assert request.headers["Authorization"] == "Bearer A1"
    assert store.read(first.key) == alone
    clock.advance(1)
    _, request = await begun(auth)
    assert "Authorization" not in request.headers
    assert store.all()[0].ended


async def test_a_token_that_cannot_be_renewed_costs_no_reads_before_its_end(
    auth: BearerAuth, store: CredentialStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = credentials(1, clock)
    store.write(first.model_copy(update={"tokens": first.tokens.model_copy(update={"refresh_token": None})}))
    await begun(auth)
    reads: list[CredentialKey] = []
    monkeypatch.setattr(store, "read", reads.append)

    clock.advance(LIFETIME - 1)
    _, request = await begun(auth)

    assert request.headers["Authorization"] == "Bearer A1"
    assert not reads


@pytest.mark.parametrize(
    ("answer", "ends"),
    [
        (httpx2.Response(400, json={"error": "invalid_grant"}), True),
        (httpx2.Response(400, html='{"error": "invalid_grant"}'), True),
        (httpx2.Response(401, text=""), True),
        (httpx2.Response(401, json=["invalid_grant"]), True),
        (httpx2.Response(200, json={"error": "bad_refresh_token", "error_description": "…"}), True),
        (httpx2.Response(200, json={"ok": False, "error": "invalid_refresh_token"}), True),
        (httpx2.Response(200, json={"ok": False, "error": "ratelimited"}), False),
        (httpx2.Response(200, json={"error": "client request timed out"}), False),
        (httpx2.Response(400, json={"error": "temporarily_unavailable"}), False),
        (httpx2.Response(400, html="<h1>Bad request</h1>"), False),
        (httpx2.Response(401, html="<h1>Sign in to the proxy</h1>"), False),
        (httpx2.Response(400, content=b"<p>", headers={"Content-Type": "Text/HTML"}), False),
        (httpx2.Response(503, json={"error": "invalid_grant"}), False),
    ],
)
async def test_a_sign_in_ends_where_the_authorization_server_says_so_and_not_where_a_proxy_fails(
    auth: BearerAuth,
    store: CredentialStore,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    answer: httpx2.Response,
    ends: bool,
) -> None:
    monkeypatch.setattr(token_requests, "guarded_client", answering(answer))
    clock.advance(LIFETIME - 1)
    _, request = await begun(auth)

    assert request.headers.get("Authorization") == (None if ends else "Bearer A1")
    assert store.all()[0].ended is ends


async def test_tokens_are_taken_whatever_error_stands_beside_them(
    auth: BearerAuth, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tokens before may hold no longer."""
    tokens = {"access_token": "A2", "token_type": "Bearer", "refresh_token": "R2", "error": "grant"}
    monkeypatch.setattr(token_requests, "guarded_client", answering(httpx2.Response(200, json=tokens)))
    clock.advance(LIFETIME - 1)
    _, request = await begun(auth)

    assert request.headers["Authorization"] == "Bearer A2"


async def test_what_a_server_wanted_is_kept_by_a_renewal_that_knows_nothing_of_it(
    auth: BearerAuth, store: CredentialStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def renewed(old: OAuthCredentials, **_options: object) -> OAuthCredentials:
        return old.model_copy(update={"tokens": credentials(2, clock).tokens})

    monkeypatch.setattr(bearer_auth, "renewed", renewed)
    waiting, _ = await begun(auth)
    first = store.read(credentials(1, clock).key)
    assert first is not None
    store.write(first.model_copy(update={"wanted": ("write",)}))
    assert (await waiting.asend(httpx2.Response(401))).headers["Authorization"] == "Bearer A2"
    await answered(waiting, httpx2.Response(200))

    kept = store.read(first.key)
    assert kept is not None
    assert (kept.tokens.refresh_token, kept.wanted) == ("R2", ("write",))


async def test_tokens_that_cannot_be_stored_are_used_and_renewed_all_the_same(
    auth: BearerAuth, store: CredentialStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str | None] = []
    write = store.write

    async def renewed(old: OAuthCredentials, **_options: object) -> OAuthCredentials:
        shown.append(old.tokens.refresh_token)
        return credentials(len(shown) + 1, clock)

    def full(_credentials: OAuthCredentials) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(bearer_auth, "renewed", renewed)
    monkeypatch.setattr(store, "write", full)
    clock.advance(LIFETIME - 1)
    _, request = await begun(auth)
    assert request.headers["Authorization"] == "Bearer A2"

    monkeypatch.setattr(store, "write", write)
    clock.advance(LIFETIME - 1)
    _, request = await begun(auth)
    kept = store.read(credentials(1, clock).key)
    assert request.headers["Authorization"] == "Bearer A3"
    assert shown == ["R1", "R2"]
    assert kept is not None
    assert kept.tokens.refresh_token == "R3"


async def test_tokens_that_could_not_be_read_are_read_later(
    auth: BearerAuth,
    store: CredentialStore,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A gateway that starts with the session of its user starts before the keychain is unlocked."""
    asked, read = [], store.read

    def locked(key: CredentialKey) -> None:
        asked.append(key)
        raise PegboardError("The keychain cannot be read (KeyringLocked).")

    async def token() -> str | None:
        clock.advance(bearer_auth.LOOK_SECONDS)
        _, request = await begun(auth)
        return request.headers.get("Authorization")

    monkeypatch.setattr(store, "read", locked)
    assert [await token(), await token()] == [None, None]
    clock.advance(bearer_auth.RETRY_SECONDS)
    assert await token() is None
    assert len(asked) == 2, "it is not asked at each request"
    monkeypatch.setattr(store, "read", read)
    clock.advance(bearer_auth.RETRY_SECONDS)
    assert await token() == "Bearer A1"
    assert caplog.text.count("KeyringLocked") == 1


async def test_a_prompt_that_was_open_for_long_is_not_shown_again_at_once(
    auth: BearerAuth, store: CredentialStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def dismissed(key: CredentialKey) -> None:
        asked.append(key)
        clock.advance(bearer_auth.RETRY_SECONDS + 10)
        raise PegboardError("The keychain cannot be read (KeyringLocked).")

    monkeypatch.setattr(store, "read", dismissed)
    await begun(auth)
    clock.advance(bearer_auth.LOOK_SECONDS)
    await begun(auth)

    assert len(asked) == 1


async def test_a_lock_that_cannot_be_written_ends_no_request_while_the_token_holds(
    auth: BearerAuth, store: CredentialStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(_key: CredentialKey) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(store, "lock", read_only)
    clock.advance(LIFETIME - 1)
    _, request = await begun(auth)
    assert request.headers["Authorization"] == "Bearer A1"
    clock.advance(2)
    with pytest.raises(TokenNotRenewed):
        await begun(auth)


def test_connections_share_their_tokens_until_the_servers_address_changes(
    store: CredentialStore, clock: FakeClock
) -> None:
    sign_ins = SignIns(Settings(), clock)
    sign_ins._store = store
    before, after = (ServerSpec(name="signed", url=f"{URL}?version={number}") for number in range(2))
    auth, anns = sign_ins.auth(before), sign_ins.auth(before, "ann")
    assert auth is sign_ins.auth(before) is not anns

    gone = weakref.ref(auth)
    del auth
    assert sign_ins.auth(after) is sign_ins.auth(after)
    gc.collect()
    assert gone() is None
    assert sign_ins.auth(before, "ann") is anns


@pytest.mark.parametrize("place", ["folder", "key"])
async def test_a_sign_in_whose_tokens_cannot_be_kept_says_so(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    async def signed_in(*_given: object, **_options: object) -> OAuthCredentials:
        return credentials(1, clock)

    (tmp_path / "file").write_text("")
    folder, key_file = (tmp_path / "file" if place == each else tmp_path / each for each in ("folder", "key"))
    monkeypatch.setattr(oauth_login, "login", signed_in)
    sign_ins = SignIns(Settings(state_dir=folder), clock)
    sign_ins._store = CredentialStore(folder, key_file=key_file / "credentials.key", place="file")

    with pytest.raises(PegboardError, match=r"'signed' succeeded, but its tokens cannot be kept: .*file"):
        await sign_ins.sign_in(ServerSpec(name="signed", url=URL), Signer().person())


@pytest.mark.parametrize("locked", [True, False], ids=["a sign-in", "a writer without the lock"])
async def test_a_renewal_does_not_replace_a_sign_in_of_meanwhile(
    auth: BearerAuth, store: CredentialStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, locked: bool
) -> None:
    sign_ins, signing = SignIns(Settings(), clock), []
    sign_ins._store = store

    async def signed_in(*_given: object, **_options: object) -> OAuthCredentials:
        return credentials(3, clock)

    async def renewed(_old: OAuthCredentials, **_options: object) -> OAuthCredentials:
        if locked:
            signing.append(asyncio.create_task(sign_ins.sign_in(ServerSpec(name="signed", url=URL), Signer().person())))
            await asyncio.sleep(0.2)
        else:
            store.write(credentials(3, clock))
        return credentials(2, clock)

    monkeypatch.setattr(oauth_login, "login", signed_in)
    monkeypatch.setattr(bearer_auth, "renewed", renewed)
    clock.advance(LIFETIME - 1)
    await begun(auth)
    await asyncio.gather(*signing)

    kept = store.read(credentials(1, clock).key)
    assert kept is not None
    assert kept.tokens.refresh_token == "R3"


@pytest.mark.parametrize("locked", [True, False], ids=["a logout", "a writer without the lock"])
async def test_a_renewal_does_not_bring_back_a_sign_in_that_was_removed_meanwhile(
    auth: BearerAuth, store: CredentialStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, locked: bool
) -> None:
    removing: list[asyncio.Task[bool]] = []

    async def renewed(_old: OAuthCredentials, **_options: object) -> OAuthCredentials:
        if locked:
            removing.append(asyncio.create_task(asyncio.to_thread(removed, store)))
            await asyncio.sleep(0.2)
        else:
            store.delete(credentials(1, clock).key)
        return credentials(2, clock)

    monkeypatch.setattr(bearer_auth, "renewed", renewed)
    clock.advance(LIFETIME - 1)
    await begun(auth)
    await asyncio.gather(*removing)

    assert store.read(credentials(1, clock).key) is None


def removed(store: CredentialStore) -> bool:
    """By `pegboard logout`."""
    return asyncio.run(logout._end(store, store.all()[0], private=False))


async def test_tokens_are_gone_from_here_and_their_lock_is_free_before_they_are_revoked(
    auth: BearerAuth, store: CredentialStore, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the authorization server says, and however long it takes."""
    key = credentials(1, clock).key

    async def revoke(given: OAuthCredentials, *, private: bool) -> bool:
        assert given.tokens.access_token == "A1"
        assert store.read(key) is None
        monkeypatch.setattr(credential_store, "LOCK_SECONDS", 0)
        store.keep(credentials(2, clock))
        raise httpx2.ConnectError("gone")

    monkeypatch.setattr(token_requests, "revoke", revoke)
    with pytest.raises(httpx2.ConnectError):
        await logout._end(store, store.all()[0], private=False)
    kept = store.read(key)
    assert kept is not None
    assert kept.tokens.access_token == "A2"
