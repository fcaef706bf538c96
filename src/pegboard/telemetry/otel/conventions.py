"""Names of the semantic conventions for GenAI and MCP (open-telemetry/semantic-conventions-genai, November 2026).

They are still in development there, and in no stable package; so they are written down once, here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
SCOPE = "pegboard"

ERROR = "error.type"
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
CONVERSATION = "gen_ai.conversation.id"
MODEL = "gen_ai.request.model"
STREAM = "gen_ai.request.stream"
RESPONSE_ID = "gen_ai.response.id"
FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE = "gen_ai.usage.cache_creation.input_tokens"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105
TOOL = "gen_ai.tool.name"
ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"
PROMPT = "gen_ai.prompt.name"
DATA_SOURCE = "gen_ai.data_source.id"
QUERY = "gen_ai.retrieval.query.text"
DOCUMENTS = "gen_ai.retrieval.documents"
METHOD = "mcp.method.name"
PROTOCOL = "mcp.protocol.version"
SESSION = "mcp.session.id"
RESOURCE = "mcp.resource.uri"
REQUEST_ID = "jsonrpc.request.id"
RPC_STATUS = "rpc.response.status_code"
TRANSPORT = "network.transport"
NETWORK_PROTOCOL = "network.protocol.name"
NETWORK_VERSION = "network.protocol.version"
ADDRESS = "server.address"
PORT = "server.port"
HTTP_METHOD = "http.request.method"
HTTP_STATUS = "http.response.status_code"
HTTP_ROUTE = "http.route"
PATH = "url.path"
SCHEME = "url.scheme"

TOOL_ERROR = "tool_error"
"""The `error.type` of a tool's result with `isError`."""
EXECUTE = "execute_tool"
RETRIEVAL = "retrieval"

MODEL_DURATION = "gen_ai.client.operation.duration"
MODEL_TOKENS = "gen_ai.client.token.usage"
SERVER_DURATION = "mcp.server.operation.duration"
CLIENT_DURATION = "mcp.client.operation.duration"
HTTP_DURATION = "http.server.request.duration"

OF_MODEL = (OPERATION, PROVIDER, MODEL, ADDRESS, PORT)
OF_MCP = (METHOD, ERROR, TOOL, PROMPT, RPC_STATUS, OPERATION, PROTOCOL, TRANSPORT, NETWORK_PROTOCOL)
METRICS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    MODEL_DURATION: ("s", "Duration of a request to a model.", (*OF_MODEL, ERROR)),
    MODEL_TOKENS: ("{token}", "Tokens that the provider counted.", (*OF_MODEL, TOKEN_TYPE)),
    SERVER_DURATION: ("s", "Duration of an MCP request, as its receiver sees it.", OF_MCP),
    CLIENT_DURATION: ("s", "Duration of an MCP request, as its sender sees it.", (*OF_MCP, ADDRESS, PORT)),
    HTTP_DURATION: ("s", "Duration of an HTTP request.", (HTTP_METHOD, SCHEME, HTTP_ROUTE, HTTP_STATUS, ERROR)),
}
"""Unit, description and attributes of each histogram."""
MODEL_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
MCP_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
HTTP_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
TOKENS = (1.0, 4.0, 16.0, 64.0, 256.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0, 262_144.0, 1_048_576.0, 4_194_304.0)
BOUNDS: Mapping[str, tuple[float, ...]] = {
    MODEL_DURATION: MODEL_SECONDS,
    MODEL_TOKENS: (*TOKENS, 16_777_216.0, 67_108_864.0),
    SERVER_DURATION: MCP_SECONDS,
    CLIENT_DURATION: MCP_SECONDS,
    HTTP_DURATION: HTTP_SECONDS,
}
"""The bounds of the buckets that the conventions ask for."""

PROVIDERS: Mapping[str, str] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "gemini": "gcp.gemini",
    "bedrock": "aws.bedrock",
    "cohere": "cohere",
}
"""By the format of an upstream."""
PROVIDER_HOSTS: Mapping[str, str] = {
    "openai.azure.com": "azure.ai.openai",
    "services.ai.azure.com": "azure.ai.inference",
    "deepseek.com": "deepseek",
    "groq.com": "groq",
    "mistral.ai": "mistral_ai",
    "moonshot.ai": "moonshot_ai",
    "perplexity.ai": "perplexity",
    "x.ai": "x_ai",
    "aiplatform.googleapis.com": "gcp.vertex_ai",
}
"""By the end of an upstream's host, before the format."""


@cache
def provider_of(format_: str, host: str) -> str:
    """The value of `gen_ai.provider.name`; formats that the conventions do not know keep their name.

    >>> provider_of("openai", "api.groq.com"), provider_of("openai", "localhost"), provider_of("generic", "a.example")
    ('groq', 'openai', 'generic')
    """
    for end, name in PROVIDER_HOSTS.items():
        if host == end or host.endswith(f".{end}"):
            return name
    return PROVIDERS.get(format_, format_)
