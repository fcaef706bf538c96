from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.retrieval.words import (
    CAMEL,
    FUNCTION_WORDS,
    LONGEST,
    LONGEST_NAME,
    LONGEST_RUN,
    _stemmed,
    raw_words,
    remembered,
    split_identifier,
    stem,
    terms,
)


@pytest.mark.requirement("P7")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("createIssue", ["create", "issue"]),
        ("create_issue", ["create", "issue"]),
        ("create-issue.now", ["create", "issue", "now"]),
        ("HTTPServer", ["http", "server"]),
        ("getHTTPServerURL", ["get", "http", "server", "url"]),
        ("v2", ["v2"]),
        ("list_v2Items", ["list", "v2", "items"]),
        ("CONSTANT_NAME", ["constant", "name"]),
    ],
)
def test_identifiers_are_split(text: str, words: list[str]) -> None:
    assert raw_words(text) == words


@pytest.mark.requirement("P7")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Погода в Осло", ["погода", "в", "осло"]),
        ("καιρός αύριο", ["καιρόσ", "αύριο"]),
        ("الطقس غدا", ["الطقس", "غدا"]),
        ("מזג אוויר", ["מזג", "אוויר"]),
        ("날씨 알려줘", ["날씨", "알려줘"]),
        ("Wetterübersicht", ["wetterübersicht"]),
        ("STRASSE straße", ["strasse", "strasse"]),
        ("天气预报", ["天气", "气预", "预报"]),
        ("書", ["書"]),
        ("東京の天気", ["東京", "京の", "の天", "天気"]),
        ("２０２６年", ["2026", "年"]),
        ("API密钥rotate", ["api", "密钥", "rotate"]),
    ],
)
def test_any_script_gives_words(text: str, words: list[str]) -> None:
    assert raw_words(text) == words


@pytest.mark.requirement("P7")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("मौसम की जानकारी", ["मौसम", "की", "जानकारी"]),
        ("வானிலை அறிக்கை", ["வானிலை", "அறிக்கை"]),
        ("আবহাওয়া", ["আবহাওয়া"]),
        ("e\u0301cole, e\u0301te\u0301", ["école", "été"]),
    ],
)
def test_a_mark_stays_with_its_letter(text: str, words: list[str]) -> None:
    assert raw_words(text) == [word for each in words for word in raw_words(each)]
    assert len(raw_words(text)) == len(words)


@pytest.mark.requirement("P7")
def test_scripts_without_blanks_keep_their_marks() -> None:
    assert "".join(dict.fromkeys("".join(raw_words("พยากรณ์อากาศ")))) == "".join(dict.fromkeys("พยากรณ์อากาศ"))


@pytest.mark.parametrize("text", ["", " \n", "!?…", "___", "❤️ 👍", "\u200d\ufe0f\u0301"])
def test_what_holds_no_word_gives_none(text: str) -> None:
    assert raw_words(text) == terms(text) == []


@pytest.mark.requirement("P7")
@given(text=st.text(max_size=80))
def test_words_are_folded_and_found_again_in_any_text(text: str) -> None:
    words = raw_words(text)

    assert all(word == word.casefold() and not any(map(str.isspace, word)) for word in words)
    assert raw_words(text.upper()) is not None
    assert all(any(map(str.isalnum, word)) for word in words if word.isascii())


@given(text=st.text(max_size=80))
def test_every_letter_and_digit_of_a_plain_text_is_in_some_word(text: str) -> None:
    found = set("".join(raw_words(text)))
    plain = {char for char in text if char.isascii() and char.isalnum()}

    assert {char.casefold() for char in plain} <= found


def test_inflected_english_words_share_a_term() -> None:
    assert terms("listing repositories") == terms("list repository")
    assert terms("closed issues") == terms("close issue")


def test_function_words_are_no_terms_and_words_of_content_always_are() -> None:
    assert terms("Could you please do it with the files?") == terms("files")
    assert FUNCTION_WORDS.isdisjoint({"get", "list", "create", "not", "all", "new", "up", "off", "before"})


def test_identifiers_inside_prose_are_split() -> None:
    assert split_identifier("see createIssue_v2 of HTTPServer") == "see create Issue v2 of HTTP Server"


def test_what_was_found_in_a_text_is_remembered_unless_the_text_is_long() -> None:
    read: list[str] = []

    @remembered(2)
    def noted(text: str) -> int:
        read.append(text)
        return len(text)

    long = "x" * (LONGEST + 1)
    assert [noted(text) for text in ("a", "a", long, long)] == [1, 1, len(long), len(long)]
    assert read == ["a", long, long]


def test_what_was_found_in_a_name_is_remembered_unless_it_is_long() -> None:
    read: list[str] = []

    @remembered(2, LONGEST_NAME)
    def noted(name: str) -> None:
        read.append(name)

    for name in ("a" * LONGEST_NAME, "b" * (LONGEST_NAME + 1)):
        noted(name)
        noted(name)

    assert read == ["a" * LONGEST_NAME, *["b" * (LONGEST_NAME + 1)] * 2]


def test_stems_of_what_is_longer_than_words_are_not_remembered() -> None:
    before = _stemmed.cache_info().currsize
    long = "z" * LONGEST_RUN + "ings"

    assert stem(long) == long
    assert _stemmed.cache_info().currsize == before


@pytest.mark.parametrize("run", ["createIssue" * 100, "天气" * 100, "ÄÖÜ" * 100])
def test_a_long_run_has_the_words_that_its_parts_have(run: str) -> None:
    parts = CAMEL.sub(" ", run)

    assert raw_words(run) == [word for part in parts.split() for word in raw_words(part)]
