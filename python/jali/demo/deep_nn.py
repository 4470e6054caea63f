"""The Deep-NN workload: NN-20, NN-50 and NN-100 on 28 x 28 images, in the clear and on encrypted
images.

A convolution of 10 x 11 with two maps gives 840 sums. Dense layers of 92 follow, each sum through
ReLU by a look-up, and ten scores. Everything is a whole number: a pixel is black or white, weights
are at most 3 in size, results of look-ups are 0 to 3.

A sum s is held as 512 + step s of 1,024 values, and a table has one result for all values that are
nearest to s. So a look-up is wrong if noise is half a step, and even then its result is another one
only if s is beside a sum that gives another one. `step` is a choice for each layer, because it
divides the range of its sums: a larger one has fewer wrong look-ups, and less room. An encrypted
network computes the very numbers of the clear one unless a look-up is wrong.

A sum beyond the range counts modulo 2,048, and of the upper half the look-up gives minus its
result. The clear network does the same, so that this costs accuracy and no agreement.
`tools/train/deep_nn.py` trained the weights such that it is rare, and chose steps for which the
range ends midway between two sums.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jali import tfhe
from jali.demo.shipped import weights_file
from jali.errors import InvalidArgument

__all__ = ["DEPTHS", "PARAMS", "Client", "Layer", "Network", "Server", "from_file", "load"]

DEPTHS = (20, 50, 100)
SIDE, MAPS, KERNEL, PAD = 28, 2, (10, 11), 1
ROWS, COLUMNS = SIDE + 2 * PAD - KERNEL[0] + 1, SIDE + 2 * PAD - KERNEL[1] + 1
FEATURES = MAPS * ROWS * COLUMNS
WIDTH, CLASSES = 92, 10
WHITE = 128  # pixels from here on are white
WEIGHT_LIMIT, BIAS_LIMIT, RESULT_LIMIT = 3, 16, 3
VALUES = 1024
MIDDLE = VALUES // 2  # the value of the sum 0
STEP_LIMIT = 31  # so that a white pixel is a message
MAX_NORM2 = 160
_MAX_FILE_BYTES = 400_000

# The sizes of the preset message_2_carry_2_block, with 128 bits of security. A value is as narrow
# as two steps of the rotation, so that noise takes it for its neighbour all the time: log2_p_fail
# says that, and not how often a sum is taken for another one.
PARAMS = tfhe.Params.create(
    name="deep_nn",
    n=846,
    k=1,
    N=2048,
    rotation="block_binary",
    group=3,
    rotation_gadget=(23, 1),
    switch_gadget=(2, 8),
    lwe_noise_bits=15,
    glwe_noise_bits=15,
    message_bits=5,
    carry_bits=5,
    max_norm2=float(MAX_NORM2),
    log2_p_fail=-0.2,
    security=128,
)

_PER_TORUS2 = float(2 * VALUES) ** 2  # a torus has 2,048 values

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layer:
    """Sums and what becomes of them.

    weights: (rows, columns).
    constants: (rows,), values, so that 0 is the value 512.
    step: a sum of 1, in values.
    table: the look-up's results for the values 0 to 1023, in steps of the next layer; none for the
        last.
    """

    weights: npt.NDArray[np.int8]
    constants: Whole
    step: int
    table: tuple[int, ...] | None

    @property
    def norm2(self) -> int:
        """The largest squared 2-norm of a row: how much of the look-ups' variance a sum
        collects."""
        return int(np.square(self.weights.astype(np.int64)).sum(1).max())


@dataclass(frozen=True)
class Network:
    """A network's whole numbers."""

    layers: list[Layer]
    about: dict[str, Any]

    @property
    def depth(self) -> int:
        """Layers with weights."""
        return len(self.layers)

    @property
    def look_ups(self) -> int:
        """Look-ups of one image."""
        return sum(len(layer.weights) for layer in self.layers if layer.table is not None)

    def pixels(self, images: npt.NDArray[np.generic]) -> Whole:
        """From raw pixels (n, 28, 28), 0 to 255, to what is encrypted, (n, 784): black or white, in
        steps of the first layer."""
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
        white: Whole = (pixels.reshape(len(pixels), -1) >= WHITE) * np.int64(self.layers[0].step)
        return white

    def read(self, values: Whole) -> Whole:
        """The scores of decrypted values (n, 10): the nearest sums."""
        step = self.layers[-1].step
        return (values - MIDDLE + step // 2) // step

    def scores(self, images: npt.NDArray[np.generic]) -> Whole:
        """In the clear: (n, 10). The answer is the index of the largest score, the first if several
        are."""
        return self.read(self.values(images))

    def values(
        self,
        images: npt.NDArray[np.generic],
        noise: Callable[[Layer, tuple[int, ...]], Any] | None = None,
    ) -> Whole:
        """In the clear: the values (n, 10) that decryption gives.

        noise: draws what is added to the sums of a layer, in values.
        """
        x = self.pixels(images).astype(np.float32)
        for layer in self.layers:
            # Every sum is below 2^24, so that it is exact in float32.
            value = x @ layer.weights.T.astype(np.float32) + layer.constants
            if noise is not None:
                value += noise(layer, value.shape)
            whole = np.rint(value).astype(np.int64)
            if layer.table is None:
                found: Whole = whole % VALUES
                return found
            both = np.array([*layer.table, *(-entry for entry in layer.table)], np.float32)
            x = both[whole % (2 * VALUES)]
        raise AssertionError  # the last layer has no table


def sum_variance(norm2: Any) -> Any:
    """The variance of a sum of look-ups' results under PARAMS, in squared values, for weights of
    this squared norm."""
    return _PER_TORUS2 * PARAMS.bootstrapped_variance * norm2


def look_up_variance(norm2: Any) -> Any:
    """The same of what a look-up of such a sum sees, x. It then takes the entry floor(x + 3/4) of
    its table (LookUpTable)."""
    return sum_variance(norm2) + _PER_TORUS2 * PARAMS.variance_before_look_up(0)


class Client:
    """The owner of the images. It has the secret key, and is the only one who can read scores.

    network: of its numbers it uses the steps of the first and the last layer.
    """

    def __init__(
        self, network: Network, params: tfhe.Params = PARAMS, *, threads: int | None = None
    ) -> None:
        self._network = network
        self._client = tfhe.Client(params, threads=threads)

    def public_bytes(self) -> tuple[bytes, bytes]:
        """What the server gets once: parameters, and evaluation keys."""
        return self._client.params.to_bytes(), self._client.evaluation_keys().to_bytes()

    def encrypt(self, images: npt.NDArray[np.generic]) -> bytes:
        """Raw images (n, 28, 28), one ciphertext a pixel."""
        pixels = self._network.pixels(images)
        return self._client.encrypt(pixels, largest=self._network.layers[0].step).to_bytes()

    def decrypt(self, reply: bytes) -> Whole:
        """Scores (n, 10)."""
        scores = tfhe.Ciphertext.from_bytes(reply, self._client.params)
        # A score beyond the range is what it is in the clear network, and no reason to refuse.
        return self._network.read(self._client.decrypt(scores, check=False))


class Server:
    """It has the weights and the client's public keys, and never sees a pixel, a score or an
    answer.

    params, keys: Client.public_bytes().
    min_security: parameters with fewer bits are refused.
    """

    def __init__(
        self,
        network: Network,
        params: bytes,
        keys: bytes,
        device: str = "auto",
        *,
        threads: int | None = None,
        min_security: int = 128,
    ) -> None:
        self._network = network
        self._params = tfhe.Params.from_bytes(params, min_security=min_security)
        public = tfhe.EvaluationKeys.from_bytes(keys, self._params)
        self._evaluator = tfhe.Evaluator(self._params, public, device, threads=threads)
        self._tables = [
            None if layer.table is None else tfhe.Table(self._params, layer.table)
            for layer in network.layers
        ]

    @property
    def engine(self) -> str:
        """The engine and its instruction set."""
        return self._evaluator.engine

    def __call__(self, request: bytes, progress: Callable[[int, int], Any] | None = None) -> bytes:
        """From the bytes of encrypted images to the bytes of encrypted scores.

        progress: called after each layer with how many are done, and how many there are.
        """
        x = self._evaluator.bind(tfhe.Ciphertext.from_bytes(request, self._params))
        layers = self._network.layers
        for done, (layer, table) in enumerate(zip(layers, self._tables, strict=True), 1):
            x = self._evaluator.linear(layer.weights, x, layer.constants, largest=VALUES - 1)
            if table is not None:
                x = self._evaluator.apply(table, x)
            if progress is not None:
                progress(done, len(layers))
        return bytes(x.ciphertext.to_bytes())


def relu_table(step: int, divisor: int, top: int, unit: int) -> tuple[int, ...]:
    """unit min(top, floor(max(s, 0) / divisor + 1/2)) for the sum s whose value is nearest to each
    of the values.

    The sum s has `step` values, from 512 + step s - (step - 1) // 2 on. So the middle of its box of
    the torus is a quarter of a value above that of s if step is even, and as much below it if step
    is odd (look_up_variance).
    """
    s = np.maximum((np.arange(VALUES) - MIDDLE + (step - 1) // 2) // step, 0)
    return tuple(int(v) for v in unit * np.minimum(top, (2 * s + divisor) // (2 * divisor)))


def _convolution(kernels: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """The convolution as a matrix (840, 784), rows in the order (map, row, column)."""
    matrix = np.zeros((MAPS, ROWS, COLUMNS, SIDE + 2 * PAD, SIDE + 2 * PAD), np.int8)
    for row in range(ROWS):
        for column in range(COLUMNS):
            matrix[:, row, column, row : row + KERNEL[0], column : column + KERNEL[1]] = kernels
    inner = matrix[..., PAD:-PAD, PAD:-PAD]  # the padding is black
    return np.ascontiguousarray(inner.reshape(FEATURES, SIDE * SIDE))


def load(depth: int) -> Network:
    """The trained network of this depth, from the package."""
    if depth not in DEPTHS:
        raise InvalidArgument(f"there are networks of depth 20, 50 and 100, not {depth}")
    path = weights_file(f"nn{depth}")
    network = from_file(path)
    if network.depth != depth:
        raise InvalidArgument(f"{path.name} holds a network of depth {network.depth}, not {depth}")
    return network


def from_file(path: Path) -> Network:
    """A network from a file of `tools/train/deep_nn.py`, of any depth from 3 on.

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
    expected: dict[str, tuple[tuple[int, ...], int, int]] = {  # shape, smallest, largest
        "conv": ((MAPS, *KERNEL), -WEIGHT_LIMIT, WEIGHT_LIMIT),
        "first": ((WIDTH, FEATURES), -WEIGHT_LIMIT, WEIGHT_LIMIT),
        "hidden": ((hidden, WIDTH, WIDTH), -WEIGHT_LIMIT, WEIGHT_LIMIT),
        "last": ((CLASSES, WIDTH), -WEIGHT_LIMIT, WEIGHT_LIMIT),
        "conv_bias": ((MAPS,), -BIAS_LIMIT, BIAS_LIMIT),
        "bias": ((hidden + 1, WIDTH), -BIAS_LIMIT, BIAS_LIMIT),
        "last_bias": ((CLASSES,), -BIAS_LIMIT, BIAS_LIMIT),
        "step": ((hidden + 3,), 1, STEP_LIMIT),
        "divisor": ((hidden + 2,), 1, 127),
        "top": ((hidden + 2,), 1, RESULT_LIMIT),
    }
    for name, (shape, low, high) in expected.items():
        array = arrays.get(name)
        if array is None or array.shape != shape or array.dtype != np.int8:
            held = "nothing" if array is None else f"{array.dtype} {array.shape}"
            raise InvalidArgument(f"{path}: `{name}` is {held}, not int8 {shape}")
        if array.size and not low <= int(array.min()) <= int(array.max()) <= high:
            raise InvalidArgument(f"{path}: `{name}` has numbers that are not {low} to {high}")
    try:
        about = json.loads(arrays["about"].tobytes())
    except (KeyError, ValueError):
        raise InvalidArgument(f"{path}: `about` is no JSON") from None
    weights = [_convolution(arrays["conv"]), arrays["first"], *arrays["hidden"], arrays["last"]]
    biases = [
        np.repeat(arrays["conv_bias"], ROWS * COLUMNS),
        *arrays["bias"],
        arrays["last_bias"],
    ]
    steps = [int(step) for step in arrays["step"]]
    layers = []
    for i, (matrix, bias, step) in enumerate(zip(weights, biases, steps, strict=True)):
        table = None
        if i + 1 < len(weights):
            table = relu_table(step, int(arrays["divisor"][i]), int(arrays["top"][i]), steps[i + 1])
        layers.append(Layer(matrix, MIDDLE + step * bias.astype(np.int64), step, table))
    network = Network(layers, about)
    largest = max(layer.norm2 for layer in network.layers)
    if largest > MAX_NORM2:
        raise InvalidArgument(
            f"{path}: a row of weights has the squared norm {largest}, and the parameters allow {MAX_NORM2}"
        )
    return network
