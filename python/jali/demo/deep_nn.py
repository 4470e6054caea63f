"""The Deep-NN workload: NN-20, NN-50 and NN-100 on 28 x 28 images, in integers.

A convolution of 10 x 11 with two maps gives 840 numbers. Dense layers of 92 follow, each number through ReLU by a
look-up, and ten logits. Everything is a word on the torus: a pre-activation must stay within a quarter of it to either
side, where ReLU's table is. Weights are integers of at most 7, so a layer is a linear combination; the table of the layer
before it multiplies with the layer's gain. Biases are constants.

`tools/train/deep_nn.py` trained the weights on 55,000 images: with rounded weights, with three times the noise of the
look-ups, and such that no pre-activation of these images is beyond about four fifths of the window. The largest of the 5,000
training images that were held out is at 0.85. Nothing is known of other images.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jali.demo.tfhe_literal import MESSAGE_2_CARRY_2
from jali.demo.torus import Client, Evaluator, Words, signed_table
from jali.errors import InvalidArgument

__all__ = ["DEPTHS", "LITERAL", "Layer", "Network", "from_file", "infer", "load", "run"]

DEPTHS = (20, 50, 100)
LITERAL = MESSAGE_2_CARRY_2  # what the weights were trained for

SIDE, MAPS, KERNEL, PAD = 28, 2, (10, 11), 1
ROWS, COLUMNS = SIDE + 2 * PAD - KERNEL[0] + 1, SIDE + 2 * PAD - KERNEL[1] + 1
FEATURES = MAPS * ROWS * COLUMNS
WIDTH, CLASSES = 92, 10
WEIGHT_LIMIT = 7
GRAIN_BITS = 24  # constants and entries of tables are multiples of 2^-24 of the torus
QUARTER = 1 << (GRAIN_BITS - 2)  # the end of the window, in grains
_MAX_FILE_BYTES = 400_000

Grains = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layer:
    """What a look-up's results or the pixels go through next: weights (rows, columns), constants (rows,) in grains."""

    weights: npt.NDArray[np.int8]
    constants: Grains

    @property
    def norm2(self) -> int:
        """The largest squared 2-norm of a row: how much of the look-ups' variance a sum collects."""
        return int(np.square(self.weights.astype(np.int64)).sum(1).max())


@dataclass(frozen=True)
class Network:
    """A network's integers. gains[l] is what the numbers that enter layer l are multiplied by before."""

    depth: int
    layers: list[Layer]
    gains: npt.NDArray[np.float64]
    about: dict[str, Any]

    @property
    def look_ups(self) -> int:
        """Look-ups of one image: 840 + 92 (depth - 2)."""
        return FEATURES + WIDTH * (self.depth - 2)

    def pixels(self, images: npt.NDArray[np.generic]) -> Words:
        """From raw pixels (n, 28, 28), 0 to 255, to words (n, 784)."""
        pixels = np.asarray(images)
        if (
            pixels.ndim != 3
            or pixels.shape[1:] != (SIDE, SIDE)
            or not np.issubdtype(pixels.dtype, np.integer)
            or (pixels.size and (pixels.min() < 0 or pixels.max() > 255))
        ):
            raise InvalidArgument(
                f"images are whole numbers from 0 to 255 of shape (n, 28, 28), not {pixels.dtype} {pixels.shape}"
            )
        entries = np.rint(np.arange(256) / 255 * self.gains[0] * QUARTER).astype(np.int64)
        return _words(entries[pixels.reshape(len(pixels), -1)])

    def table(self, layer: int, size: int) -> Words:
        """ReLU on the window of `size` exponents, times the gain of the layer that takes the results."""
        phase = np.arange(-size // 2, size // 2) / (size // 2)  # in quarters
        return signed_table(
            _grains_to_words(
                np.rint(np.maximum(phase, 0) * self.gains[layer] * QUARTER).astype(np.int64)
            )
        )

    def logits(self, words: Words) -> npt.NDArray[np.float64]:
        """Phases (n, 10) as signed numbers of quarters."""
        signed: npt.NDArray[np.float64] = words.astype(np.int64) / 2.0**62
        return signed


def _grains_to_words(grains: Grains) -> npt.NDArray[np.int64]:
    return np.left_shift(grains, 64 - GRAIN_BITS)


def _words(grains: Grains) -> Words:
    return _grains_to_words(np.asarray(grains, np.int64)).astype(np.uint64)


def steps(network: Network, evaluator: Evaluator, x: Any) -> Iterator[tuple[int, Any]]:
    """The server's part: after each layer its number and its pre-activations, at last the logits, as ciphertexts."""
    last = len(network.layers) - 1
    for index, layer in enumerate(network.layers):
        x = evaluator.combine(layer.weights, x, _words(layer.constants))
        yield index, x
        if index < last:
            x = evaluator.apply(network.table(index + 1, evaluator.size), x)


def run(network: Network, evaluator: Evaluator, x: Any) -> Any:
    """The server's part: from encrypted pixels (n, 784) to encrypted logits (n, 10)."""
    for _, result in steps(network, evaluator, x):
        last = result
    return last


def infer(
    network: Network, client: Client, evaluator: Evaluator, images: npt.NDArray[np.generic]
) -> npt.NDArray[np.float64]:
    """Logits (n, 10) of raw images, by a client and a server: the clear ones of `torus`, or encrypted ones."""
    return network.logits(
        client.decrypt(run(network, evaluator, client.encrypt(network.pixels(images))))
    )


def _convolution(kernels: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """The convolution as a matrix (840, 784), rows in the order (map, row, column)."""
    matrix = np.zeros((MAPS, ROWS, COLUMNS, SIDE + 2 * PAD, SIDE + 2 * PAD), np.int8)
    for row in range(ROWS):
        for column in range(COLUMNS):
            matrix[:, row, column, row : row + KERNEL[0], column : column + KERNEL[1]] = kernels
    inner = matrix[..., PAD:-PAD, PAD:-PAD]  # the padding is zeros
    return np.ascontiguousarray(inner.reshape(FEATURES, SIDE * SIDE))


def load(depth: int) -> Network:
    """The trained network of this depth, from the package."""
    if depth not in DEPTHS:
        raise InvalidArgument(f"there are networks of depth 20, 50 and 100, not {depth}")
    with resources.as_file(resources.files("jali.demo") / "weights" / f"nn{depth}.npz") as path:
        network = from_file(path)
    if network.depth != depth:
        raise InvalidArgument(f"{path.name} holds a network of depth {network.depth}, not {depth}")
    return network


def from_file(path: Path) -> Network:
    """A network from a file of `tools/train/deep_nn.py`.

    Raises InvalidArgument for anything that is not one.
    """
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise InvalidArgument(f"{path}: larger than {_MAX_FILE_BYTES} bytes")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise InvalidArgument(f"{path}: not a readable .npz: {error}") from None
    hidden = arrays["hidden"].shape[0] if arrays.get("hidden", np.zeros(())).ndim == 3 else 0
    depth = hidden + 3
    expected: dict[str, tuple[tuple[int, ...], type[np.generic], float]] = {
        "conv": ((MAPS, *KERNEL), np.int8, WEIGHT_LIMIT),
        "first": ((WIDTH, FEATURES), np.int8, WEIGHT_LIMIT),
        "hidden": ((hidden, WIDTH, WIDTH), np.int8, WEIGHT_LIMIT),
        "last": ((CLASSES, WIDTH), np.int8, WEIGHT_LIMIT),
        "conv_bias": ((MAPS,), np.int32, QUARTER),
        "bias": ((hidden + 1, WIDTH), np.int32, QUARTER),
        "last_bias": ((CLASSES,), np.int32, QUARTER),
        "gain": ((depth,), np.float64, 1.0),
    }
    for name, (shape, dtype, limit) in expected.items():
        array = arrays.get(name)
        if array is None or array.shape != shape or array.dtype != dtype:
            held = "nothing" if array is None else f"{array.dtype} {array.shape}"
            raise InvalidArgument(f"{path}: `{name}` is {held}, not {dtype.__name__} {shape}")
        if not np.all(np.abs(array.astype(np.float64)) <= limit):
            raise InvalidArgument(f"{path}: `{name}` has numbers beyond {limit:g}")
    if not np.all(arrays["gain"] > 0):
        raise InvalidArgument(f"{path}: gains must be above 0")
    try:
        about = json.loads(arrays["about"].tobytes())
    except (KeyError, ValueError):
        raise InvalidArgument(f"{path}: `about` is no JSON") from None
    weights = [_convolution(arrays["conv"]), arrays["first"], *arrays["hidden"], arrays["last"]]
    constants = [
        np.repeat(arrays["conv_bias"], ROWS * COLUMNS),
        *arrays["bias"],
        arrays["last_bias"],
    ]
    layers = [Layer(w, c.astype(np.int64)) for w, c in zip(weights, constants, strict=True)]
    return Network(depth, layers, arrays["gain"], about)
