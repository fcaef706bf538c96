"""An MCP server that is instrumented as the SDK does it, and sends its spans to the collector in OTEL_*."""

from __future__ import annotations

if __name__ == "__main__":
    import atexit
    import gc

    gc.disable()  # while it imports and in its short life, which is a quarter less
    atexit.register(gc.freeze)

from mcp.server.mcpserver import MCPServer
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

server = MCPServer("traced")


@server.tool()
def echo_text(text: str) -> str:
    """Echo a text: answers what it was sent."""
    return f"echoed {text}"


@server.tool()
def fail_always(text: str) -> str:
    """Fail with an error, whatever is asked."""
    raise ValueError(f"cannot do {text}")


if __name__ == "__main__":
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    server.run()
