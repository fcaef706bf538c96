from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from pegboard.gateways.access_keys import hashed
from pegboard.gateways.dashboard.dashboard_app import HEADERS, NAVIGATION
from pegboard.stores import MemoryActivity
from served import OpenGateway

TOKENS = {name: f"pgb_{name}-9f3b7c-secret" for name in ("viewer", "agent")}
ACCESS: dict[str, Any] = {
    "viewer": {"hash": hashed(TOKENS["viewer"]), "tools": [], "scopes": ["ui:viewer"]},
    "agent": {"hash": hashed(TOKENS["agent"])},
}
PAGES = [f"/ui/{name}" if name else "/ui" for name, _ in NAVIGATION]
EVERY = [*PAGES, "/ui/activity.csv", f"/ui/activity/{'0' * 32}", "/ui/activity/stream"]
BROWSER = {"accept": "text/html"}


def bearer(name: str) -> dict[str, str]:
    return {"authorization": f"Bearer {TOKENS[name]}"}


async def test_on_this_machine_every_page_is_open_and_guarded_by_headers(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway:
        for page in PAGES:
            answer = await gateway.http.get(page)
            assert answer.status_code == 200, (page, answer.text)
            assert {name: answer.headers[name] for name in HEADERS} == HEADERS
            assert "<script>" not in answer.text
            assert " style=" not in answer.text


async def test_another_name_of_this_machine_is_refused(gateway_of: OpenGateway) -> None:
    async with gateway_of() as gateway:
        rebound = await gateway.http.get("/ui", headers={"host": "evil.example"})

    assert rebound.status_code == 421


@pytest.mark.parametrize(
    ("path", "body", "why"),
    [
        ("/ui/sign-in", b"a&" * 100_000, "too long"),
        ("/ui/sign-in", b"a&" * 20_000, "too many fields"),
        ("/ui/try", b"%41&" * 100_000, "too many fields"),
        ("/ui/try", b"a" * 2_000_000, "too long"),
    ],
)
async def test_a_form_of_many_fields_or_of_a_strangers_length_is_not_read(
    gateway_of: OpenGateway, path: str, body: bytes, why: str
) -> None:
    async with gateway_of() as gateway:
        headers = {"content-type": "application/x-www-form-urlencoded"}
        answer = await gateway.http.post(path, content=body, headers=headers)

    assert answer.status_code == 413
    assert why in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    ],
)
async def test_pages_of_other_sites_cannot_use_it(gateway_of: OpenGateway, headers: dict[str, str]) -> None:
    async with gateway_of() as gateway:
        read = await gateway.http.get("/ui/activity", headers=headers)
        posted = await gateway.http.post("/ui/try", data={"query": "time"}, headers=headers)

    assert {read.status_code, posted.status_code} <= {403, 421}


async def test_a_link_from_another_site_may_lead_here_but_no_form(gateway_of: OpenGateway) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    async with gateway_of() as gateway:
        assert (await gateway.http.get("/ui", headers=headers)).status_code == 200
        assert (await gateway.http.post("/ui/try", data={"query": "time"}, headers=headers)).status_code == 403


async def test_with_tokens_nothing_is_shown_without_one(gateway_of: OpenGateway) -> None:
    async with gateway_of(access=ACCESS) as gateway:
        for page in EVERY:
            program = await gateway.http.get(page)
            assert (program.status_code, program.json()["error"]) == (401, "unauthorized"), page
            browser = await gateway.http.get(page, headers=BROWSER)
            assert (browser.status_code, browser.headers["location"]) == (303, "/ui/sign-in")
        assert (await gateway.http.post("/ui/try", data={"query": "time"})).status_code == 401


async def test_a_token_without_the_scope_is_refused(gateway_of: OpenGateway) -> None:
    async with gateway_of(access=ACCESS) as gateway:
        for page in EVERY:
            assert (await gateway.http.get(page, headers=bearer("agent"))).status_code == 403, page
        signed_in = await gateway.http.post("/ui/sign-in", data={"token": TOKENS["agent"]})

    assert (signed_in.status_code, signed_in.headers.get("set-cookie")) == (403, None)


async def test_a_viewer_signs_in_and_out(gateway_of: OpenGateway) -> None:
    async with gateway_of(access=ACCESS) as gateway:
        wrong = await gateway.http.post("/ui/sign-in", data={"token": "pgb_wrong"}, headers=BROWSER)
        answer = await gateway.http.post("/ui/sign-in", data={"token": TOKENS["viewer"]})
        cookie = answer.headers["set-cookie"]
        page = await gateway.http.get("/ui")
        await gateway.http.post("/ui/sign-out")
        gateway.http.cookies.set("pegboard_ui", cookie.partition("=")[2].partition(";")[0], path="/ui")
        after = await gateway.http.get("/ui")

    assert (wrong.status_code, answer.status_code, answer.headers["location"]) == (401, 303, "/ui")
    assert {"HttpOnly", "SameSite=strict", "Path=/ui"} <= {each.strip() for each in cookie.split(";")}
    assert page.status_code == 200
    assert TOKENS["viewer"] not in page.text + cookie
    assert after.status_code == 401


@pytest.mark.parametrize(("scheme", "secure"), [("https", True), ("http", False), (None, False)])
async def test_a_browser_that_has_the_page_over_tls_sends_its_cookie_over_nothing_else(
    gateway_of: OpenGateway, scheme: str | None, secure: bool
) -> None:
    async with gateway_of(access=ACCESS) as gateway:
        origin = {"origin": f"{scheme}://{gateway.http.base_url.netloc.decode()}"} if scheme else {}
        answer = await gateway.http.post("/ui/sign-in", data={"token": TOKENS["viewer"]}, headers=origin)

    assert ("Secure" in {each.strip() for each in answer.headers["set-cookie"].split(";")}) is secure


async def test_a_viewer_may_look_with_a_header_and_call_no_tool(gateway_of: OpenGateway) -> None:
    async with gateway_of(access=ACCESS) as gateway:
        for page in PAGES:
            assert (await gateway.http.get(page, headers=bearer("viewer"))).status_code == 200, page


async def test_a_token_that_was_removed_ends_the_session(gateway_of: OpenGateway) -> None:
    async with gateway_of(access=ACCESS) as gateway:
        await gateway.http.post("/ui/sign-in", data={"token": TOKENS["viewer"]})
        access = gateway.server._front._dashboard._access._host.access  # type: ignore[attr-defined, union-attr]
        access._holders.pop(hashed(TOKENS["viewer"]))

        assert (await gateway.http.get("/ui")).status_code == 401


async def test_a_token_in_an_address_is_refused(gateway_of: OpenGateway) -> None:
    async with gateway_of(access=ACCESS) as gateway:
        answer = await gateway.http.get(f"/ui?access_token={TOKENS['viewer']}")

    assert answer.status_code == 400


async def test_a_gateway_behind_another_name_has_no_dashboard_without_tokens(gateway_of: OpenGateway) -> None:
    async with gateway_of(allowed_hosts=["board.example"]) as gateway:
        answer = await gateway.http.get("/ui", headers={"host": "board.example"})

    assert (answer.status_code, answer.json()["error"]) == (403, "dashboard_closed")


@pytest.mark.parametrize(
    "path",
    [
        "/ui/static/../../../../pyproject.toml",
        "/ui/static/%2e%2e/dashboard_app.py",
        "/ui/static/..%2fpage_templates.py",
        "/ui/static/style.css/live.js",
        "/ui/activity/../../../etc/passwd",
        "/ui/activity/..%2f..%2fetc%2fpasswd",
        "/ui/nothing",
    ],
)
async def test_no_path_leads_to_files(gateway_of: OpenGateway, path: str) -> None:
    async with gateway_of() as gateway:
        parts = urlsplit(str(gateway.http.base_url))
        raw = httpx2.URL(scheme="http", host=parts.hostname, port=parts.port, raw_path=path.encode())
        answer = await gateway.http.get(raw)

    assert answer.status_code == 404
    assert "import" not in answer.text
    assert "root:" not in answer.text


async def test_it_can_be_turned_off(gateway_of: OpenGateway) -> None:
    async with gateway_of(dashboard=False) as gateway:
        assert (await gateway.http.get("/ui")).status_code == 404


async def test_without_activity_the_other_pages_work(gateway_of: OpenGateway) -> None:
    async with gateway_of(activity={"keep": "off"}) as gateway:
        overview = await gateway.http.get("/ui")
        tools = await gateway.http.get("/ui/tools")
        assert (await gateway.http.get("/ui/activity.csv")).status_code == 404

    assert "No activity is kept here" in overview.text
    assert tools.status_code == 200


async def test_nothing_is_changed_by_looking(gateway_of: OpenGateway, week: MemoryActivity) -> None:
    before = dict(week._entries)
    async with gateway_of(parts={"activity": week}) as gateway:
        for page in PAGES:
            await gateway.http.get(page)
        for method in ("PUT", "DELETE", "PATCH"):
            assert (await gateway.http.request(method, "/ui/activity")).status_code == 405
        assert (await gateway.http.post("/ui/activity", data={})).status_code == 405

    assert week._entries == before
