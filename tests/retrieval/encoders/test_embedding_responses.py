from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pegboard.retrieval.encoders.embedding_responses import InvalidResponse, vectors_of

numbers = st.floats(-(2.0**100), 2.0**100, width=32)


@given(
    vectors=st.integers(1, 5).flatmap(lambda n: arrays(np.float32, (n, 4), elements=numbers)),
    order=st.randoms(use_true_random=False),
    in_base64=st.booleans(),
)
def test_vectors_are_those_that_were_sent_whatever_their_order_and_encoding(
    vectors: np.ndarray, order: object, in_base64: bool
) -> None:
    def written(vector: np.ndarray) -> object:
        return base64.b64encode(vector.astype("<f4").tobytes()).decode() if in_base64 else vector.tolist()

    rows = [{"index": place, "embedding": written(vector)} for place, vector in enumerate(vectors)]
    order.shuffle(rows)  # type: ignore[attr-defined]
    body = json.dumps({"data": rows}).encode()
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)

    if not lengths.all():
        with pytest.raises(InvalidResponse):
            vectors_of(body, len(vectors), 4)
        return
    np.testing.assert_allclose(vectors_of(body, len(vectors), 4), vectors / lengths, atol=1e-6)


@given(
    body=st.binary()
    | st.text().map(str.encode)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["data", "index", "embedding"]), inner),
    ).map(lambda value: json.dumps(value).encode())
)
def test_no_answer_is_anything_but_vectors_or_nonsense(body: bytes) -> None:
    try:
        vectors = vectors_of(body, 1, 0)
    except InvalidResponse:
        return
    assert vectors.shape[0] == 1
    assert np.isclose(np.linalg.norm(vectors), 1, atol=1e-5)


def test_rows_without_an_index_stand_in_the_order_of_the_texts() -> None:
    body = b'{"data": [{"embedding": [3, 4]}, {"embedding": [0, 2]}]}'

    np.testing.assert_allclose(vectors_of(body, 2, 0), [[0.6, 0.8], [0, 1]], atol=1e-6)


@pytest.mark.parametrize("number", ["1e300", "1e400", "-1e400", "NaN", "Infinity"])
def test_numbers_beyond_all_measure_are_nonsense_or_vectors_and_never_a_warning(number: str) -> None:
    body = f'{{"data": [{{"index": 0, "embedding": [{number}, 1]}}]}}'.encode()

    with pytest.raises(InvalidResponse, match=r"not finite numbers|not a list|not lists"):
        vectors_of(body, 1, 2)
