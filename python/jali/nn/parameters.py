"""Parameters: the smallest that are deep enough, secure, and leave little enough noise."""

from __future__ import annotations

import math

import numpy as np

from jali.ckks import Params
from jali.errors import Error, Unsupported
from jali.nn.approximate import NOISE_SHARE
from jali.nn.graph import Graph
from jali.nn.levels import taken

__all__ = ["needed_bits", "smallest"]

_LARGEST_LOG_N = 16  # a ciphertext of the next ring, with as many levels as it has, takes 230 MB, and each key some GB
_SIGMAS = 6.0  # noise beyond so many standard deviations occurs once in 5 * 10^8 numbers


def smallest(
    graph: Graph, depth: int, scale_bits: float, lanes: int, device: str, log_n: int = 0
) -> Params:
    """The smallest secure parameters of this depth with a slot for each lane and a ring of at least 2^log_n, with the word that is
    fast on a kind of device.

    Raises Unsupported, which names what takes the levels, if there are none.
    """
    least = max(10, log_n, lanes.bit_length())  # 2^log_n is at least twice the lanes
    try:
        params = Params.create(depth=depth, scale_bits=scale_bits, device=device)
        if params.log_n < least:
            params = Params.create(depth=depth, scale_bits=scale_bits, device=device, log_n=least)
        if params.log_n <= _LARGEST_LOG_N:
            return params
        refused = f"It would take log_n {params.log_n}."
    except Error as error:
        refused = str(error)
    deep = sorted(graph, key=lambda n: -taken(n))[:3]
    shares = ", ".join(f"{n.name} ({n.attrs.get('by', n.op)}): {taken(n)}" for n in deep)
    raise Unsupported(
        f"the model takes {depth} levels at a scale of {scale_bits:.0f} bits, more than parameters without "
        f"bootstrapping have. Most levels go to {shares}. Ask for fewer precision_bits, calibrate on a smaller range, or replace "
        f"ReLU by a square or by SiLU. {refused}"
    )


def needed_bits(graph: Graph, precision_bits: float) -> list[float]:
    """For each output, the bits that its noise must leave in its scale.

    Six standard deviations of it are then NOISE_SHARE of 2^-precision_bits, in units of the largest output of the calibration.
    """
    bits = precision_bits + math.log2(_SIGMAS / NOISE_SHARE)
    outputs = [graph[name].attrs for name in graph.outputs]
    return [bits + math.log2(np.mean(o["radius"]) / o["largest"]) for o in outputs]
