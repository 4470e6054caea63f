"""The program of ``jali serve --demo``: the network of ``jali demo mnist`` for digits that people draw."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from jali.demo import data, network
from jali.demo.network import Array
from jali.nn.compile import compile as compile_graph
from jali.nn.program import Program

__all__ = ["enlarged", "program"]

SIDE, FILLED = 28, 20  # pixels of a picture of MNIST, and of the digit in it
_PRECISION_BITS = 10.0
_UPLOAD = "12 MB"  # of keys, which a phone sends
_EVERY = 10  # of the digits of the calibration


def program() -> Program:
    """The network, compiled so that no drawing leads out of a range: people draw what no calibration
    has seen. That takes a larger ring than ``Network.program``.

    It is calibrated on digits of scikit-learn, enlarged. Raises Unsupported without scikit-learn, and
    FileError without the weights.
    """
    net = network.load("mnist")
    images = enlarged(data.load_digits(test=False).images[::_EVERY])
    pixels = net.pixels(np.concatenate([images, np.clip(3 * images - 1.5 * 255, 0, 255)]))
    return compile_graph(
        net.graph(),
        pixels[:1],
        calibration=pixels,
        precision_bits=_PRECISION_BITS,
        input_range=(0.0, 1.0),
        ranges="proven",
        upload=_UPLOAD,
    )


def enlarged(images: npt.NDArray[np.generic]) -> Array:
    """Digits of scikit-learn (n, 8, 8), with pixels from 0 to 16, as pictures of MNIST (n, 28, 28),
    with pixels from 0 to 255: between pixels the straight line, and a border of zeros."""
    few = images.shape[1]
    at = (np.arange(FILLED) + 0.5) * few / FILLED - 0.5
    left = np.clip(np.floor(at), 0, few - 2).astype(int)
    weights = np.zeros((FILLED, few))
    right = np.clip(at - left, 0, 1)
    weights[np.arange(FILLED), left] = 1 - right
    weights[np.arange(FILLED), left + 1] = right
    border = (SIDE - FILLED) // 2
    found = weights @ (np.asarray(images, np.float64) * 255 / 16) @ weights.T
    return np.pad(found, ((0, 0), (border, border), (border, border)))
