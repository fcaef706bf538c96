"""The words of the section; every figure in them is filled in from the results."""

INTRODUCTION = (
    "Written by `make bench` (`pegboard bench`, with `PEGBOARD_DATA` for real120 and the labelled sets; [how to use "
    "it](bench.md)). {measured}. {tasks} tasks a testbed; {seeds} on `synthetic` and `real120`, one on the others; 95% "
    "bootstrap intervals over tasks in brackets."
)

HOW = """### How it is measured

*Testbeds.* `synthetic` is the paper's table 2 made anew with seed 42: six servers, 120 tools, each server's average to
the token. The products of that table sum to 48,600 tokens and not to the 47.3k that the paper gives; `synthetic_47k`
is scaled to those. `real120` has the same six kinds of server with real definitions, `recorded` is what `pegboard
bench record` took from seven public servers.

*Tasks* are drawn: 40% single-step, 30% messages of two or three requests, 15% sessions of 15 to 40 steps, 15% with
elliptical follow-ups. Requests for real tools were written for this benchmark, three a tool, by a developer of Pegboard
who knew what each tool does; none is copied from a definition, and those for made tools avoid their words. So read
recall as a comparison between methods. No method was fitted on these requests; the defaults are those of the engine.
Writing tools need a right that the agent holds or not, the database's need a connection, the browser's an open page;
what a step needs is always met. `attention`, `semantic` and `hybrid` know these preconditions, gateways do not.

*Counting.* A **step** is one call that the model makes. `first` and `steady` are the tool text in the request that
makes it, in the first step of a task and in later ones: definitions as compact JSON of name, description and
inputSchema (cl100k), summaries, instructions, meta-tools, and what was searched for in this step. `sent` is
everything that all requests of a step carry over the wire, with what earlier searches left in the conversation;
`requests` says how many they are. `billed` is the same in prices of plain input where everything is cached that can
be (read at 0.1, written at 1.25, {talk} tokens of talk a step written again where the tools before it change). What
tools answer is left out. `recall` is the share of steps whose tool the model could call, knowing its parameters. A
model that searches is taken to search in the user's own words for the step, once; that it picks well from what it
finds is taken for granted everywhere, and for the command line also that it finds the right name in a listing, so
B1's and B4's recall is an upper bound. F1 is that of all offered tools against the one that the step needs, so it
falls with every tool beside it. What choosing costs in time is under [Ranking](#ranking). ρ is eq. 3 at turn 30 with
what is resident then, C_task = {c_task:,}, C_sys = {c_sys}: the paper gives neither, and its B1, B2 and B3 solve to
about that.

† is a projection: two rows of the paper's tables 3 and 4 (B1 and Tool Attention) and lines through them
(`pegboard/bench/tax/projection.py` has every constant); success is that line times recall. The paper's own number
follows in parentheses.

"""

METHODS_HEAD = (
    "| | first | steady | sent | billed | requests | recall | F1 | whole tasks | ρ at 30 | success† | p50 s† | p95 s† "
    "| USD/task† |"
)
RULE = "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"

PEERS = """Peers, each with its ten best as full definitions, and two of the above, on the same {tasks} tasks (no
sessions, one seed):

"""

CLAIMS = """### The paper's claims

{points}

"""

SERVERS = """### Table 1, measured

| server | tools | tokens a request | of 200k | name | description | schema | output |
|---|---|---|---|---|---|---|---|
{rows}

{others}
![tokens by server](tax-servers.svg)

"""

SCALING = """### Up to 10,000 tools

Tokens of a step on made catalogs (twenty tools a server); 60 single-step requests about the same ten tools at each
size, so these catalogs say what N costs and little of recall, which the sets below do. A dash was not measured.

{table}

![context left by number of tools](tax-sizes.svg)

"""

FRONTIER = """### Recall against tokens

Up to 200 queries of each set. Each ranker gives as many tools as it is given tokens for, on average; Pegboard as many
as are certain enough (`hybrid`), the others the same number for every query. Slow peers see a fixed sample; of peers
twenty tools are known, and their curves end there. In brackets: ours minus the other's, query by query, with its
interval.

| set | tokens | `hybrid` | best other | ours minus that |
|---|---|---|---|---|
{rows}

{verdict}

![recall against tokens](tax-frontier.svg)

"""

ABLATIONS = """### Table 5: without a part, or with another

| variant | {heads} |
|---|{rules}|
{rows}

Tokens are those of phase 2. Barred is the share of steps in which a tool was promoted that the state does not allow.
Without the hallucination gate the same tokens are sent; it would answer in the steps whose tool is not there. The paper
lists "summaries only" twice, with and without counting phase 1; it is one variant.

"""

POISONED = """### Poisoned definitions

Fifty definitions with hidden orders are added as one more server, each with a request that goes with it. *Plain* ones
speak of their payload, *adapted* ones have the words of six likely requests before it, *targeted* ones the very
request. Share of the fifty whose text reaches the model on their request, in full, and at all (a summary or a
search's answer counts). The paper has 4 of 50 for Tool Attention, and does not count summaries.

| | {heads} |
|---|{rules}|
{rows}

{words}

"""

FAILURES = """### What was missed, and why

Share of all steps, by the first class that fits (Tool Attention §7.5 has four for its own failures):

| class | {heads} |
|---|{rules}|
{rows}

"""

QUALITY = """### Table 4, projected

| | mean† | at least 4† |
|---|---|---|
{rows}

"""

PICTURES = """![tokens by turn](tax-turns.svg)
![what is assumed of the task](tax-sensitivity.svg)
"""
