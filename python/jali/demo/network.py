"""The networks in the clear: convolution, square, dense, square, dense, in float64.

This is the plain model that encrypted answers are compared with.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Network", "load"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Network:
    """A network's weights, and how it pads the image.

    conv_weight (maps, kernel, kernel), conv_bias (maps,), dense1_weight (hidden, maps * out * out) with
    columns in the order (map, row, column), dense1_bias (hidden,), dense2_weight (10, hidden),
    dense2_bias (10,).
    pad: the number of zeros (left, right, top, bottom) around the image.
    pixel_max: the value of a white pixel in the images; the network was trained on pixels in [0, 1].
    """

    name: str
    side: int
    pixel_max: float
    stride: int
    pad: tuple[int, int, int, int]
    conv_weight: Array
    conv_bias: Array
    dense1_weight: Array
    dense1_bias: Array
    dense2_weight: Array
    dense2_bias: Array

    @property
    def kernel(self) -> int:
        """Side of the convolution's kernel."""
        return int(self.conv_weight.shape[1])

    @property
    def maps(self) -> int:
        """Maps of the convolution."""
        return int(self.conv_weight.shape[0])

    @property
    def out(self) -> int:
        """Side of one map after the convolution."""
        left, right, _, _ = self.pad
        return (self.side + left + right - self.kernel) // self.stride + 1

    def padded(self, images: npt.NDArray[np.generic]) -> Array:
        """From raw pixels (n, side, side) to (n, rows, columns) in [0, 1], with zeros around them."""
        left, right, top, bottom = self.pad
        pixels = np.asarray(images, np.float64) / self.pixel_max
        return np.pad(pixels, ((0, 0), (top, bottom), (left, right)))

    def activations(self, images: npt.NDArray[np.generic]) -> tuple[Array, Array, Array]:
        """From raw pixels (n, side, side) to both pre-activations and the logits (n, 10)."""
        x = self.padded(images)
        windows = np.lib.stride_tricks.sliding_window_view(x, (self.kernel, self.kernel), (1, 2))
        windows = windows[:, :: self.stride, :: self.stride]
        z1 = np.einsum("nyxij,mij->nmyx", windows, self.conv_weight, optimize=True)
        z1 = (z1 + self.conv_bias[:, None, None]).reshape(len(x), -1)
        z2 = (z1 * z1) @ self.dense1_weight.T + self.dense1_bias
        return z1, z2, (z2 * z2) @ self.dense2_weight.T + self.dense2_bias

    def logits(self, images: npt.NDArray[np.generic]) -> Array:
        """From raw pixels (n, side, side) to logits (n, 10)."""
        return self.activations(images)[2]


def load(name: str) -> Network:
    """The trained network "digits" or "mnist", from the package."""
    side, pixel_max = {"digits": (8, 16.0), "mnist": (28, 255.0)}[name]
    file = resources.files("jali.demo") / "weights" / f"{name}.npz"
    with file.open("rb") as stream, np.load(stream) as arrays:
        weights = {
            f"{layer}_{kind}": arrays[f"{layer}_{kind}"].astype(np.float64)
            for layer in ("conv", "dense1", "dense2")
            for kind in ("weight", "bias")
        }
        left, right, top, bottom = (int(v) for v in arrays["pad"])
        stride = int(arrays["stride"])
    return Network(name, side, pixel_max, stride, (left, right, top, bottom), **weights)
