"""Paths of requests to providers: dot segments are gone before anybody looks at them."""

from __future__ import annotations

import json
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.gateways.llm.formats.gemini.request import Gemini
from pegboard.gateways.llm.formats.generic.request import Generic
from pegboard.gateways.llm.formats.registry import as_served, codec_for, counts, is_model_path
from pegboard.gateways.llm.proxy.target import NoUpstream, UnsafePath, resolved


@pytest.mark.requirement("D8")
@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/openai/v1/models", "/openai/v1/models"),
        ("/a/./b", "/a/b"),
        ("/a/b/..", "/a/"),
        ("/a/b/.", "/a/b/"),
        ("/a/%2e%2E/b", "/b"),
        ("/a//b", "/a//b"),
        ("/models/meta%2Fllama-3.1", "/models/meta%2Fllama-3.1"),
        ("/a/...", "/a/..."),
        ("/a/100%", "/a/100%"),
        ("/v1/chat/completion%73", "/v1/chat/completions"),
        ("/model/anthropic.claude-v1%3A0/converse", "/model/anthropic.claude-v1%3A0/converse"),
    ],
)
def test_dot_segments_are_resolved_and_everything_else_is_kept(path: str, found: str) -> None:
    assert resolved(path) == found


@pytest.mark.requirement("D8")
@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completion%73",
        "/v1/chat//completions//",
        "/v1/messag%65s",
        "/v1beta/models/gpt-x%3AgenerateContent",
        "/v1beta/models/gpt-x:generateConten%74",
        "/model/arn%3Aaws%3Abedrock%2Fprofile/converse",
        "/v1/chat%2Fcompletions",
        "/v1%2Fchat%2f%2Fcompletions%2F",
        "/v1/Chat/COMPLETIONS",
        "/v1/responses%2finput_tokens",
        "/V1/messages%2Fcount_tokens",
    ],
)
def test_a_path_is_read_as_it_is_served_however_it_is_written(path: str) -> None:
    assert codec_for(path) is not None


def test_the_name_of_a_gemini_model_is_read_as_it_is_served() -> None:
    request = Gemini().parse(b"{}", "/v1beta/models/gemini-2.5-pr%6F%3AstreamGenerateContent")

    assert (request.model, request.streams) == ("gemini-2.5-pro", True)


def test_what_counts_tokens_does_so_however_its_path_is_written() -> None:
    assert counts("/v1/messages%2Fcount_tokens")
    assert counts("/v1/Responses/INPUT_TOKENS")
    assert not counts("/v1/messages%2Fcount_tokens%2Fx")


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/openai/deployments/gpt-x/chat/completions", "gpt-x"),
        ("/openai/Deployments/gpt%2Dx/chat/completions", "gpt-x"),
        ("/openai%2Fdeployments%2Fgpt-x/chat/completions", "gpt-x"),
        ("/openai/deployments/gpt-x/responses", "gpt-x"),
        ("/openai/v1/chat/completions", "of-the-body"),
        ("/v1/publishers/anthropic/models/claude-x%3ArawPredict", "claude-x"),
        ("/v1/publishers/anthropic/models/count-tokens:rawPredict", "of-the-body"),
        ("/model/us.anthropic.claude-x%2Fy//invoke", "us.anthropic.claude-x/y"),
        ("/model/nova//converse//", "nova"),
        ("/model/arn:aws:bedrock%2Fprofile/converse", "arn:aws:bedrock/profile"),
        ("/v1beta/models%2Fgemini-x:generateContent", "gemini-x"),
    ],
)
def test_the_model_that_a_path_names_is_the_one_that_answers(path: str, model: str) -> None:
    codec = codec_for(path)

    assert codec is not None
    body = {"model": "of-the-body", "messages": [], "input": "", "contents": []}
    for each in (codec, Generic()):
        assert each.parse(json.dumps(body).encode(), as_served(path)).model == model


@pytest.mark.requirement("D8")
@pytest.mark.parametrize("path", ["", "openai", "/..", "/a/../..", "/%2e%2e/a"])
def test_a_path_that_climbs_above_the_root_is_not_found(path: str) -> None:
    with pytest.raises(NoUpstream):
        resolved(path)


@pytest.mark.requirement("D8")
@given(st.lists(st.sampled_from(["a", "v1", ".", "..", "%2e", "%2E.", "..%2f", "%5c..", "..;x", "", "%252e%252e"])))
def test_no_way_of_writing_them_leaves_a_dot_segment(segments: list[str]) -> None:
    try:
        path = resolved("/" + "/".join(segments))
    except (NoUpstream, UnsafePath):
        return
    plain = unquote(unquote(path)).replace("\\", "/").replace(";", "/")
    assert not {".", ".."} & set(plain.split("/"))


@pytest.mark.requirement("B2")
@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/completions",
        "/v1/models",
        "/v1/messages/count_tokens",
        "/v1beta/models/x:generateContent",
        "/upload/v1beta/files",
        "/chat/completions",
        "/responses/resp_1",
        "/models",
    ],
)
def test_paths_of_model_apis_are_known(path: str) -> None:
    assert is_model_path(path)


@pytest.mark.requirement("B2")
@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v1/", "/sse", "/mpc", "/modelsx", "/register", "/.well-known/x", "/v2/a"]
)
def test_other_paths_are_no_model_apis(path: str) -> None:
    assert not is_model_path(path)
