"""Every case that can be said through an SDK, through each: to a provider as strict as the documentation.

The SDKs are a dependency group of their own (`make test` installs it). The gateway is real, on a socket, with the
encoder of the package.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from model_bodies import CODECS, PATH
from model_doors import Gateway
from sdk_drivers import DRIVERS, JOBS, RENEW, Ask, Called, Driver, Said

pytest.importorskip("langchain_google_genai", reason="pip install --group sdks")


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> Driver:
    return DRIVERS[request.param]


def arrived(gateway: Gateway, driver: Driver) -> list[str]:
    """The tools that the provider was offered, in their order; it had nothing to complain about."""
    assert gateway.mock.refused == []
    request = CODECS[driver.format].parse(gateway.mock.last.body, PATH)
    return [tool.name for tool in request.tools if tool.name]


def kept(
    gateway: Gateway,
    driver: Driver,
    *conversation: Said | Called | str,
    tools: Mapping[str, str] = JOBS,
    choice: str | None = None,
    model: str = "some-model",
) -> list[str]:
    """The tools that arrive of a request: how many, the answer's headers say too."""
    said = [Said(text=each) if isinstance(each, str) else each for each in conversation]
    driver.ask(gateway.url, Ask(conversation=said, tools=tools, choice=choice, model=model))
    names = arrived(gateway, driver)
    assert gateway.said["x-pegboard-tools"] == f"{len(names)}/{len(tools)}"
    assert gateway.said["x-pegboard-filter"] == ("filtered" if len(names) < len(tools) else "unchanged")
    return names


@pytest.mark.requirement("P11", "P18", "P22")
def test_a_request_arrives_with_the_tools_it_needs_in_their_order_and_the_answer_is_understood(
    gateway: Gateway, driver: Driver
) -> None:
    heard = driver.ask(gateway.url, Ask(conversation=[Said(text=RENEW)], tools=JOBS, model="a-model-of-its-own"))

    names = arrived(gateway, driver)
    assert "renew_loan" in names
    assert names == [name for name in JOBS if name in names]
    assert len(names) == 2
    assert heard.called == tuple(names)
    assert gateway.said["x-pegboard-filter"] == "filtered"
    assert gateway.said["x-pegboard-tools"] == "2/10"
    before, after = map(int, reversed(gateway.said["x-pegboard-tokens"].split("/")))
    assert 0 < after < before


@pytest.mark.requirement("P1", "P13")
def test_after_a_tools_result_the_users_intent_still_decides_and_the_tool_stays(
    gateway: Gateway, driver: Driver
) -> None:
    result = "Send an email; play a song on the speakers; convert an amount of money into another currency."

    names = kept(gateway, driver, RENEW, Called(tool="water_plants", result=result))

    assert {"renew_loan", "water_plants"} <= set(names)
    assert not {"send_email", "play_song"} & set(names)


@pytest.mark.requirement("P2")
def test_of_a_message_in_parts_the_text_counts_and_an_image_alone_falls_back_to_what_was_said(
    gateway: Gateway, driver: Driver
) -> None:
    assert "renew_loan" in kept(gateway, driver, Said(text=RENEW, image=True))
    said = (RENEW, Said(text="Which one is it?", role="assistant"), Said(text="", image=True))
    assert "renew_loan" in kept(gateway, driver, *said)


@pytest.mark.requirement("P3")
def test_a_short_follow_up_keeps_the_tools_of_what_it_follows(gateway: Gateway, driver: Driver) -> None:
    said = ("What is the weather of the coming days in Bergen?", Said(text="Rain.", role="assistant"), "and in Oslo?")

    assert "weather_forecast" in kept(gateway, driver, *said)


@pytest.mark.requirement("P4")
def test_a_request_whose_user_says_nothing_passes_or_is_filtered_by_what_else_is_said(
    gateway: Gateway, driver: Driver
) -> None:
    assert kept(gateway, driver, Said(text="", image=True)) == list(JOBS)
    assert "renew_loan" in kept(gateway, driver, Said(text=RENEW, role="system"), Said(text="", image=True))


@pytest.mark.requirement("P5")
def test_each_of_several_wishes_gets_its_tool(gateway: Gateway, driver: Driver) -> None:
    said = "Extend the due date of my borrowed book, then play a song on the speakers."

    assert kept(gateway, driver, said) == ["renew_loan", "play_song"]


@pytest.mark.requirement("P6", "P24")
@pytest.mark.parametrize("text", ["{ask}\n\n{log}", "{log}\n{ask}"], ids=["before", "after"])
def test_the_ask_beside_a_long_pasted_log_finds_its_tool(gateway: Gateway, driver: Driver, text: str) -> None:
    log = "".join(f"12:{line % 60:02} worker[{line}] INFO handled request in {line % 97} ms\n" for line in range(2500))

    assert "renew_loan" in kept(gateway, driver, text.format(ask=RENEW, log=log))


@pytest.mark.requirement("P7")
def test_any_script_finds_its_tool(gateway: Gateway, driver: Driver) -> None:
    tools = JOBS | {"fanyi": "把一段文字翻译成另一种语言"}

    assert "fanyi" in kept(gateway, driver, "请把这段文字翻译成英文", tools=tools)


@pytest.mark.requirement("P8")
def test_a_forced_tool_arrives_whatever_is_relevant(gateway: Gateway, driver: Driver) -> None:
    assert "play_song" in kept(gateway, driver, RENEW, choice="play_song")


@pytest.mark.requirement("P9")
@pytest.mark.parametrize("model", ["some-model", "picky-or-none"])
def test_where_a_call_is_required_something_to_call_arrives(gateway: Gateway, driver: Driver, model: str) -> None:
    assert kept(gateway, driver, RENEW, choice="required", model=model)


@pytest.mark.requirement("P10", "P12")
def test_without_any_tool_left_nothing_arrives_that_needs_one(gateway: Gateway, driver: Driver) -> None:
    assert kept(gateway, driver, RENEW, choice="auto", model="picky-or-none") == []
    assert not {"tools", "tool_choice", "parallel_tool_calls", "toolConfig"} & gateway.mock.last.json.keys()


@pytest.mark.requirement("P12")
def test_where_nothing_is_relevant_everything_arrives(gateway: Gateway, driver: Driver) -> None:
    assert kept(gateway, driver, RENEW, model="picky-or-all") == list(JOBS)


@pytest.mark.requirement("P14")
def test_while_the_history_holds_calls_some_tool_arrives(gateway: Gateway, driver: Driver) -> None:
    said = ("Water the garden.", Called(tool="water_plants"), RENEW)

    assert kept(gateway, driver, *said, model="picky-or-none") == ["water_plants"]
    others = {name: said for name, said in JOBS.items() if name != "water_plants"}
    assert kept(gateway, driver, *said, tools=others, model="picky-or-none") == list(others)


@pytest.mark.requirement("P16")
def test_tools_that_say_the_same_are_told_apart_by_name(gateway: Gateway, driver: Driver) -> None:
    same = dict.fromkeys(JOBS, "Does it.")

    assert "book_flight" in kept(gateway, driver, "Book a flight to Rome.", tools=same)


@pytest.mark.requirement("P17")
def test_the_same_name_means_what_this_request_says(gateway: Gateway, driver: Driver) -> None:
    for name in ("send_email", "play_song"):
        meaning = JOBS | {"send_email": "Nothing of interest.", "play_song": "Nothing of interest."} | {name: RENEW}
        assert name in kept(gateway, driver, RENEW, tools=meaning)


def test_with_filtering_off_everything_arrives(gateway: Gateway, driver: Driver) -> None:
    driver.ask(gateway.url, Ask(conversation=[Said(text=RENEW)], tools=JOBS, model="off-model"))

    assert arrived(gateway, driver) == list(JOBS)
    assert gateway.said["x-pegboard-filter"] == "off"


def test_a_choice_of_none_arrives_with_tools_to_read_about(gateway: Gateway, driver: Driver) -> None:
    assert kept(gateway, driver, RENEW, choice="none")
