from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.model import Message, Part, Role, Turn
from pegboard.retrieval.query import (
    EDGE,
    OBSERVED,
    QUERIES,
    QueryKind,
    conversation,
    elliptical,
    last_message,
    last_user,
    observation,
)


def said(role: Role, *parts: str | Part) -> Message:
    return Message(role=role, parts=tuple(Part(text=part) if isinstance(part, str) else part for part in parts))


def turn(*messages: Message) -> Turn:
    return Turn(messages=messages)


IMAGE = Part(kind="image")
ASK = "Create an issue about the broken login page in project Atlas"


@pytest.mark.requirement("P1")
def test_a_tools_result_at_the_end_leaves_the_users_intent_as_the_query() -> None:
    loop = turn(
        said("user", ASK),
        said("assistant", Part(kind="tool_call", tool="list_projects")),
        said("tool", Part(kind="tool_result", text="Atlas, Borealis: weather balloons"), "Atlas"),
    )

    assert conversation(loop) == ASK
    assert last_user(loop) == ASK


@pytest.mark.requirement("P1")
def test_a_long_agent_loop_never_drifts_from_the_users_intent() -> None:
    steps = [
        message
        for step in range(30)
        for message in (
            said("assistant", f"Step {step}", Part(kind="tool_call", tool="x")),
            said("tool", f"Result {step} about something else entirely"),
        )
    ]

    assert conversation(turn(said("user", ASK), *steps)) == ASK


@pytest.mark.requirement("P2")
def test_the_text_parts_of_a_message_are_the_query() -> None:
    assert conversation(turn(said("user", "Which plant is in this picture", IMAGE, "and how do I water it?"))) == (
        "Which plant is in this picture\nand how do I water it?"
    )


@pytest.mark.requirement("P2")
@pytest.mark.parametrize("kind", ["last_user", "conversation"])
def test_an_image_only_message_falls_back_to_earlier_text(kind: str) -> None:
    asked = turn(said("user", ASK), said("assistant", "Show me."), said("user", IMAGE))

    assert QUERIES[kind](asked) == ASK  # type: ignore[index]


@pytest.mark.requirement("P3")
@pytest.mark.parametrize("follow_up", ["now do it", "and in London?", "yes please", "the second one", "ok", "und nun?"])
def test_a_short_follow_up_keeps_what_it_follows(follow_up: str) -> None:
    query = conversation(turn(said("user", ASK), said("assistant", "Shall I?"), said("user", follow_up)))

    assert query == f"{ASK}\n{follow_up}"


@pytest.mark.requirement("P3")
def test_several_short_follow_ups_reach_back_to_the_intent() -> None:
    chat = turn(
        said("user", "What is the weather forecast for Bergen this weekend?"),
        said("user", "and Oslo?"),
        said("user", "ok"),
    )

    assert conversation(chat) == "What is the weather forecast for Bergen this weekend?\nand Oslo?\nok"


@pytest.mark.requirement("P3")
def test_a_new_intent_leaves_the_old_one_behind() -> None:
    chat = turn(said("user", "What is the weather forecast for Bergen this weekend?"), said("user", ASK))

    assert conversation(chat) == ASK


@pytest.mark.requirement("P4")
@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ((), ""),
        ((said("system", "You book repairs."),), "You book repairs."),
        ((said("assistant", "Sure, the forecast is"),), "Sure, the forecast is"),
        ((said("system", "You book repairs."), said("assistant", "Here:")), "You book repairs.\nHere:"),
        ((said("user", IMAGE),), ""),
        ((said("user", "  \n"),), ""),
        ((said("tool", "just a result"),), ""),
    ],
)
def test_without_a_users_text_there_is_whatever_else_was_said(messages: tuple[Message, ...], expected: str) -> None:
    assert conversation(turn(*messages)).strip() == expected


@pytest.mark.requirement("P4")
@given(
    messages=st.lists(
        st.builds(
            Message,
            role=st.sampled_from(["system", "user", "assistant", "tool"]),
            parts=st.lists(
                st.builds(Part, kind=st.sampled_from(["text", "image", "tool_result"]), text=st.text(max_size=20)),
                max_size=3,
            ).map(tuple),
        ),
        max_size=5,
    )
)
def test_no_conversation_breaks_the_query(messages: list[Message]) -> None:
    assert all(isinstance(query(turn(*messages)), str) for query in QUERIES.values())


@pytest.mark.requirement("P6")
@pytest.mark.parametrize("ask_stands", ["first", "last"])
def test_the_ask_survives_a_very_long_paste(ask_stands: str) -> None:
    log = "2026-11-21 12:00:00 DEBUG worker-7 heartbeat\n" * 3000
    text = f"{ASK}\n{log}" if ask_stands == "first" else f"{log}\n{ASK}"

    query = conversation(turn(said("user", text)))

    assert ASK in query
    assert len(query) <= 2 * EDGE + 1


@pytest.mark.requirement("P6")
@given(blocks=st.lists(st.integers(0, 20_000), min_size=1, max_size=4), role=st.sampled_from(["user", "system"]))
def test_the_query_of_a_conversation_is_bounded_whatever_was_pasted(blocks: list[int], role: Role) -> None:
    assert len(conversation(turn(*(said(role, "log " * size) for size in blocks)))) <= 2 * EDGE + 1


@pytest.mark.requirement("P7")
def test_an_ask_in_a_script_without_blanks_stands_on_its_own() -> None:
    assert not elliptical("请帮我查一下明天北京的天气预报")
    assert elliptical("好的")


@pytest.mark.requirement("000.query")
def test_tool_attention_asks_with_the_current_user_message() -> None:
    assert last_user(turn(said("user", ASK), said("assistant", "Done."), said("user", "thanks"))) == "thanks"


@pytest.mark.requirement("003.query")
def test_the_semantic_filter_asks_with_the_last_message_whoever_wrote_it() -> None:
    assert last_message(turn(said("user", ASK), said("assistant", "Which project?"))) == "Which project?"
    assert last_message(turn()) == ""


@pytest.mark.parametrize("kind", QUERIES)
def test_of_a_long_message_only_its_start_and_its_end_are_the_query(kind: QueryKind) -> None:
    query = QUERIES[kind](turn(said("user", f"{ASK}\n{'a log ' * 10_000}Thank you")))

    assert query.startswith(ASK)
    assert query.endswith("Thank you")
    assert len(query) <= 2 * EDGE + 1


def test_an_observation_is_matched_beside_the_intent_and_never_instead_of_it() -> None:
    result = said("tool", Part(kind="tool_result", text="Project Atlas is archived. " * 200))
    loop = turn(said("user", ASK), said("assistant", Part(kind="tool_call", tool="get_project")), result)

    assert observation(loop).startswith(f"{ASK}\nProject Atlas is archived.")
    assert len(observation(loop)) <= len(ASK) + 1 + OBSERVED


@pytest.mark.parametrize("messages", [[said("user", ASK)], [said("user", ASK), said("tool", IMAGE)], []])
def test_without_an_observation_the_intent_is_the_query(messages: list[Message]) -> None:
    assert observation(turn(*messages)) == conversation(turn(*messages))
