"""Fits the scanner's second stage (`pegboard.trust.sentence_model`), and writes its weights and a card of the fit.

    PEGBOARD_DATA=… python scripts/fit_scanner.py

Attacks are those of `scripts/scanner`, honest sentences those of catalogs that may be trained on, and written ones
in five languages. Every score that a bound is chosen by is that of a fold that was not fitted: folds never share a
template or a server. No published attack and no tool of `mcp_large` is read here.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, vstack
from sklearn.linear_model import LogisticRegression

from pegboard.catalog.ingest import read_catalog
from pegboard.evaluation.datasets import CATALOG
from pegboard.retrieval.encoders.onnx import OnnxEncoder
from pegboard.trust.definition_texts import plain, texts
from pegboard.trust.windows import windows
from pegboard.trust.word_features import BUCKETS, WordFeatures
from scanner.own_attacks import Attack, attacks, honest

SEED, FOLDS = 7, 5
SETS = ("catalog_docker", "catalog_klavis", "catalog_toolsdk", "stabletoolbench", "toolalpaca", "nestful", "seal_tools")
WORDS_C, VECTORS_C, VECTOR_SCALE = 10.0, 1.0, 6.0
GATE_PASSES, SAMPLED, ENCODED_ATTACKS = 0.02, 6000, 6000
"""Share of honest sentences that the gate lets pass; other honest sentences, and attacks, that are encoded to fit."""
SUSPICIOUS_RANK, DOUBTFUL_RANK = 8, 80
"""Sentences of real tools, of all of them, that stay above each bound in folds that were not fitted."""
OUT = Path("src/pegboard/trust")


def main() -> None:
    data = Path(os.environ["PEGBOARD_DATA"])
    drawn = np.random.default_rng(SEED)
    good = _honest(data)
    bad = [(sentence, attack) for attack in attacks(SEED) for sentence in windows(plain(attack.text))]
    good_texts, bad_texts = list(good), [sentence for sentence, _ in bad]
    good_folds = _folds(list(good.values()), drawn)
    bad_folds = _folds([attack.template for _, attack in bad], drawn)
    features = WordFeatures()
    of_good, of_bad = _matrix(features, good_texts), _matrix(features, bad_texts)
    print(f"{len(good_texts):,} honest sentences, {len(bad_texts):,} of attacks", file=sys.stderr)

    good_words, bad_words = np.zeros(len(good_texts)), np.zeros(len(bad_texts))
    for fold in range(FOLDS):
        fitted = _fit(of_bad[bad_folds != fold], of_good[good_folds != fold], WORDS_C, sparse=True)
        good_words[good_folds == fold] = fitted.decision_function(of_good[good_folds == fold])
        bad_words[bad_folds == fold] = fitted.decision_function(of_bad[bad_folds == fold])
    words = _fit(of_bad, of_good, WORDS_C, sparse=True)
    gate = float(np.quantile(good_words, 1 - GATE_PASSES))

    passed = np.flatnonzero(good_words >= gate)
    others = drawn.choice(np.flatnonzero(good_words < gate), SAMPLED, replace=False)
    good_rows = np.concatenate([passed, others])
    bad_rows = np.sort(drawn.choice(len(bad_texts), min(ENCODED_ATTACKS, len(bad_texts)), replace=False))
    encoder = OnnxEncoder(threads=1)
    good_inputs = _inputs(encoder, [good_texts[row] for row in good_rows], good_words[good_rows])
    bad_inputs = _inputs(encoder, [bad_texts[row] for row in bad_rows], bad_words[bad_rows])
    good_scores, bad_scores = np.zeros(len(good_rows)), np.zeros(len(bad_rows))
    for fold in range(FOLDS):
        g, b = good_folds[good_rows] == fold, bad_folds[bad_rows] == fold
        fitted = _fit(bad_inputs[~b], good_inputs[~g], VECTORS_C)
        good_scores[g], bad_scores[b] = (
            fitted.decision_function(good_inputs[g]),
            fitted.decision_function(bad_inputs[b]),
        )
    real = np.array([not good[good_texts[row]].startswith("written/") for row in passed])
    judged = np.sort(good_scores[: len(passed)][real])[::-1]
    suspicious, doubtful = float(judged[SUSPICIOUS_RANK]), float(judged[DOUBTFUL_RANK])
    bad_scores[bad_words[bad_rows] < gate] = -np.inf
    last = _fit(bad_inputs, good_inputs, VECTORS_C)

    table = words.coef_[0]
    scale = float(np.abs(table).max() / 127)
    np.savez_compressed(
        OUT / "meaning.npz",
        words=np.round(table / scale).astype(np.int8),
        scale=scale,
        words_bias=float(words.intercept_[0]),
        vector=(last.coef_[0][:-1] * VECTOR_SCALE).astype(np.float32),
        of_words=float(last.coef_[0][-1]),
        bias=float(last.intercept_[0]),
        gate=gate,
        doubtful=doubtful,
        suspicious=suspicious,
    )
    which = [bad[row][1] for row in bad_rows]
    families = _left_out(of_bad, of_good, bad, bad_inputs, bad_rows, good_inputs, encoder, gate, suspicious)
    card = {
        "seed": SEED,
        "sets": list(SETS),
        "honest_sentences": len(good_texts),
        "attack_sentences": len(bad_texts),
        "bounds": {"gate": gate, "doubtful": doubtful, "suspicious": suspicious},
        "gate_recall": _share(bad_words >= gate),
        "template_unseen": {
            "all": _share(bad_scores >= suspicious),
            "doubtful": _share(bad_scores >= doubtful),
            "by_language": _by([each.language for each in which], bad_scores >= suspicious),
            "by_family": _by([each.family for each in which], bad_scores >= suspicious),
        },
        "family_unseen": families,
    }
    (OUT / "meaning.json").write_text(json.dumps(card, indent=1) + "\n", "utf-8")
    print(json.dumps(card, indent=1))


def _honest(data: Path) -> dict[str, str]:
    """Sentences of the catalogs and written ones, with what they must not be parted from: server or template."""
    found: dict[str, str] = {}
    for name in SETS:
        for tool in read_catalog(data / name / CATALOG).tools:
            for text in texts(tool):
                for sentence in windows(text.plain):
                    found.setdefault(sentence, tool.server)
    for written, template in honest(SEED):
        for sentence in windows(plain(written)):
            found.setdefault(sentence, f"written/{template}")
    return found


def _folds(groups: Sequence[str], drawn: np.random.Generator) -> np.ndarray:
    numbers = {group: number for number, group in enumerate(sorted(set(groups)))}
    order = drawn.permutation(len(numbers))
    return np.array([order[numbers[group]] % FOLDS for group in groups])


def _matrix(features: WordFeatures, sentences: Sequence[str]) -> csr_matrix:
    """Counts of features, divided by the root of their number, shape (n, BUCKETS)."""
    numbers, places = features.of(sentences)
    length = np.maximum(np.bincount(places, minlength=len(sentences)), 1)
    return csr_matrix((1 / np.sqrt(length[places]), (places, numbers)), shape=(len(sentences), BUCKETS))


def _inputs(encoder: OnnxEncoder, sentences: Sequence[str], by_words: np.ndarray) -> np.ndarray:
    return np.hstack([encoder.encode_now(sentences) * VECTOR_SCALE, by_words[:, None]])


def _fit(bad: object, good: object, c: float, *, sparse: bool = False) -> LogisticRegression:
    labels = np.r_[np.ones(bad.shape[0]), np.zeros(good.shape[0])]  # type: ignore[attr-defined]
    stacked = vstack([bad, good]) if sparse else np.vstack([bad, good])
    return LogisticRegression(C=c, solver="liblinear", random_state=SEED, max_iter=300).fit(stacked, labels)


def _left_out(
    of_bad: csr_matrix,
    of_good: csr_matrix,
    bad: Sequence[tuple[str, Attack]],
    bad_inputs: np.ndarray,
    bad_rows: np.ndarray,
    good_inputs: np.ndarray,
    encoder: OnnxEncoder,
    gate: float,
    suspicious: float,
) -> dict[str, float]:
    """Recall on each family by models that have not seen it, in any language, at the bounds of the others."""
    names = np.array([attack.family for _, attack in bad])
    found = {}
    for family in sorted(set(names)):
        out = names == family
        words = _fit(of_bad[~out], of_good, WORDS_C, sparse=True)
        shown = out[bad_rows]
        by_words = words.decision_function(of_bad[bad_rows[shown]])
        vectors = _fit(bad_inputs[~shown], good_inputs, VECTORS_C)
        scores = vectors.decision_function(np.hstack([bad_inputs[shown][:, :-1], by_words[:, None]]))
        found[family] = _share((scores >= suspicious) & (by_words >= gate))
    return found


def _by(keys: Sequence[str], hit: np.ndarray) -> dict[str, float]:
    return {key: _share(hit[[each == key for each in keys]]) for key in sorted(set(keys))}


def _share(hit: np.ndarray) -> float:
    return round(float(np.mean(hit)), 3)


if __name__ == "__main__":
    main()
