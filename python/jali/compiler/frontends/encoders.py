"""Encoders of transformers (Vaswani et al. 2017, with the normalisation behind each sum): for
arrays of NumPy, and for jali.compile.

Arrays are (features, tokens): a token is a column. In a ciphertext, what belongs to one token then
lies a whole number of rows apart, so a matrix on the features takes one rotation for each row and
no mask at the ends of rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jali.compiler.ir import scalar
from jali.compiler.ir.graph import Array

__all__ = ["attention", "encoder_layer", "layer_norm"]

EPSILON = 1e-5  # added to a variance, as in PyTorch

Weights = Mapping[str, Array]


def encoder_layer(x: Any, weights: Weights, heads: int) -> Any:
    """y = norm1(x + attention(x)), and norm2(y + outer gelu(inner y)).

    weights: matrices (outputs, inputs) and biases of query, key, value, mixed, inner and outer, the
        latter as query_bias .., and norm1, norm2 with norm1_bias, norm2_bias.
    """
    x = layer_norm(x + attention(x, weights, heads), weights["norm1"], weights["norm1_bias"])
    hidden = scalar.gelu(_dense(x, weights, "inner"))
    return layer_norm(x + _dense(hidden, weights, "outer"), weights["norm2"], weights["norm2_bias"])


def attention(x: Any, weights: Weights, heads: int) -> Any:
    """Every head's softmax(q k / sqrt(size)) v for x (features, tokens), and the matrix `mixed` of
    all heads together."""
    width, tokens = x.shape
    size = width // heads
    q, v = (_dense(x, weights, name).reshape(heads, size, tokens) for name in ("query", "value"))
    # Behind this transposition, the numbers of a token lie as far from those of the next as rows of
    # scores do.
    k = _dense(x, weights, "key").T.reshape(tokens, heads, size).transpose(1, 0, 2)
    # By (head, token that is looked at, token that looks): sums over the second are sums of rows.
    scores = np.exp(np.matmul(k, q * size**-0.5))
    shares = scores / scores.sum(axis=1, keepdims=True)
    return _dense(np.matmul(v, shares).reshape(width, tokens), weights, "mixed")


def layer_norm(x: Any, weight: Array, bias: Array) -> Any:
    """Every column less its mean, over its standard deviation; then each row times its weight, and
    its bias."""
    distance = x - x.mean(axis=0, keepdims=True)
    variance = (distance * distance).mean(axis=0, keepdims=True)
    normed = distance * scalar.inverse_sqrt(variance + EPSILON)
    return normed * weight[:, None] + bias[:, None]


def _dense(x: Any, weights: Weights, name: str) -> Any:
    return weights[name] @ x + weights[f"{name}_bias"][:, None]
