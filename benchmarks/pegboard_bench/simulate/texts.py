"""The words of the section that do not depend on what was found."""

from __future__ import annotations

from collections.abc import Mapping

POLICIES: Mapping[str, str] = {
    "saturation": "`saturation`: all tools in the prompt, up to 100,000 tokens",
    "rag_mcp": "`rag_mcp`: cosines, five servers, three tools",
    "rag_mcp_task_text": "`rag_mcp_task_text`: the same, asked with the text of the whole task",
    "rag_mcp_flat": "`rag_mcp_flat`: cosines, no cut to five servers",
    "ehrr": "`ehrr`: algorithm 2 with table V",
    "ehrr_no_auction": "`ehrr_no_auction`: every server accepts, no price is too high",
    "ehrr_no_execution": "`ehrr_no_execution`: outcomes teach it nothing",
    "ehrr_no_hierarchy": "`ehrr_no_hierarchy`: no cut to five servers",
    "ehrr_neutral": "`ehrr_neutral`: r~ = r",
    "ehrr_tenth": "`ehrr_tenth`: α_s and α_t a tenth",
    "ehrr_neutral_tenth": "`ehrr_neutral_tenth`: both",
    "hybrid": "**`hybrid`**: Pegboard's default ranking, three tools",
    "hybrid_cut": "`hybrid_cut`: the same with the cut to five servers",
    "hybrid_economics": "**`hybrid_economics`**: P·exp(−α_t·C^t), no cut",
    "hybrid_additive": "`hybrid_additive`: P − α_t·C^t, eq. 7 with P as it is",
}
INTRODUCTION = """## Routing by price, latency and failure

Written by `{command}`; run it yourself with `PEGBOARD_DATA` set to a folder with the sets livemcp_tasks and
livemcp_routes. {measured}. Nothing real is called and no model is asked: this is a simulation of what is offered to an
agent, and of what comes of it. Its worlds were frozen and committed before any policy was written
([`world.py`](../benchmarks/pegboard_bench/simulate/world.py) has every distribution and its source, `frozen.json` the
fingerprints); then the agent's rule ([`chooser.py`](../benchmarks/pegboard_bench/simulate/chooser.py)); then the
policies.
`rag_mcp_flat`, `hybrid_cut` and `hybrid_additive` are there to ask why, and so, since first results were seen, are
`ehrr_neutral` and `ehrr_tenth`. Nothing was fitted: the weights are the paper's, the ranking is the one that ships.

- **A world** is LiveMCPBench's 70 servers and 527 tools with prices in the paper's two tiers, latencies, success and
  crashes. {worlds} worlds, each from its seed. What a policy learns stays true within a world.
- **Asked** are {tasks} tasks of users, which need 2.7 tools in the mean, and {routes} sub-tasks that a model wrote
  (routes). Every policy gets the same text. Labels are one way to do it: another server that could do the same is of
  no help unless it is a copy. Routes have labels only where a dense retriever with the same cut had found the tool,
  which favours `rag_mcp` and the cut.
- **The agent** finds the right one among N tools offered by Luce's choice rule (0.88 of 3, 0.13 of 527, as RAG-MCP's
  authors measured for prompts with all tools), tries a failed call once more, asks for other tools where none persuades
  it, and stops at its limits: for a task 5 times of asking, 10 calls, 60 s and $0.15, for a route 2, 4, 20 s and $0.05.
  It looks at neither prices nor places in the list, so routers differ by what they offer.
- **Policies** know texts, posted prices and what came of their own calls. A call's outcome belongs to the world, the
  task, the tool and the attempt, and the agent's impressions to the world and the task: comparisons are paired.
- A **success** reaches every goal of a task. **C-Inv** counts calls that failed or did not help, and routes of whose
  tools none helped. **Tokens** are those of all prompts. **Cost** is the price of calls. **Utility** is eq. 7 with the
  world's true values, for each call. **Seconds to success** are those of tasks that succeeded, without the model's own.
  MRR and recall@3 are of the first ranking of each task (`saturation` has the catalog's order). C-Inv, tokens and cost
  are sums over the set. In brackets are 95% bootstrap intervals over worlds and tasks.
"""
SET = """
### Asked for {asked} ({number})

| policy | success | C-Inv | tokens | cost, USD | seconds to success | utility a call | MRR | recall@3 |
|---|---|---|---|---|---|---|---|---|
{rows}

![What is spent as {asked} come]({picture})
"""
PAPER = """
### Beside the paper

EHRR over RAG-MCP; the paper's tables VI to VIII are of 95 tasks on 81 servers, with a model that writes sub-tasks for
EHRR and not for RAG-MCP, and another model as the judge.

| | paper, Qwen-Plus / Claude Sonnet 4 | tasks, same text | routes, same text | routes, RAG-MCP with the task's text |
|---|---|---|---|---|
{rows}

| | paper, success | paper, MRR | tasks, success | tasks, MRR | routes, success | routes, MRR |
|---|---|---|---|---|---|---|
{ablations}

The paper's recall@3 is {recall}.
"""
CATEGORIES = """
### By category

Tasks. C-Inv is the sum of the category. The paper's success is EHRR's with Qwen-Plus / Claude Sonnet 4.

{head}
|---|---|---|---|---|---|---|---|---|---|---|
{rows}
"""
GRID = """
### How different servers are

h = 0 is a world of servers that are all alike, h = 1 one of servers as they are drawn; the mean of all is the same.
Three of each server are three providers of the same tools, each with prices, latencies and failures of its own.
Differences are in points of success, paired.

{pictures}

{head}
|---|---|---|---|---|---|---|---|
{rows}
"""
CATEGORIES_HEAD = (
    "| category | paper, success | paper, over RAG-MCP | `ehrr` | `rag_mcp` | `hybrid` | `hybrid_economics` "
    "| `saturation` | C-Inv `ehrr` | `rag_mcp` | `hybrid` |"
)
GRID_HEAD = (
    "| asked | of each server | h | `rag_mcp`, success | `ehrr` minus that | `hybrid` minus `rag_mcp` "
    "| `hybrid_economics` minus `hybrid` | cost, `ehrr` over `rag_mcp` |"
)
LEARNT = """
### What learning does

Success when all tasks come for the first time → when they come for time {passes}, with what was learnt kept; h = 1.

| policy | tasks, one of each server | routes, one | tasks, three of each server | routes, three |
|---|---|---|---|---|
{rows}
"""
READING = """
### What to make of it

{points}

**What the cut to five servers costs, and whether softer evidence does better.**

{cut}
"""
