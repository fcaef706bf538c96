from __future__ import annotations

import asyncio
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from pegboard.errors import EncoderError
from pegboard.retrieval import OnnxEncoder

SCRIPTS = [
    "What is the weather in Oslo?",
    "Какая погода в Осло?",
    "奥斯陆的天气怎么样？",
    "オスロの天気は？",
    "ما هو الطقس في أوسلو؟",
    "ओस्लो में मौसम कैसा है?",
    "อากาศที่ออสโลเป็นอย่างไร",
    "오슬로 날씨 어때?",
    "createIssue HTTPServer v2 ❤️ \ud83d",
    "\x00\x01 \u202e tab\tline\n",
]


@pytest.fixture(scope="module")
def onnx() -> OnnxEncoder:
    return OnnxEncoder(threads=1)


def norms(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.norm(vectors, axis=1))


@pytest.mark.requirement("000.eq4")
def test_texts_become_float32_vectors_of_384_numbers_and_length_one(onnx: OnnxEncoder) -> None:
    vectors = onnx.encode_now(["renew a loan", "book a repair"])

    assert (vectors.shape, vectors.dtype, onnx.dimensions) == ((2, 384), np.float32, 384)
    np.testing.assert_allclose(norms(vectors), 1, atol=1e-4)


@pytest.mark.requirement("000.eq4")
def test_what_means_the_same_is_near_though_no_word_is_shared(onnx: OnnxEncoder) -> None:
    query, near, far = onnx.encode_now(
        ["Is it going to rain tomorrow?", "get_forecast: Weather for a place", "find_part: Look for a spare part"]
    )

    assert query @ near > query @ far + 0.15


@pytest.mark.requirement("P7")
@pytest.mark.parametrize("text", SCRIPTS)
def test_any_script_has_a_vector(onnx: OnnxEncoder, text: str) -> None:
    vectors = onnx.encode_now([text])

    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(norms(vectors), 1, atol=1e-4)


@pytest.mark.requirement("P24")
def test_a_text_beyond_the_window_is_cut_to_it(onnx: OnnxEncoder) -> None:
    start = "Extend the due date of a borrowed book. " * onnx.window

    vectors = onnx.encode_now([start + "And something else. " * 20_000, start])

    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-4)


@pytest.mark.requirement("P24", "P6")
@pytest.mark.parametrize(
    "text", ["a" * 100_000, "天" * 100_000, " " * 100_000, "\n".join("ab" * 50_000), "🙂" * 20_000]
)
def test_no_text_is_too_long(onnx: OnnxEncoder, text: str) -> None:
    np.testing.assert_allclose(norms(onnx.encode_now([text])), 1, atol=1e-4)


@pytest.mark.parametrize("text", ["", " ", "\u200b"])
def test_an_empty_text_has_a_vector_too(onnx: OnnxEncoder, text: str) -> None:
    vectors = onnx.encode_now([text])

    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(norms(vectors), 1, atol=1e-4)


def test_no_texts_give_no_rows(onnx: OnnxEncoder) -> None:
    assert onnx.encode_now([]).shape == (0, 384)


def test_a_vector_does_not_depend_on_what_else_is_in_the_batch(onnx: OnnxEncoder) -> None:
    """Ranking and caches rely on it: an embedding that changes with its company is no key to anything."""
    texts = [("word " * length + f"number {length}").strip() for length in (0, 1, 3, 9, 27, 90)] * 6
    alone = np.stack([onnx.encode_now([text])[0] for text in texts[:6]])

    together = onnx.encode_now(texts)

    cosines = (together * np.tile(alone, (6, 1))).sum(axis=1)
    assert cosines.min() > 0.9999


def test_rows_stand_in_the_order_of_the_texts(onnx: OnnxEncoder) -> None:
    texts = [f"{'long ' * (40 - number)} tool {number}" for number in range(40)]

    forward, backward = onnx.encode_now(texts), onnx.encode_now(texts[::-1])

    assert (forward @ backward[::-1].T).argmax(axis=1).tolist() == list(range(40))


def test_the_same_text_has_the_same_vector_every_time(onnx: OnnxEncoder) -> None:
    np.testing.assert_array_equal(onnx.encode_now(["renew a loan"]), onnx.encode_now(["renew a loan"]))


@pytest.mark.requirement("P25")
def test_many_threads_may_encode_at_once_even_the_first_time() -> None:
    fresh = OnnxEncoder(threads=1)
    texts = [f"tool number {number}" for number in range(24)]
    start = threading.Barrier(8)

    def encode(worker: int) -> np.ndarray:
        start.wait()
        return np.stack([fresh.encode_now([text])[0] for text in texts[worker::8]])

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(encode, range(8)))

    expected = np.stack([fresh.encode_now([text])[0] for text in texts])
    for worker, vectors in enumerate(found):
        np.testing.assert_allclose(vectors, expected[worker::8], atol=1e-5)


@pytest.mark.requirement("P25")
async def test_encoding_leaves_the_event_loop_free() -> None:
    """The encoder waits for the loop: on the loop's own thread that would never end."""
    loop_ran, threads = threading.Event(), set[int]()

    class Slow(OnnxEncoder):
        def encode_now(self, texts):  # type: ignore[no-untyped-def]
            threads.add(threading.get_ident())
            assert loop_ran.wait(timeout=30)
            return np.zeros((len(texts), 3), np.float32)

    encoding = asyncio.create_task(Slow().encode(["a"]))
    await asyncio.sleep(0)
    loop_ran.set()

    assert (await encoding).shape == (1, 3)
    assert threading.get_ident() not in threads


def test_the_card_is_read_once_and_names_the_model_and_its_hash(tmp_path: Path) -> None:
    card = {"id": "mini", "model_sha256": "ab" * 32, "dimensions": 3, "window": 8}
    (tmp_path / "card.json").write_text(json.dumps(card))
    encoder = OnnxEncoder(tmp_path)

    first = encoder.model
    (tmp_path / "card.json").unlink()

    assert first == encoder.model == "mini@abababababab"
    assert (encoder.dimensions, encoder.window, encoder.provider) == (3, 8, "onnx")


def test_the_card_of_the_package_fits_the_model_that_comes_with_it(onnx: OnnxEncoder) -> None:
    assert onnx.card["dimensions"] == 384
    assert "MiniLM" in onnx.model
    assert onnx.encode_now(["x"]).shape[1] == onnx.dimensions


@pytest.mark.parametrize(
    "missing", [["card.json"], ["tokenizer.json"], ["model.onnx"], ["card.json", "tokenizer.json", "model.onnx"]]
)
@pytest.mark.parametrize("damage", ["absent", "broken"])
def test_files_that_are_missing_or_broken_are_an_error_that_says_what_to_do(
    onnx: OnnxEncoder, tmp_path: Path, missing: list[str], damage: str
) -> None:
    for name in ("card.json", "tokenizer.json", "model.onnx"):
        (tmp_path / name).write_bytes((onnx._folder / name).read_bytes())
    for name in missing:
        (tmp_path / name).unlink() if damage == "absent" else (tmp_path / name).write_bytes(b"{ not a model")

    with pytest.raises(EncoderError) as caught:
        OnnxEncoder(tmp_path).encode_now(["x"])

    assert "pegboard" in caught.value.remedy


def test_making_an_encoder_reads_no_file(tmp_path: Path) -> None:
    assert OnnxEncoder(tmp_path / "nowhere").provider == "onnx"


BOTH = "Find a flight to Oslo, then turn off the kitchen lights"
SPANS = [(0, 21), (28, 55)]


@pytest.mark.requirement("P5")
def test_a_clause_is_near_to_what_it_asks_for_and_far_from_what_the_other_does(onnx: OnnxEncoder) -> None:
    whole, flight, lights = onnx.encode_clauses_now(BOTH, SPANS)
    search, switch = onnx.encode_now(["search flights: Search for flights", "switch light: Turn a lamp on or off"])

    assert flight @ search > whole @ search > lights @ search
    assert lights @ switch > whole @ switch > flight @ switch
    np.testing.assert_allclose(norms(np.stack([whole, flight, lights])), 1, atol=1e-4)


def test_the_whole_text_beside_its_clauses_is_the_text(onnx: OnnxEncoder) -> None:
    np.testing.assert_allclose(onnx.encode_clauses_now(BOTH, SPANS)[0], onnx.encode_now([BOTH])[0], atol=1e-5)


@pytest.mark.parametrize(
    "span", [(3, 3), (8, 10), (90_000, 90_010)], ids=["empty", "within a word", "beyond the window"]
)
def test_a_clause_without_a_token_of_its_own_is_the_whole_text(onnx: OnnxEncoder, span: tuple[int, int]) -> None:
    whole, part = onnx.encode_clauses_now(BOTH + " " * 90_000, [span])

    np.testing.assert_array_equal(part, whole)


@pytest.mark.requirement("P6")
def test_the_end_of_a_text_beyond_the_window_is_read_as_its_start_is(onnx: OnnxEncoder) -> None:
    ask = "Extend the due date of a borrowed book."
    text = "worker heartbeat lost\n" * 1_000 + ask

    whole, last = onnx.encode_clauses_now(text[-4_000:], [(4_000 - len(ask), 4_000)])

    (meant,) = onnx.encode_now([ask])
    assert last @ meant > whole @ meant


@pytest.mark.requirement("P7")
@pytest.mark.parametrize("text", SCRIPTS)
def test_clauses_of_any_script_have_vectors(onnx: OnnxEncoder, text: str) -> None:
    vectors = onnx.encode_clauses_now(text, [(0, len(text) // 2), (len(text) // 2, len(text))])

    assert vectors.shape == (3, 384)
    assert np.isfinite(vectors).all()
