"""The networks of ``jali demo digits`` and ``jali demo mnist``: convolution, square, dense, square,
dense.

``Network.logits`` is the plain model, in float64, that encrypted answers are compared with.
``Network.program`` is what jali.compile makes of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jali.compiler.ir.linear_ops import Dense, Reshape
from jali.compiler.ir.operation import Input
from jali.compiler.ir.traced_ops import Multiply
from jali.compiler.ir.windows import Convolution
from jali.demo.shipped import weights_file
from jali.nn.builder import Builder
from jali.nn.compile import compile as compile_graph
from jali.nn.graph import Graph
from jali.nn.program import Program

__all__ = ["PRECISION_BITS", "Array", "Network", "load"]

Array = npt.NDArray[np.float64]

PRECISION_BITS = 12.0  # of the largest logit: the most for which N = 2^13 is enough


@dataclass(frozen=True)
class Network:
    """A network's weights, and how it pads the image.

    conv_weight (maps, kernel, kernel), conv_bias (maps,), dense1_weight (hidden, maps * out * out)
    with columns in the order (map, row, column), dense1_bias (hidden,), dense2_weight (10, hidden),
    dense2_bias (10,).
    pad: the number of zeros (left, right, top, bottom) around the image.
    pixel_max: the value of a white pixel in the images; the network was trained on pixels in [0,
        1].
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

    def pixels(self, images: npt.NDArray[np.generic]) -> Array:
        """From raw pixels (n, side, side) to what the network takes, (n, 1, side, side) in [0,
        1]."""
        return np.asarray(images, np.float64)[:, None] / self.pixel_max

    def logits(self, images: npt.NDArray[np.generic]) -> Array:
        """From raw pixels (n, side, side) to logits (n, 10)."""
        left, right, top, bottom = self.pad
        x = np.pad(self.pixels(images)[:, 0], ((0, 0), (top, bottom), (left, right)))
        kernel = self.conv_weight.shape[1:]
        windows = np.lib.stride_tricks.sliding_window_view(x, kernel, (1, 2))
        windows = windows[:, :: self.stride, :: self.stride]
        z1 = np.einsum("nyxij,mij->nmyx", windows, self.conv_weight, optimize=True)
        z1 = (z1 + self.conv_bias[:, None, None]).reshape(len(x), -1)
        z2 = (z1 * z1) @ self.dense1_weight.T + self.dense1_bias
        return np.asarray((z2 * z2) @ self.dense2_weight.T + self.dense2_bias)

    def graph(self) -> Graph:
        """The network as a graph, for jali.compile."""
        left, right, top, bottom = self.pad
        builder = Builder()
        x = builder.add("pixels", Input(shape=(1, self.side, self.side)), [])
        x = builder.add(
            "convolution",
            Convolution(
                weight=self.conv_weight[:, None],
                bias=self.conv_bias,
                stride=(self.stride, self.stride),
                padding=((top, bottom), (left, right)),
                dilation=(1, 1),
                groups=1,
            ),
            [x],
        )
        x = builder.add("square", Multiply(), [x, x])
        x = builder.add("flat", Reshape(shape=(x.size,)), [x])
        weight, bias = self.dense1_weight, self.dense1_bias
        x = builder.add("hidden", Dense(weight=weight, bias=bias), [x])
        x = builder.add("hidden square", Multiply(), [x, x])
        weight, bias = self.dense2_weight, self.dense2_bias
        x = builder.add("logits", Dense(weight=weight, bias=bias), [x])
        return builder.graph([x])

    def program(self, images: npt.NDArray[np.generic]) -> Program:
        """The encrypted program, for a CPU or a GPU: its words of 32 bits suit both, and an image
        is one ciphertext of N = 2^13, which a client encrypts in less time than the four of 2^14
        that are planned for a GPU alone.

        images: raw pixels (n, side, side) on which it is calibrated.
        """
        pixels = self.pixels(images)
        return compile_graph(
            self.graph(),
            pixels[:1],
            calibration=pixels,
            precision_bits=PRECISION_BITS,
            input_range=(0.0, 1.0),
        )


def load(name: str) -> Network:
    """The trained network "digits" or "mnist", from the package."""
    side, pixel_max = {"digits": (8, 16.0), "mnist": (28, 255.0)}[name]
    with np.load(weights_file(name), allow_pickle=False) as arrays:
        weights = {
            f"{layer}_{kind}": arrays[f"{layer}_{kind}"].astype(np.float64)
            for layer in ("conv", "dense1", "dense2")
            for kind in ("weight", "bias")
        }
        left, right, top, bottom = (int(v) for v in arrays["pad"])
        stride = int(arrays["stride"])
    return Network(name, side, pixel_max, stride, (left, right, top, bottom), **weights)
