"""A wire format is one folder and one row: a sixth one, made here, is served; no other module names a format."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import httpx2
import pytest
from pydantic import ValidationError

import pegboard
from model_bodies import asking
from model_doors import model_door
from model_upstream import model_upstream
from pegboard import wire_formats
from pegboard.catalog.ingest import files, parse_catalog
from pegboard.errors import PegboardError
from pegboard.events import ModelRequestServed
from pegboard.gateways.llm.call_tool.plan import closed
from pegboard.gateways.llm.formats import registry
from pegboard.gateways.llm.formats.contents import parts_of
from pegboard.gateways.llm.formats.json_reader import value_of
from pegboard.gateways.llm.formats.json_spans import Member, elements
from pegboard.gateways.llm.formats.model_providers import Auth, Detection, ModelProvider
from pegboard.gateways.llm.formats.protocol import LlmRequest, Observation, Observer, OfferedTool, ToolCalled, parsed
from pegboard.gateways.llm.formats.streams import observer
from pegboard.gateways.llm.formats.tool_arrays import given, rewritten
from pegboard.model import JsonObject, Message, Tool, ToolId, Turn
from pegboard.settings.llm import UpstreamSettings
from pegboard.stores import MemoryEmbeddings
from pegboard.testing import FakeEncoder
from pegboard.wire_formats import Provider as Known
from pegboard.wire_formats import ToolFormat, wire_tool
from processes import until

# What the folder of a sixth format would have.


class SixthCodec:
    name = "sixth"

    def parse(self, body: bytes, path: str) -> LlmRequest:
        return parsed(body, _request)

    def tool(self, definition: JsonObject) -> Tool | None:
        return _tools("", [definition])[0]

    def rewrite(self, request: LlmRequest, kept: Collection[int]) -> bytes:
        return rewritten(request, kept, array="abilities", dependent=())

    def narrow(self, request: LlmRequest, kept: Collection[int]) -> bytes | None:
        return None

    def observe(self, content_type: str) -> Observer:
        return observer(content_type, _called)


def _request(text: bytes, fields: dict[str, Member]) -> LlmRequest:
    array = given(text, fields, "abilities")
    spans = elements(text, array) if array else []
    definitions = [text[slice(*span)] for span in spans]
    return LlmRequest(
        body=text,
        text=text,
        fields=fields,
        tools=tuple(
            OfferedTool(name=json.loads(definition)["title"], definition=definition, span=span)
            for definition, span in zip(definitions, spans, strict=True)
        ),
        turn=Turn(messages=(Message(role="user", parts=parts_of(value_of(text, fields, "wish"))),)),
    )


def _tools(server: str, entries: Collection[Any]) -> list[Tool]:
    return [
        Tool(id=ToolId(server, entry["title"]), description=entry["about"], definition=entry, input_schema=None)
        for entry in entries
    ]


def _called(answer: bytes) -> Iterator[Observation]:
    yield ToolCalled(name=json.loads(answer)["id"])


def _error(error: PegboardError, status: int) -> Mapping[str, Any]:
    return {"wrong": error.code, "number": status}


SIXTH = ModelProvider(
    name="sixth",
    auth=Auth(header=b"x-sixth-key", before=b"Sixth ", query="sixth_key"),
    errors=_error,
    detection=Detection(headers=(b"x-sixth-client",), paths=("/sixth-api/",), api=re.compile(r"/sixth-api/.")),
)
ROW = registry.Format(
    codec=SixthCodec(),
    provider=SIXTH,
    paths=re.compile(r"/(ask|count)$"),
    counting=re.compile(r"/count$"),
)

BODY = {
    "wish": "renew the loan",
    "abilities": [{"title": name, "about": name.replace("_", " ")} for name in ("book_flight", "renew_loan", "tune")],
}
ASK = "/sixth-api/ask"


@pytest.fixture
def sixth(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row in the gateway, one in `wire_formats`, and one for catalog files."""
    monkeypatch.setattr(registry, "FORMATS", (*registry.FORMATS, ROW))
    row = ToolFormat(write=lambda said, takes: {"title": said["name"], "about": said["description"]}, upstream="sixth")
    monkeypatch.setattr(wire_formats, "TOOL_FORMATS", {**wire_formats.TOOL_FORMATS, "sixth": row})
    shape = files.Shape(provider="Sixth", keys=frozenset({"title"}), read=_tools)
    monkeypatch.setattr(files, "SHAPES", (*files.SHAPES, shape))
    monkeypatch.setenv("SIXTH_KEY", "theirs")


async def test_a_request_in_a_sixth_format_is_filtered(sixth: None) -> None:
    parts = {"encoder": FakeEncoder(), "embeddings": MemoryEmbeddings()}
    async with model_upstream() as upstream:
        upstreams = {
            "other": {"url": upstream.url},
            "one": {"url": upstream.url, "format": "sixth", "api_key_env": "SIXTH_KEY"},
        }
        async with (
            model_door(upstreams, parts=parts, policy={"profile": "semantic", "k": 1}) as (address, _, events),
            httpx2.AsyncClient(base_url=f"http://{address}", trust_env=False) as http,
        ):
            named = await http.post("/one/ask", json=BODY, headers={"x-sixth-key": "the caller's"})
            told = await http.post(ASK, json=BODY)
            counted = await http.post("/sixth-api/count", json=BODY)
            chat = await http.post("/other/v1/chat/completions", json=asking("openai_chat"))
            nowhere = await http.get("/nowhere", headers={"x-sixth-client": "1"})
            await until(lambda: len(events.of(ModelRequestServed)) == 4)

    assert [each.status_code for each in (named, told, counted, chat)] == [200] * 4
    sent = [json.loads(each.body) for each in upstream.sent]
    kept = {**BODY, "abilities": [{"title": "renew_loan", "about": "renew loan"}]}
    assert sent[:3] == [kept] * 3
    assert [each.target for each in upstream.sent[:3]] == ["/ask", ASK, "/sixth-api/count"]
    assert [each.headers["x-sixth-key"] for each in upstream.sent[:3]] == ["Sixth theirs"] * 3
    assert "x-sixth-key" not in upstream.sent[3].headers
    assert (nowhere.status_code, nowhere.json()) == (404, {"wrong": "no_upstream", "number": 404})
    served = [each for each in events.of(ModelRequestServed) if isinstance(each, ModelRequestServed)]
    assert [(each.format, each.kept, each.called) for each in served[:2]] == [("sixth", 1, ("chatcmpl-1",))] * 2


def test_without_its_row_there_is_no_such_format() -> None:
    with pytest.raises(
        ValidationError,
        match="Input should be 'openai', 'anthropic', 'gemini', 'bedrock', 'cohere', 'azure' or 'generic'",
    ):
        UpstreamSettings(url="http://127.0.0.1:9", format="sixth")


def test_its_key_is_looked_for_behind_the_others(sixth: None) -> None:
    before = (b"authorization", b"x-api-key", b"x-goog-api-key")
    assert registry.key_headers() == (*before, b"x-sixth-key", b"api-key")
    assert registry.key_parameters() == {"key", "sixth_key"}


def test_tools_are_written_and_catalog_files_read_in_it(sixth: None) -> None:
    name: Any = "sixth"
    assert wire_tool(name, "tide", "When it comes", None) == {"title": "tide", "about": "When it comes"}
    catalog = parse_catalog(json.dumps(BODY["abilities"]), source="a file", server="s")
    assert [tool.name for tool in catalog.tools] == ["book_flight", "renew_loan", "tune"]


def test_what_a_row_leaves_out_is_not_offered(sixth: None) -> None:
    codec = SixthCodec()
    request = codec.parse(json.dumps(BODY).encode(), ASK)

    assert registry.codec_for(ASK) is ROW.codec
    assert registry.tool_search_of(codec) is None
    assert closed(codec, request, "") == "this format has no calls"
    assert registry.history_of(codec) is None


def test_type_checkers_know_the_same_tool_formats() -> None:
    assert get_args(Known) == tuple(wire_formats.TOOL_FORMATS)


@pytest.mark.parametrize("row", registry.FORMATS, ids=lambda row: row.name)
def test_every_row_belongs_to_a_format_of_upstreams(row: registry.Format) -> None:
    filtering: Any = {"semantic_tool_filtering": {}} if row.name == "generic" else {}
    upstream = UpstreamSettings(url="http://127.0.0.1:9", format=row.provider.name, **filtering)

    assert registry.provider_named(upstream.format) is row.provider


# No other module asks which format it is.

SOURCE = Path(pegboard.__file__).parent
FORMATS = SOURCE / "gateways" / "llm" / "formats"
FOLDERS = {path.parent.name for path in FORMATS.glob("*/request.py")}
NAMES = {row.name for row in registry.FORMATS} | {row.provider.name for row in registry.FORMATS}
NAMES |= {name for name, row in wire_formats.TOOL_FORMATS.items() if row.upstream}
HEADERS = {header for row in registry.FORMATS for header in row.provider.detection.headers}
HEADERS |= {row.provider.auth.header for row in registry.FORMATS} - {b"authorization"}
ALLOWED = {
    "gateways/llm/formats/model_providers.py": "the APIs that the formats belong to: paths, keys and errors",
    "wire_formats.py": "the rows of tools as requests carry them, which the library writes without any gateway",
    "settings/llm.py": "the upstreams of a configuration without any: three providers, by names that users know",
    "gateways/http_api/openapi_document.py": "`responses` is a key of OpenAPI there",
    "telemetry/otel/conventions.py": "the names of providers in the conventions of OpenTelemetry",
    "gateways/langchain/cache_aware.py": "LangChain's names of providers, for the table of cache prices",
    "gateways/llm/selection/policy_rules.py": "`generic` is configured by a policy, whose profile holds for requests",
}
"""Modules that name a format, and why each may."""


def _modules() -> dict[str, ast.Module]:
    """All but the registry and the formats' own folders."""
    paths = [path for path in SOURCE.rglob("*.py") if path != FORMATS / "registry.py"]
    own = [FORMATS / folder for folder in FOLDERS]
    return {
        path.relative_to(SOURCE).as_posix(): ast.parse(path.read_text("utf-8"))
        for path in paths
        if not any(folder in path.parents for folder in own)
    }


def _named(tree: ast.AST) -> Iterator[str]:
    """The formats on which something depends in this module: keys, cases, comparisons, headers, imports."""
    for node in ast.walk(tree):
        match node:
            case ast.Dict(keys=keys):
                yield from _constants(NAMES, *keys)
            case ast.match_case(pattern=pattern):
                yield from _constants(NAMES, *ast.walk(pattern))
            case ast.Compare():
                yield from _constants(NAMES, *ast.walk(node))
            case ast.Constant():
                yield from _constants(HEADERS | {header.decode() for header in HEADERS}, node)
            case ast.ImportFrom(module=str(module)):
                yield from FOLDERS & set(module.partition(".llm.formats.")[2].split("."))


def _constants(names: Collection[Any], *nodes: ast.AST | None) -> Iterator[str]:
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return (str(value) for value in values if isinstance(value, str | bytes) and value in names)


def test_no_other_module_depends_on_which_format_it_is() -> None:
    found = {name: sorted({*_named(tree)}) for name, tree in _modules().items()}

    assert {name for name, named in found.items() if named} == set(ALLOWED), found


@pytest.mark.parametrize(
    "source",
    [
        'TABLE = {"gemini": 1}',
        'match format_:\n    case "openai" | "generic":\n        pass',
        'if codec.name == "anthropic":\n    pass',
        'kept = name in ("openai_responses",)',
        'KEY = b"x-goog-api-key"',
        "from pegboard.gateways.llm.formats.anthropic.request import AnthropicMessages",
    ],
)
def test_each_way_to_depend_on_one_is_seen(source: str) -> None:
    assert list(_named(ast.parse(source)))
