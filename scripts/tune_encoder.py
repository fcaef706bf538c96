"""Tune all-MiniLM-L6-v2 for finding tools: contrastive training on the CPU, then an average with the original.

The build environment is that of `scripts/build_encoder.py`, and Pegboard. About half an hour on two cores:

    python scripts/tune_encoder.py --data SETS --out tuned && python scripts/build_encoder.py --weights tuned

Trained on seal_tools and stabletoolbench (without the queries kept for fitting), on requests written for tools of the
public catalogs (`scripts/tuning/written`), and on what those tools say of themselves. Near-duplicates of the sets that
judge the result are removed first (`scripts/tuning/cleaning.py`).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Encoding, Tokenizer
from transformers import BertModel

from build_encoder import verified_model_dir
from pegboard.retrieval.intents import clauses
from tuning.pairs import Data, Pair, batches, document, first_sentence, read

SEED = 20_240
BATCH = 48
RATE, WARM_UP, DECAY = 3e-5, 30, 0.01
SCALE = 20.0
"""Cosines times this are the logits (temperature 0.05)."""
QUERY_WINDOW, TOOL_WINDOW = 64, 96
DESCRIBED = 3000
"""Of the pairs that tools make of their own descriptions, this many an epoch."""
WRITTEN = Path(__file__).parent / "tuning" / "written"


class Model(torch.nn.Module):
    """BERT with mean pooling, over the whole text or a clause of it (late chunking, Günther et al. 2024).

    The word table stays as it is, so that words never trained on keep their place.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.bert = BertModel.from_pretrained(folder, add_pooling_layer=False, local_files_only=True)
        self.bert.embeddings.word_embeddings.weight.requires_grad_(False)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_padding()

    def forward(self, texts: list[str], window: int) -> tuple[torch.Tensor, torch.Tensor, list[Encoding]]:
        """Unit vectors, shape (n, d); the tokens' states they are the mean of, (n, window, d); the tokens."""
        self.tokenizer.enable_truncation(window)
        rows = self.tokenizer.encode_batch(texts)
        ids, mask = (torch.tensor([getattr(row, name) for row in rows]) for name in ("ids", "attention_mask"))
        states = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        weights = mask.unsqueeze(-1).to(states.dtype)
        return unit((states * weights).sum(1) / weights.sum(1)), states, rows


def unit(vectors: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.normalize(vectors, dim=-1)


def loss_of(model: Model, data: Data, batch: list[Pair], rng: random.Random) -> torch.Tensor:
    """InfoNCE in both directions; a tool that also serves the query is no negative to it.

    A query is as near to a tool as the mean of its whole text and its nearest clause, as when it is used.
    """
    texts = [pair.query for pair in batch]
    with torch.autocast("cpu", torch.bfloat16):
        queries, states, rows = model(texts, QUERY_WINDOW)
        tools, _, _ = model([_document(data, pair, rng) for pair in batch], TOOL_WINDOW)
    nearest = [
        (torch.stack(parts) @ tools.T).amax(0) if (parts := clause_vectors(text, state, row)) else query @ tools.T
        for text, query, state, row in zip(texts, queries, states, rows, strict=True)
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


def train(model: Model, data: Data, pairs: list[Pair], *, epochs: int, minutes: float) -> int:
    """Number of steps made. The rate falls to nothing with the steps, or with the time if that is shorter."""
    rng = random.Random(SEED)  # noqa: S311  # an order, no secret
    asked = [pair for pair in pairs if not pair.group.startswith("described")]
    described = [pair for pair in pairs if pair.group.startswith("described")]
    total = epochs * ((len(asked) + min(DESCRIBED, len(described))) // BATCH)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE, weight_decay=DECAY)
    started, step, running = time.monotonic(), 0, 0.0
    for _ in range(epochs):
        epoch = asked + rng.sample(described, min(DESCRIBED, len(described)))
        for batch in batches(epoch, BATCH, rng):
            spent = (time.monotonic() - started) / (60 * minutes)
            left = 1 - max(step / total, spent)
            if left <= 0:
                return step
            for group in optimizer.param_groups:
                group["lr"] = RATE * min(1.0, (step + 1) / WARM_UP) * left
            loss = loss_of(model, data, batch, rng)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            running = loss.item() if not step else 0.95 * running + 0.05 * loss.item()
            step += 1
            if step % 20 == 0:
                say(f"step {step} of {total}, loss {running:.3f}, {time.monotonic() - started:.0f} s")
    return step


def save(model: Model, original: Path, out: Path, shares: list[float]) -> None:
    """The average of original and tuned weights at each share (WiSE-FT, Wortsman et al. 2022), a folder each."""
    before = load_file(original / "model.safetensors")
    tuned = model.bert.state_dict()
    for share in shares:
        mixed = {
            name: torch.lerp(value, tuned[name], share) if name in tuned and value.is_floating_point() else value
            for name, value in before.items()
        }
        folder = out / f"share-{share:g}"
        folder.mkdir(parents=True, exist_ok=True)
        save_file(mixed, folder / "model.safetensors", metadata={"format": "pt"})
        for name in ("config.json", "tokenizer.json"):
            (folder / name).write_bytes((original / name).read_bytes())


def say(message: str) -> None:
    print(f"tune_encoder: {message}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    data_folder = os.environ.get("PEGBOARD_DATA")
    parser.add_argument("--data", type=Path, default=data_folder, required=data_folder is None, help="folder of sets")
    parser.add_argument("--out", type=Path, required=True, help="folder for the weights, one inside it a share")
    parser.add_argument("--written", type=Path, nargs="*", default=sorted(WRITTEN.glob("tune-*.jsonl.gz")))
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=45, help="stop after this long")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.5, 0.7, 1.0], help="of the tuned weights")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(SEED)
    data = Data.read(args.data)
    pairs = data.pairs(args.data, args.written)
    say(f"{len(pairs)} pairs, {len(data.tools)} tools")
    original = verified_model_dir()
    model = Model(original).train()
    steps = train(model, data, pairs, epochs=args.epochs, minutes=args.minutes)
    save(model, original, args.out, args.shares)
    written = sum(len(read(path)) for path in args.written)
    trained = {"pairs": len(pairs), "written": written, "steps": steps, "seed": SEED}
    (args.out / "training.json").write_text(json.dumps(trained) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
