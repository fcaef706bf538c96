"""Fits the scanner's second stage (`pegboard.trust.sentence_model`), and writes its weights and a card of the fit.

    PEGBOARD_DATA=… python scripts/fit_scanner.py [--states FILE]

Attacks are those of `scripts/scanner`, honest sentences those of catalogs that may be trained on, and written ones
in six languages. Every score that a bound is chosen by is that of a fold that was not fitted: folds never share a
template or a server. No published attack and no tool of `mcp_large` is read here. `--states` keeps the encoder's
vectors in a file, for another fit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, vstack
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

from pegboard.catalog.ingest import read_catalog
from pegboard.evaluation.datasets import CATALOG
from pegboard.retrieval.encoders.onnx import OnnxEncoder
from pegboard.trust.definition_texts import plain, texts
from pegboard.trust.sentence_model import Network
from pegboard.trust.windows import windows
from pegboard.trust.word_features import BUCKETS, WordFeatures
from scanner.own_attacks import Attack, attacks, held_out, honest

SEED, FOLDS = 7, 5
SETS = ("catalog_docker", "catalog_klavis", "catalog_toolsdk", "stabletoolbench", "toolalpaca", "nestful", "seal_tools")
WORDS_C = 10.0
HIDDEN, NETWORKS, EPOCHS, DECAY = 32, 5, 12, 1e-3
FOREIGN_COPIES = 4
"""How often an honest sentence with letters beyond ASCII counts: catalogs have few, the written attacks many."""
NEAR_COPIES = 5
"""How often more, for the network, an honest sentence counts that the gate lets pass."""
EASY, EASY_KEPT = 2.0, 0.25
"""Below the gate by so much, words rule a sentence out with certainty; of these the network learns so many."""
KEPT = -1.0
"""By words, the score from which a sentence of an attack is an attack by itself; of each attack the highest one is."""
OWN_FILES, OF_A_FILE = ("docs/**/*.md", "src/**/*.py", "tests/**/*.py", "*.md", "*.toml", "deploy/**/*"), 8
"""Files whose sentences stand for honest results, and how many of each file: catalogs hold no code, logs or pages."""
GATE_PASSES = 0.03
"""Share of honest sentences that the gate lets pass."""
SUSPICIOUS_TOOLS, DOUBTFUL_TOOLS = 5, 90
"""Tools, of all those that were read, that stay above each bound in folds that were not fitted; for the upper one tools
with the same worst sentence count once."""
OUT = Path("src/pegboard/trust")


@dataclass(frozen=True, slots=True)
class Sentences:
    """Sentences with what they must not be parted from, their words' features and vectors; copies: see above."""

    said: list[str]
    groups: list[str]
    features: csr_matrix
    vectors: np.ndarray
    copies: np.ndarray

    def of(self, rows: np.ndarray) -> Sentences:
        picked = np.flatnonzero(rows) if rows.dtype == bool else rows
        return Sentences(
            [self.said[row] for row in picked],
            [self.groups[row] for row in picked],
            self.features[picked],
            self.vectors[picked],
            self.copies[picked],
        )


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    given = argparse.ArgumentParser()
    given.add_argument("--states", type=Path)
    states = given.parse_args().states
    data = Path(os.environ["PEGBOARD_DATA"])
    servers, tools = _honest(data)
    of_attacks = [(attack, list(windows(plain(attack.text)))) for attack in attacks(SEED)]
    attack_of = {sentence: attack for attack, said in of_attacks for sentence in said if sentence not in servers}
    shown = [(family, list(windows(plain(text)))) for text, family in held_out()]
    encoder = _Vectors(states)
    features = WordFeatures()
    good = _sentences(encoder, features, list(servers), list(servers.values()))
    bad = _sentences(encoder, features, list(attack_of), [attack.template for attack in attack_of.values()])
    held = _sentences(encoder, features, [sentence for _, said in shown for sentence in said], [])
    print(f"{len(good.said):,} honest sentences, {len(bad.said):,} of attacks", file=sys.stderr)

    drawn = np.random.default_rng(SEED)
    good_folds, bad_folds = _folds(good.groups, drawn), _folds(bad.groups, drawn)
    bad_words = _crosswise(bad, good, bad_folds, good_folds)[0]
    telling = _telling(of_attacks, dict(zip(bad.said, bad_words, strict=True)))
    kept = np.array([sentence in telling for sentence in bad.said])
    bad, bad_folds = bad.of(kept), bad_folds[kept]
    print(f"{len(bad.said):,} of them tell", file=sys.stderr)

    bad_words, good_words = _crosswise(bad, good, bad_folds, good_folds)
    real = np.array([not server.startswith("written/") for server in good.groups])
    gate = float(np.quantile(good_words[real], 1 - GATE_PASSES))
    near = replace(good, copies=good.copies + NEAR_COPIES * (good_words >= gate))
    easy = (good_words < gate - EASY) & (drawn.random(len(good.said)) > EASY_KEPT)
    near.copies[easy] = 0
    good_scores, bad_scores = np.zeros(len(good.said)), np.zeros(len(bad.said))
    for fold in range(FOLDS):
        g, b = good_folds == fold, bad_folds == fold
        score = _network(bad.of(~b), near.of(~g), bad_words[~b], good_words[~g])
        good_scores[g], bad_scores[b] = score(good.vectors[g], good_words[g]), score(bad.vectors[b], bad_words[b])
    good_scores[good_words < gate] = bad_scores[bad_words < gate] = -np.inf
    place = {sentence: row for row, sentence in enumerate(good.said)}
    of_tools = [good_scores[[place[sentence] for sentence in said]] for said in tools if said]
    doubtful = float(np.sort([scores.max() for scores in of_tools])[::-1][DOUBTFUL_TOOLS])
    suspicious = sorted({float(scores.max()) for scores in of_tools}, reverse=True)[SUSPICIOUS_TOOLS]

    words = _words(bad, good)
    table = words.coef_[0]
    scale = float(np.abs(table).max() / 127)
    rounded = np.round(table / scale).astype(np.int8)
    last = _network(bad, near, bad_words, good_words)
    np.savez_compressed(
        OUT / "meaning.npz",
        words=rounded,
        scale=scale,
        words_bias=float(words.intercept_[0]),
        hidden=last.hidden.astype(np.float16),
        hidden_bias=last.hidden_bias.astype(np.float16),
        out=last.out.astype(np.float16),
        out_bias=last.out_bias,
        gate=gate,
        doubtful=doubtful,
        suspicious=suspicious,
    )
    held_words = np.asarray(words.decision_function(held.features))
    held_scores = np.where(held_words < gate, -np.inf, last(held.vectors, held_words))
    of_text = np.repeat(np.arange(len(shown)), [len(said) for _, said in shown])
    of_held = np.array([held_scores[of_text == number].max() for number in range(len(shown))])
    which = list(map(attack_of.__getitem__, bad.said))
    card = {
        "seed": SEED,
        "sets": list(SETS),
        "honest_sentences": len(good.said),
        "honest_tools": len(tools),
        "attack_sentences": len(bad.said),
        "bounds": {"gate": gate, "doubtful": doubtful, "suspicious": suspicious, "tools_above": SUSPICIOUS_TOOLS},
        "gate_recall": _share(bad_words >= gate),
        "template_unseen": {
            "all": _share(bad_scores >= suspicious),
            "doubtful": _share(bad_scores >= doubtful),
            "by_language": _by([each.language for each in which], bad_scores >= suspicious),
            "by_family": _by([each.family for each in which], bad_scores >= suspicious),
        },
        "family_unseen": _left_out(bad, good, near, which, bad_words, good_words, gate, suspicious),
        "held_out": {
            "texts": len(shown),
            "all": _share(of_held >= suspicious),
            "doubtful": _share(of_held >= doubtful),
            "by_family": _by([family for family, _ in shown], of_held >= suspicious),
        },
    }
    (OUT / "meaning.json").write_text(json.dumps(card, indent=1) + "\n", "utf-8")
    print(json.dumps(card, indent=1))


def _honest(data: Path) -> tuple[dict[str, str], list[list[str]]]:
    """Sentences of the catalogs and written ones, with their server or template; and the sentences of each tool."""
    found: dict[str, str] = {}
    tools = []
    for name in SETS:
        for tool in read_catalog(data / name / CATALOG).tools:
            said = list(dict.fromkeys(sentence for text in texts(tool) for sentence in windows(text.plain)))
            tools.append(said)
            for sentence in said:
                found.setdefault(sentence, tool.server)
    for written, template in honest(SEED):
        for sentence in windows(plain(written)):
            found.setdefault(sentence, f"written/{template}")
    for path in _own_files():
        of_file = list(dict.fromkeys(windows(plain(path.read_text("utf-8")))))
        for sentence in random.Random(str(path)).sample(of_file, min(len(of_file), OF_A_FILE)):  # noqa: S311
            found.setdefault(sentence, f"written/{path}")
    return found, tools


def _own_files() -> list[Path]:
    """Pages, code and tests of this repository, as servers of files return them; none that holds attacks."""
    found = [path for pattern in OWN_FILES for path in sorted(Path().glob(pattern)) if path.is_file()]
    return [path for path in found if not re.search("trust|scan|attack|poison|hostile|impersonation", str(path))]


def _telling(of_attacks: Sequence[tuple[Attack, list[str]]], scores: dict[str, float]) -> set[str]:
    """Sentences that are attacks by themselves: not each sentence of an attack is one."""
    found = set()
    for _, said in of_attacks:
        known = [sentence for sentence in said if sentence in scores]
        found |= {sentence for sentence in known if scores[sentence] >= KEPT}
        if known:
            found.add(max(known, key=scores.__getitem__))
    return found


def _folds(groups: Sequence[str], drawn: np.random.Generator) -> np.ndarray:
    numbers = {group: number for number, group in enumerate(sorted(set(groups)))}
    order = drawn.permutation(len(numbers))
    return np.array([order[numbers[group]] % FOLDS for group in groups])


class _Vectors:
    """The encoder's vectors, kept in a file if there is one."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, np.ndarray] = {}
        if path is not None and path.exists():
            with np.load(path) as kept:
                self._known = dict(zip(kept["keys"].tolist(), kept["rows"], strict=True))
        self._encoder = OnnxEncoder(threads=1)

    def __call__(self, sentences: Sequence[str]) -> np.ndarray:
        keys = [blake2b(each.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest() for each in sentences]
        new = [row for row, key in enumerate(keys) if key not in self._known]
        for row, vector in zip(new, self._encoder.encode_now([sentences[row] for row in new]), strict=True):
            self._known[keys[row]] = vector.astype(np.float16)
        if self._path is not None and new:
            np.savez(self._path, keys=np.array(list(self._known)), rows=np.stack(list(self._known.values())))
        return np.stack([self._known[key] for key in keys]).astype(np.float32)


def _sentences(encoder: _Vectors, features: WordFeatures, said: list[str], groups: list[str]) -> Sentences:
    copies = np.array([1 if each.isascii() else FOREIGN_COPIES for each in said])
    return Sentences(said, groups or said, _matrix(features, said), encoder(said), copies)


def _matrix(features: WordFeatures, sentences: Sequence[str]) -> csr_matrix:
    """Counts of features, divided by the root of their number, shape (n, BUCKETS)."""
    numbers, places = features.of(sentences)
    length = np.maximum(np.bincount(places, minlength=len(sentences)), 1)
    return csr_matrix((1 / np.sqrt(length[places]), (places, numbers)), shape=(len(sentences), BUCKETS))


def _words(bad: Sentences, good: Sentences) -> LogisticRegression:
    labels = np.r_[np.ones(len(bad.said)), np.zeros(len(good.said))]
    weights = np.r_[np.ones(len(bad.said)), good.copies]
    fitted = LogisticRegression(C=WORDS_C, solver="liblinear", random_state=SEED, max_iter=300)
    return fitted.fit(vstack([bad.features, good.features]), labels, weights)


def _crosswise(
    bad: Sentences, good: Sentences, bad_folds: np.ndarray, good_folds: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Scores by words, each by a model that has not seen the fold."""
    of_bad, of_good = np.zeros(len(bad.said)), np.zeros(len(good.said))
    for fold in range(FOLDS):
        b, g = bad_folds == fold, good_folds == fold
        fitted = _words(bad.of(~b), good.of(~g))
        of_bad[b] = fitted.decision_function(bad.features[b])
        of_good[g] = fitted.decision_function(good.features[g])
    return of_bad, of_good


def _network(
    bad: Sentences, good: Sentences, bad_words: np.ndarray, good_words: np.ndarray, networks: int = NETWORKS
) -> Network:
    """Several small networks, whose mean is one."""
    rows = np.repeat(np.arange(len(good.said)), good.copies)
    given = Network.inputs(
        np.vstack([bad.vectors, good.vectors[rows]]), np.r_[bad_words, good_words[rows]].astype(np.float32)
    )
    labels = np.r_[np.ones(len(bad.said)), np.zeros(len(rows))]
    fitted = [
        MLPClassifier((HIDDEN,), alpha=DECAY, max_iter=EPOCHS, batch_size=256, random_state=SEED + number).fit(
            given, labels
        )
        for number in range(networks)
    ]
    return Network(
        hidden=np.hstack([each.coefs_[0] for each in fitted]).astype(np.float32),
        hidden_bias=np.hstack([each.intercepts_[0] for each in fitted]).astype(np.float32),
        out=np.concatenate([each.coefs_[1][:, 0] for each in fitted]).astype(np.float32) / networks,
        out_bias=float(np.mean([each.intercepts_[1][0] for each in fitted])),
    )


def _left_out(
    bad: Sentences,
    good: Sentences,
    near: Sentences,
    which: Sequence[Attack],
    bad_words: np.ndarray,
    good_words: np.ndarray,
    gate: float,
    suspicious: float,
) -> dict[str, float]:
    """Recall on each family by models that saw neither it nor some others, in any language, at the bounds above.

    One network each, not several."""
    names = np.array([attack.family for attack in which])
    families = sorted(set(names))
    found = {}
    for group in range(FOLDS):
        out = np.isin(names, families[group::FOLDS])
        by_words = _words(bad.of(~out), good).decision_function(bad.features[out])
        score = _network(bad.of(~out), near, bad_words[~out], good_words, networks=1)
        hit = (score(bad.vectors[out], by_words) >= suspicious) & (by_words >= gate)
        found |= _by(names[out].tolist(), hit)
    return dict(sorted(found.items()))


def _by(keys: Sequence[str], hit: np.ndarray) -> dict[str, float]:
    return {key: _share(hit[[each == key for each in keys]]) for key in sorted(set(keys))}


def _share(hit: np.ndarray) -> float:
    return round(float(np.mean(hit)), 3)


if __name__ == "__main__":
    main()
