"""The section of `scan.json`: what the scanner of definitions finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pegboard_bench.results import measured

INTRODUCTION = """## The scanner of definitions

Written by `{command}`; run it yourself with `PEGBOARD_DATA` set to a folder of sets. {measured}.

[The scanner](trust-and-spend.md#definitions-that-seem-poisoned) looks at every definition of catalogs of real tools.
These are taken to be harmless, so each one that it suspects counts as a false alarm; none has been proved so, and a
tool may be in several catalogs. The rules were narrowed where they were wrong on these very catalogs: on others expect
more. That holds for `mcp_large` too: its alarms were read while rules were tuned, so its share of false alarms is not
that of tools that nobody has read. The second stage was fitted to sentences of the three small catalogs, so their rows
show nothing of it; `mcp_large` was not read for the fit. Its share of alarms was seen once before the last fit, whose
upper bound was then set for half as many tools of the fit. "Something found" is what any rule found, also below the
score of 0.5.

| tools of | tools | suspicious | share | something found | ms of the processor a definition, mean / p50 / p99 |
|---|---|---|---|---|---|
"""
NAMED = """
The suspicious ones of `{name}`: {tools}.
"""
RULES = """
By rule, over all these catalogs; a definition may have findings of several rules.

| rule | suspicious definitions | definitions with a finding |
|---|---|---|
"""
POISONS = """
Poisons are planted, one at a time, into {carriers} real tools in which nothing was found. Rules were fitted to one
part of them; the other part was written before any rule was tried on it, by the same author, and no rule was changed
because of it. Caught is what is suspicious afterwards.

| kind | caught, fitted | caught, held out |
|---|---|---|
"""
PUBLISHED = """
Attacks that others published, from `PEGBOARD_ATTACKS`; none is in the fit of the second stage.
`python -m pegboard_bench.scan.gather` gathers them out of checkouts of the authors' repositories, so that anybody can
make these figures again: proofs of concept, MSB's templates, praised tools and results that send to another tool, ASB's
attack tools under its templates, AgentDojo's templates over goals of three of its suites, attractive tools, and the
poisoned tools of MCPTox. Orders in other languages are from lists of test texts.

Who wrote the rules knew most of these texts: the templates of AgentDojo, ASB and MSB, and since this version the proofs
of concept. Rules for the kinds that were missed (praise in two ways, orders on which tool to take, text that speaks as
the user, limits declared void, orders in fields of JSON) were written after the missed texts had been read, in wider
words than theirs: that all proofs and attractive tools are caught says that these are covered, not what others would
meet. `mcptox` shows more. Before these rules 46 of its 486 tools were caught (9%). The patterns on the order of other
tools (`steering`), on calls with given paths (`errand`), on reasons (`pretext`) and consequences (`pressure`) were
written for its kind, with two of its texts seen and weights set on catalogs of honest tools; its share was looked at
after several of these changes, so that it is no blind test. ASB's bare instructions and descriptions say what a harmful
tool does, and give the model no order.
`obfuscated` is the proofs in each disguise; a sentence in an encoding or letter by letter is suspicious whatever it
says, so their share may exceed that of the proofs.
{kept}
| corpus | family | attacks | caught | by the rules alone |
|---|---|---|---|---|
"""
KEPT = """
{corpora} were not at hand when the rest was measured. Their figures are those of {date} at commit `{commit}`, of the
scanner as it was then.
"""
RESULTS = """
Of {results} recorded results of real servers of at most 20,000 characters, {suspicious} are suspicious; of the
{unseen} among them that hold nothing of this repository, to whose files the second stage was fitted,
{unseen_suspicious}.
"""
UNSEEN = """
Of {unseen:,} tools of `mcp_large` whose texts are in no catalog of the fit, {suspicious} are suspicious. Both stages
take {both:.2f} ms a definition on average, with the encoding of the sentences that need it, while a catalog is read and
texts that come again in it are not read again; where each definition is read alone, they take {alone:.2f} ms, the rules
{patterns:.2f} ms of it{load}.

Sentences of the written attacks, judged by models that saw none of their template, or none of their family (and of some
others) in any language; the bound is what lets {rank} of {tools:,} honest tools pass, {honest:,} sentences in all:

| family | template unseen | family unseen |
|---|---|---|
"""
HELD_OUT = """
Of {texts} whole attacks that nothing was fitted to, in other words than those of the fit and without its usual marks,
{all:.0%} exceed the bound and {doubtful:.0%} that of a doubt. Their author is that of the others; they steered the fit.

Tried for the second stage, and left out: 914 more English attacks of the kinds that were missed, with 222 honest
sentences in the same voice. A few odd honest sentences rose with them, and with these the upper bound, from 4.4 to 6.3:
of sentences whose template was unseen 56% exceeded it, not 72%, of the texts above 21%, not 27%. More attacks do not
help as long as a handful of sentences sets the bound.
"""


def section(results: Mapping[str, Any]) -> str:
    tables = results["tables"]
    head = INTRODUCTION.format(command=results["command"], measured=measured(results))
    return "".join(
        [
            head,
            *_catalogs(tables["catalogs"]),
            *_named(tables["catalogs"]),
            RULES,
            *_rules(tables["catalogs"]),
            POISONS.format(carriers=tables["carriers"]),
            *_kinds(tables["poisons"], results["figures"]),
            *_meaning(tables, results["figures"]),
        ]
    )


def _catalogs(catalogs: Mapping[str, Any]) -> Iterator[str]:
    for name, row in catalogs.items():
        share = f"{row['suspicious'] / row['tools']:.2%}"
        times = f"{row['mean_ms']:.2f} / {row['p50_ms']:.2f} / {row['p99_ms']:.2f}"
        yield f"| `{name}` | {row['tools']:,} | {row['suspicious']:,} | {share} | {row['found']:,} | {times} |\n"


def _named(catalogs: Mapping[str, Any]) -> Iterator[str]:
    for name, row in catalogs.items():
        if row["named"]:
            yield NAMED.format(name=name, tools=", ".join(f"`{tool}`" for tool in row["named"]))


def _rules(catalogs: Mapping[str, Any]) -> Iterator[str]:
    rows = catalogs.values()
    for rule in dict.fromkeys(rule for row in rows for rule in row["found_by_rule"]):
        counts = (sum(row[key].get(rule, 0) for row in rows) for key in ("suspicious_by_rule", "found_by_rule"))
        yield f"| `{rule}` | {' | '.join(f'{count:,}' for count in counts)} |\n"


def _kinds(poisons: Mapping[str, Any], figures: Mapping[str, float]) -> Iterator[str]:
    for kind in poisons["fit"]:
        cells = (_share(*poisons[part][kind]) for part in ("fit", "held_out"))
        yield f"| {kind} | {' | '.join(cells)} |\n"
    yield f"| all | {figures['hit_rate/fit']:.0%} | {figures['hit_rate/held_out']:.0%} |\n"


def _meaning(tables: Mapping[str, Any], figures: Mapping[str, float]) -> Iterator[str]:
    """What the second stage gave; nothing of results from before it."""
    if "fit" not in tables:
        return
    if tables["published"]:
        earlier = tables.get("published_at")
        yield PUBLISHED.format(kept=KEPT.format(**_stamp(earlier)) if earlier else "")
        for corpus, families in tables["published"].items():
            for family, row in families.items():
                counts = (f"{row[key]} ({row[key] / row['attacks']:.0%})" for key in ("suspicious", "by_patterns"))
                yield f"| {corpus} | {family} | {row['attacks']} | {' | '.join(counts)} |\n"
    yield RESULTS.format(**tables["results"])
    fit, large = tables["fit"], tables["catalogs"]["mcp_large"]
    yield UNSEEN.format(
        unseen=large["unseen"],
        suspicious=large["unseen_suspicious"],
        patterns=figures["ms/patterns"],
        both=figures["ms/both_stages"],
        alone=figures["ms/both_stages_alone"],
        load=f"; the load of the machine was {tables['load']:.1f}" if "load" in tables else "",
        rank=fit["bounds"]["tools_above"],
        tools=fit["honest_tools"],
        honest=fit["honest_sentences"],
    )
    for family, share in fit["family_unseen"].items():
        yield f"| {family} | {fit['template_unseen']['by_family'][family]:.0%} | {share:.0%} |\n"
    yield HELD_OUT.format(**fit["held_out"])


def _stamp(earlier: Mapping[str, Any]) -> dict[str, str]:
    names = ", ".join(f"`{corpus}`" for corpus in earlier.get("corpora", ["All"]))
    return {"date": earlier["date"][:10], "commit": earlier["commit"][:12], "corpora": names}


def _share(caught: int, planted: int) -> str:
    return f"{caught / planted:.0%} of {planted}"
