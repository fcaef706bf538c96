"""Ten figures that say most, each with what it is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Figures = Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """A ``figure`` of a results file, what it says after the number and in a few words, and how it is written.
    ``beside`` is the figure of the same file that it is to be read beside, and ``what`` that one is."""

    result: str
    figure: str
    says: str
    title: str
    form: str
    beside: str = ""
    what: str = ""

    def text(self, figures: Figures) -> str:
        """The figure, and in brackets the one beside it."""
        own = format(figures[self.figure], self.form)
        return f"**{own}** ({self.what}: {format(figures[self.beside], self.form)})" if self.beside else f"**{own}**"


HEADLINES = (
    Headline(
        result="tax",
        figure="tokens_sent/real120/hybrid_way_back",
        says="tokens of tools in one step of an agent with 120 tools of six MCP servers, through the LLM gateway",
        title="tokens of tools in a step",
        form=",.0f",
        beside="tokens_sent/real120/full",
        what="all tools",
    ),
    Headline(
        result="tax",
        figure="recall/real120/hybrid_way_back",
        says="of these steps the model could call the tool that the step needs",
        title="steps whose tool can be called",
        form=".1%",
        beside="recall/real120/attention",
        what="Tool Attention, which has no search",
    ),
    Headline(
        result="tasks",
        figure="success/llm_gateway/plus128",
        says="of whole tasks over real servers with 128 tools to distract were done, by a noisy oracle as the model",
        title="whole tasks done",
        form=".1%",
        beside="success/oracle/plus128",
        what="with the right tools alone",
    ),
    Headline(
        result="coding_agents",
        figure="billed_over_direct/gemini_cli/60",
        says="of the direct price is billed for a task of Gemini CLI with 60 MCP tools; no prompt lost a tool it needs",
        title="billed over direct, Gemini CLI",
        form=".0%",
    ),
    Headline(
        result="cache",
        figure="median_billed_over_eager/anthropic",
        says="of the price of sending all tools, with prompt caching at Anthropic, at the median of conversations",
        title="billed over all tools, Anthropic",
        form=".0%",
        beside="median_billed_over_eager/anthropic/naive",
        what="filtering each turn anew",
    ),
    Headline(
        result="rank",
        figure="recall@5/livemcp_steps/hybrid",
        says="of LiveMCPBench's steps have their tool among the first five, of 527",
        title="recall@5, LiveMCPBench's steps",
        form=".1%",
        beside="recall@5/livemcp_steps/bm25",
        what="BM25",
    ),
    Headline(
        result="llm",
        figure="rps_over_litellm/filter_repeat",
        says="times the requests a second of LiteLLM's proxy, each filtered from 120 known tools, by the LLM gateway",
        title="requests a second, over LiteLLM's proxy",
        form=".1f",
        beside="rps_over_litellm/passthrough",
        what="without a filter",
    ),
    Headline(
        result="mcp",
        figure="hop_over_fastmcp/stdio/modern",
        says="of the time of a call through FastMCP's proxy takes one through the MCP gateway",
        title="a call, over FastMCP's proxy",
        form=".0%",
    ),
    Headline(
        result="scale",
        figure="p50_ms/search/1000000",
        says="ms a search of a million tools takes on one thread, at the median",
        title="ms of a search in a million",
        form=".1f",
        beside="p50_ms/search/1000",
        what="a thousand tools",
    ),
    Headline(
        result="scan",
        figure="false_alarms/mcp_large",
        says="of real tools are suspected by the scanner, which finds all proofs of concept that others published",
        title="false alarms of the scanner",
        form=".2%",
    ),
)


def is_there(headline: Headline, results: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether its file has its figures."""
    figures: Figures = results.get(headline.result, {}).get("figures", {})
    return {headline.figure, headline.beside} - {""} <= figures.keys()
