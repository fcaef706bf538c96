"""Tune all-MiniLM-L6-v2 for finding tools: contrastive training on the CPU, then an average with what it began with.

The build environment is that of `scripts/build_encoder.py`, and Pegboard. About an hour on two cores:

    python scripts/tune_encoder.py --data SETS --start src/pegboard/retrieval/encoders/minilm/model.onnx --out tuned
    python scripts/build_encoder.py --weights tuned/share-0.5

It begins with the weights of `--start`, a file that build_encoder wrote, or with the published ones.

Trained on seal_tools and stabletoolbench (without the queries kept for fitting), on requests written for tools of the
public catalogs (`scripts/tuning/written`), and on what those tools say of themselves. Near-duplicates of the sets that
judge the result are removed first (`scripts/tuning/cleaning.py`). At the end, the averages are compared on requests
that nothing was tuned on and that judge nothing (`scripts/tuning/validation.py`).

A run that was cut off goes on from its last checkpoint in `--out` when started again with the same options.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Encoding, Tokenizer
from transformers import BertModel

from build_encoder import verified_model_dir
from pegboard.retrieval.intents import clauses
from tuning.packaged import weights_of
from tuning.pairs import Data, Pair, batches, document, first_sentence, read
from tuning.validation import Board, Encode, boards, recalls

SEED = 20_240
BATCH = 48
RATE, WARM_UP, DECAY = 3e-5, 30, 0.01
SCALE = 20.0
"""Cosines times this are the logits (temperature 0.05)."""
TOGETHER = 16
"""Texts that the model is run over at once, of about the same length: little is padded."""
START = "before"
"""The folder of the weights before, in that of the runs."""
CHECKPOINT, EACH = "checkpoint.pt", 200
"""Its file, and the steps from one to the next."""
QUERY_WINDOW, TOOL_WINDOW, WINDOW = 64, 96, 256
"""Tokens of a request and of a tool while it is tuned; of both when it is compared, as in use."""
DESCRIBED = 1500
"""Of the pairs that tools make of their own descriptions, this many an epoch."""
WRITTEN = Path(__file__).parent / "tuning" / "written"


class Model(torch.nn.Module):
    """BERT with mean pooling, over the whole text or a clause of it (late chunking, Günther et al. 2024).

    The word table stays as it is, so that words never trained on keep their place.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.bert = BertModel.from_pretrained(
            folder, add_pooling_layer=False, attn_implementation="eager", local_files_only=True
        )
        self.bert.embeddings.word_embeddings.weight.requires_grad_(False)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_padding()
        self.eval()  # without dropout: hardly a pair is seen more than twice, and a step takes a sixth less

    def forward(self, texts: list[str], window: int) -> tuple[torch.Tensor, list[tuple[torch.Tensor, Encoding]]]:
        """Unit vectors, (n, d); for each text the states of its tokens, (tokens, d), and the tokens."""
        self.tokenizer.enable_truncation(window)
        vectors: dict[int, torch.Tensor] = {}
        states: dict[int, tuple[torch.Tensor, Encoding]] = {}
        by_length = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for at in range(0, len(texts), TOGETHER):
            places = by_length[at : at + TOGETHER]
            rows = self.tokenizer.encode_batch([texts[place] for place in places])
            ids, mask = (torch.tensor([getattr(row, name) for row in rows]) for name in ("ids", "attention_mask"))
            of_tokens = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state.float()
            weights = mask.unsqueeze(-1).float()
            means = unit((of_tokens * weights).sum(1) / weights.sum(1))
            vectors |= dict(zip(places, means, strict=True))
            states |= dict(zip(places, zip(of_tokens, rows, strict=True), strict=True))
        return torch.stack([vectors[place] for place in range(len(texts))]), [states[i] for i in range(len(texts))]


def unit(vectors: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(vectors, dim=-1)


def narrow() -> AbstractContextManager[None]:
    """bfloat16 where the processor multiplies matrices of it; on others it is slower than float32."""
    return torch.autocast("cpu", torch.bfloat16, enabled=torch.cpu._is_amx_tile_supported())


def loss_of(model: Model, data: Data, batch: list[Pair], rng: random.Random) -> torch.Tensor:
    """InfoNCE in both directions; a tool that also serves the query is no negative to it.

    A query is as near to a tool as the mean of its whole text and its nearest clause, as when it is used.
    """
    texts = [pair.query for pair in batch]
    with narrow():
        queries, states = model(texts, QUERY_WINDOW)
        tools, _ = model([_document(data, pair, rng) for pair in batch], TOOL_WINDOW)
    nearest = [
        (torch.stack(parts) @ tools.T).amax(0) if (parts := clause_vectors(text, *state)) else query @ tools.T
        for text, query, state in zip(texts, queries, states, strict=True)
    ]
    logits = SCALE * (queries @ tools.T + torch.stack(nearest)) / 2
    other = torch.tensor([[a is not b and b.tool in a.relevant for b in batch] for a in batch])
    target = torch.arange(len(batch))
    cross = torch.nn.functional.cross_entropy
    there, back = logits.masked_fill(other, -1e4), logits.T.masked_fill(other.T, -1e4)
    return (cross(there, target) + cross(back, target)) / 2


def clause_vectors(text: str, states: torch.Tensor, row: Encoding) -> list[torch.Tensor]:
    """One unit vector a clause, pooled from the states of its tokens; none where there is one clause only."""
    spans = clauses(text)
    if len(spans) < 2:
        return []
    places = [
        [at for at, (first, last) in enumerate(row.offsets) if first < last and start <= first and last <= end]
        for start, end in spans
    ]
    return [unit(states[of_clause].mean(0)) for of_clause in places if of_clause]


def _document(data: Data, pair: Pair, rng: random.Random) -> str:
    tool = data.tools[pair.tool]
    says = first_sentence(tool["description"] or "")
    return document(tool, rng, without=says if pair.query == says else "")


def run(seed: int, folder: Path, args: argparse.Namespace) -> None:
    """One run, in a process and on a core of its own: its last checkpoint is what it made."""
    torch.set_num_threads(1)
    data = Data.read(args.data)
    pairs = data.pairs(args.data, args.written)
    model = Model(args.out / START)
    say(f"{folder.name}: {len(pairs)} pairs, {len(data.tools)} tools")
    folder.mkdir(parents=True, exist_ok=True)
    train(model, data, pairs, seed, epochs=args.epochs, minutes=args.minutes, folder=folder)


def train(model: Model, data: Data, pairs: list[Pair], seed: int, *, epochs: int, minutes: float, folder: Path) -> None:
    """The rate falls to nothing with the steps, or with the time if that is shorter."""
    asked = [pair for pair in pairs if not pair.group.startswith("described")]
    described = [pair for pair in pairs if pair.group.startswith("described")]
    total = epochs * ((len(asked) + min(DESCRIBED, len(described))) // BATCH)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE, weight_decay=DECAY)
    done, before = resumed(folder, model, optimizer)
    started, running = time.monotonic() - before, 0.0
    for step, batch in enumerate(every_batch(asked, described, epochs, seed)):
        if step < done:
            continue
        left = 1 - max(step / total, (time.monotonic() - started) / (60 * minutes))
        if left <= 0:
            break
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / WARM_UP) * left
        rng = random.Random(f"{seed} {step}")  # noqa: S311  # the same after a resumption
        loss = loss_of(model, data, batch, rng)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        running = loss.item() if not running else 0.95 * running + 0.05 * loss.item()
        done = step + 1
        if done % 20 == 0:
            say(f"{folder.name}: step {done} of {total}, loss {running:.3f}, {time.monotonic() - started:.0f} s")
        if done % EACH == 0:
            keep(folder, model, optimizer, done, time.monotonic() - started)
    keep(folder, model, optimizer, done, time.monotonic() - started)


def every_batch(asked: list[Pair], described: list[Pair], epochs: int, seed: int) -> Iterator[list[Pair]]:
    """The batches of all epochs, the same each time."""
    rng = random.Random(seed)  # noqa: S311  # an order, no secret
    for _ in range(epochs):
        yield from batches(asked + rng.sample(described, min(DESCRIBED, len(described))), BATCH, rng)


def keep(folder: Path, model: Model, optimizer: torch.optim.Optimizer, steps: int, seconds: float) -> None:
    """Write a checkpoint in place of the last one."""
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "steps": steps, "seconds": seconds}
    torch.save(state, folder / f"{CHECKPOINT}.new")
    (folder / f"{CHECKPOINT}.new").replace(folder / CHECKPOINT)


def resumed(folder: Path, model: Model, optimizer: torch.optim.Optimizer) -> tuple[int, float]:
    """Steps and seconds of the run whose checkpoint is there; 0 and 0 where there is none."""
    if not (folder / CHECKPOINT).exists():
        return 0, 0.0
    state = torch.load(folder / CHECKPOINT, weights_only=True)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    say(f"{folder.name}: going on after step {state['steps']}")
    return state["steps"], state["seconds"]


def begun(start: Path | None, out: Path) -> None:
    """Write the folder of the weights that all runs begin with: those of ``start``, else the published ones."""
    published = verified_model_dir()
    weights = load_file(published / "model.safetensors")
    if start is not None:
        weights |= {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in weights_of(start).items()}
    written(weights, published, out / START)


def written(weights: dict[str, torch.Tensor], published: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    for name in ("config.json", "tokenizer.json"):
        (folder / name).write_bytes((published / name).read_bytes())


def save(runs: list[Path], out: Path, shares: list[float]) -> int:
    """The mean of the runs' weights (model soups, Wortsman et al. 2022), averaged with those that they began with at
    each share (WiSE-FT, Wortsman et al. 2022), a folder each. Returns the steps of all runs."""
    before = load_file(out / START / "model.safetensors")
    ends = [torch.load(folder / CHECKPOINT, weights_only=True) for folder in runs]
    tuned = {
        name.removeprefix("bert."): torch.stack([end["model"][name] for end in ends]).mean(0)
        for name, value in ends[0]["model"].items()
        if value.is_floating_point()
    }
    for share in shares:
        mixed = {
            name: torch.lerp(value, tuned[name], share) if name in tuned else value for name, value in before.items()
        }
        written(mixed, out / START, out / f"share-{share:g}")
    return sum(end["steps"] for end in ends)


def compare(out: Path, shares: list[float], unseen: list[Board]) -> dict[str, dict[str, float]]:
    """Recall@5 of the weights before and of each average, on boards that nothing was tuned on."""
    found = {}
    for name in (START, *(f"share-{share:g}" for share in shares)):
        encode = encoder(Model(out / name))
        found[name] = {board.name: round(value, 4) for board, value in recalls(unseen, encode)}
        say(f"{name}: {found[name]}")
    return found


def encoder(model: Model) -> Encode:
    """What a model makes of texts: each one's vector, and those of its clauses."""

    def encode(texts: list[str]) -> list[tuple[np.ndarray, list[np.ndarray]]]:
        found = {}
        by_length = sorted(set(texts), key=len)
        for at in range(0, len(by_length), BATCH):
            some = by_length[at : at + BATCH]
            with torch.inference_mode(), narrow():
                vectors, states = model(some, WINDOW)
                clauses_of = [clause_vectors(text, *state) for text, state in zip(some, states, strict=True)]
            for text, vector, parts in zip(some, vectors, clauses_of, strict=True):
                found[text] = vector.numpy(), [part.numpy() for part in parts]
        return [found[text] for text in texts]

    return encode


def say(message: str) -> None:
    print(f"tune_encoder: {message}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    data_folder = os.environ.get("PEGBOARD_DATA")
    parser.add_argument("--data", type=Path, default=data_folder, required=data_folder is None, help="folder of sets")
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights, one inside it a share")
    parser.add_argument("--written", type=Path, nargs="*", default=sorted(WRITTEN.glob("tune-*.jsonl.gz")))
    parser.add_argument("--start", type=Path, help="model.onnx to go on from, of build_encoder; default: the published")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=120, help="stop after this long")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.3, 0.5, 0.7], help="of the tuned weights")
    parser.add_argument("--runs", type=int, default=os.cpu_count(), help="at once, a core each; their mean is kept")
    args = parser.parse_args()
    begun(args.start, args.out)
    folders = [args.out / f"run-{number}" for number in range(args.runs)]
    processes = [
        multiprocessing.get_context("spawn").Process(target=run, args=(SEED + number, folder, args))
        for number, folder in enumerate(folders)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        return 1
    torch.set_num_threads(os.cpu_count() or 1)
    steps = save(folders, args.out, args.shares)
    data = Data.read(args.data)
    trained = {
        "pairs": len(data.pairs(args.data, args.written)),
        "written": sum(len(read(path)) for path in args.written),
        "runs": args.runs,
        "steps": steps,
        "seed": SEED,
        "start_sha256": None if args.start is None else hashlib.sha256(args.start.read_bytes()).hexdigest(),
        "recall@5": compare(args.out, args.shares, list(boards(args.data))),
    }
    (args.out / "training.json").write_text(json.dumps(trained) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
