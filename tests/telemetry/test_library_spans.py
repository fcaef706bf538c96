"""Decisions of the library in the application's own traces."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pegboard import Board
from pegboard.telemetry.otel.library_spans import DecisionSpans
from pegboard.testing import FakeEncoder


async def test_a_decision_is_a_span_below_the_applications_current_one() -> None:
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tools = [
        {"name": "tide", "description": "Height of the tide"},
        {"name": "moon", "description": "Phase of the moon"},
    ]
    with (
        Board(tools, encoder=FakeEncoder(), events=DecisionSpans(provider)) as board,
        provider.get_tracer("application").start_as_current_span("turn") as turn,
    ):
        await board.route("how high is the tide?")
    [decision] = [each for each in kept.get_finished_spans() if each.name == "retrieval pegboard"]
    assert decision.parent is not None
    assert decision.parent.span_id == turn.get_span_context().span_id
    assert decision.attributes is not None
    assert decision.attributes["gen_ai.operation.name"] == "retrieval"
    assert "gen_ai.retrieval.documents" not in decision.attributes
