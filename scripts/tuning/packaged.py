"""The weights of an encoder that `scripts/build_encoder.py` wrote, as the model in torch names them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx.numpy_helper import to_array

BITS_8 = 8
ZERO = 128
"""Of symmetric codes, which are stored without a sign."""
SYMMETRIC = 3
"""Inputs of a layer whose codes need no zero points: what it is given, codes and scales."""


def weights_of(model: Path) -> dict[str, np.ndarray]:
    """All weights but the word table, by the names of `BertModel`: linear layers (out, in), float32.

    They are the quantised ones: vectors are as near to those of the weights before as the model card says.
    """
    graph = onnx.load(model).graph
    stored = {tensor.name: to_array(tensor) for tensor in graph.initializer}
    found = {
        name.removeprefix("bert."): value.astype(np.float32)
        for name, value in stored.items()
        if name.startswith("bert.")
    }
    for node in graph.node:
        if node.op_type == "MatMulNBits":
            found[_weight_of(node.name)] = _block_values(node, stored)
        elif node.op_type == "Cast" and f"{node.output[0]}.half" in stored:
            found[_weight_of(node.name)] = stored[f"{node.output[0]}.half"].astype(np.float32).T
    return found


def _weight_of(node: str) -> str:
    """
    >>> _weight_of("/bert/encoder/layer.0/output/dense/MatMul_Q8G16")
    'encoder.layer.0.output.dense.weight'
    """
    return ".".join(node.removeprefix("/bert/").split("/MatMul")[0].split("/")) + ".weight"


def _block_values(node: onnx.NodeProto, stored: dict[str, np.ndarray]) -> np.ndarray:
    """Codes (out, blocks, of a block) times a scale a block."""
    sizes = {attribute.name: attribute.i for attribute in node.attribute}
    if sizes["bits"] != BITS_8 or len(node.input) != SYMMETRIC:
        raise ValueError(f"{node.name}: no symmetric codes of 8 bits")
    codes, scales = (stored[name] for name in node.input[1:])
    values = (codes.astype(np.float32) - ZERO) * scales.reshape(codes.shape[0], codes.shape[1], 1)
    return values.reshape(sizes["N"], -1)[:, : sizes["K"]]
