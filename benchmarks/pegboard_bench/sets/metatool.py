"""MetaTool (ToolE): plugins of ChatGPT's store, described in a sentence, with queries that a model wrote."""

from __future__ import annotations

import csv
import io
import random

from pegboard_bench.sets.recipe import CATALOG, QUERIES, Converted, Recipe, Repository, Row, Sources, query, tool

SINGLE = "dataset/data/all_clean_data.csv"
MULTI = "dataset/data/multi_tool_query_golden.json"
PLUGINS = "dataset/plugin_des.json"
MERGED = "dataset/big_tool_des.json"
QUERIES_IN_ALL = 2000
SEED = 42


def convert(sources: Sources) -> Converted:
    files = sources["MetaTool"]
    descriptions = {**files.json(PLUGINS), **files.json(MERGED)}
    catalog = [tool(name, None, name, text.strip(), None) for name, text in descriptions.items()]
    single = [
        _query("single", number, row["Query"], [row["Tool"]])
        for number, row in enumerate(csv.DictReader(io.StringIO(files.text(SINGLE))))
        if row["Tool"] in descriptions
    ]
    multi = [_query("multi", number, row["query"], row["tool"]) for number, row in enumerate(files.json(MULTI))]
    found = len(single)
    random.Random(SEED).shuffle(single)  # noqa: S311
    sample = single[: QUERIES_IN_ALL - len(multi)]
    return Converted(
        files={CATALOG: catalog, QUERIES: sample + multi},
        left_out=[
            f"{found - len(sample):,} single-tool queries: of {found:,}, {len(sample):,} were drawn (seed {SEED})."
        ],
    )


def _query(category: str, number: int, text: str, names: list[str]) -> Row:
    return query(f"{category}-{number}", text.strip(), [[name, name] for name in names], category=category)


RECIPE = Recipe(
    name="metatool",
    title="MetaTool / ToolE",
    sources={
        "MetaTool": Repository(
            name="HowieHwong/MetaTool",
            commit="35e81bb7576826e980c80fed8f8c0a2b4a1e6fbb",
            date="2024-03-22",
            licence="MIT",
        )
    },
    convert=convert,
    licence="MIT",
    redistributable=True,
    conversion="The catalog is `plugin_des.json` and `big_tool_des.json` (tools that the authors merged): real "
    "plugins of OpenAI's store, descriptions only, no schemas, each a server of its own name. All "
    "two-tool queries are taken, and single-tool queries drawn at random until there are 2,000.",
    noise="ChatGPT and GPT-4 wrote the queries from one plugin's description. Plugins that were merged into a "
    "larger tool are still in the catalog, so a near-duplicate may be found instead of the label. Some "
    'queries fit no plugin in particular ("Can I generate bibtex bibliographies?").',
)
