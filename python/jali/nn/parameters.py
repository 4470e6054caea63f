"""Parameters: the smallest that are deep enough, secure, and leave little enough noise; and the keys for them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from jali import ckks
from jali.ckks import Evaluator, Params
from jali.errors import Error, Unsupported
from jali.nn.approximate import NOISE_SHARE
from jali.nn.graph import Graph
from jali.nn.levels import taken
from jali.nn.run import Encrypted, Machine, peak

__all__ = ["Demand", "demanded", "key_bytes", "keys", "needed_bits", "smallest"]

_WORD_BYTES = {"w32": 4, "w52": 8, "w64": 8}
_LARGEST_LOG_N = 16  # a ciphertext of the next ring, with as many levels as it has, takes 230 MB, and each key some GB
_SIGMAS = 6.0  # noise beyond so many standard deviations occurs once in 5 * 10^8 numbers


@dataclass(frozen=True)
class Demand:
    """The keys that a program uses: each rotation with the highest level at which it does, and the highest product, 0 if there
    is none. noise_bits: for each output, -log2 of the standard deviation of its noise, in its scale."""

    rotations: dict[int, int]
    product: int
    noise_bits: tuple[float, ...]


def smallest(graph: Graph, depth: int, scale_bits: float, lanes: int, device: str) -> Params:
    """The smallest secure parameters of this depth with a slot for each lane, with the word that is fast on a kind of device.

    Raises Unsupported, which names what takes the levels, if there are none.
    """
    least = max(10, lanes.bit_length())  # 2^log_n is at least twice the lanes
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


def demanded(machine: Machine) -> Demand:
    """What the program uses of an evaluator, found by a run without keys, which computes meaningless numbers."""
    client = ckks.Client(machine.params, threads=1)
    none = client._core.evaluation_keys([], False, False, [])
    server = Evaluator._noting_keys(machine.params, none)
    inputs: list[Encrypted] = []
    for node in machine.graph.inputs:
        zero = np.zeros(machine.params.slots)
        one = server.bind(
            client.encrypt(
                zero, level=node.attrs["level"], magnitude=node.attrs["rms"], peak=peak(node)
            )
        )
        inputs.append((one,) * node.attrs["layout"].ciphertexts)
    outputs = machine(server, *inputs)
    bits = tuple(min(x.precision_bits for x in output) for output in outputs)
    products = [
        node.attrs["level"] + taken(node)
        for node in machine.graph
        if node.op in ("multiply", "approximated")
    ]
    return Demand(dict(server._core.demand.rotations), max(products, default=0), bits)


def needed_bits(graph: Graph, precision_bits: float) -> list[float]:
    """For each output, the bits that its noise must leave in its scale.

    Six standard deviations of it are then NOISE_SHARE of 2^-precision_bits, in units of the largest output of the calibration.
    """
    bits = precision_bits + math.log2(_SIGMAS / NOISE_SHARE)
    outputs = [graph[name].attrs for name in graph.outputs]
    return [bits + math.log2(np.mean(o["radius"]) / o["largest"]) for o in outputs]


def key_bytes(params: Params, level: int) -> int:
    """The bytes of one key-switching key for a level and those below: one polynomial over its primes and the special ones for
    each digit. The other half of the key is a seed of 32 bytes."""
    limbs = len(params.level(level).primes)
    digits = math.ceil(limbs / math.ceil(params.q_count / params.dnum))
    word = _WORD_BYTES[params.word]
    return digits * (limbs + params.p_count) * 2 * params.slots * word + 32


def keys(client: ckks.Client, demand: Demand) -> ckks.EvaluationKeys:
    """The keys of a demand, each for the levels at which it is used."""
    if not demand.rotations and not demand.product:
        return client.evaluation_keys(relinearise=False)

    def uses(x: ckks.EncryptedArray) -> list[ckks.EncryptedArray]:
        server, fresh = x.evaluator, x.ciphertext
        explicit, found = server.explicit, []
        if demand.product:
            low = explicit.drop_to(fresh, demand.product)
            found.append(server.bind(explicit.relinearise_rescale(explicit.square(low))))
        for step, level in demand.rotations.items():
            found.append(server.bind(explicit.rotate(explicit.drop_to(fresh, level), step)))
        return found

    example = client.encrypt(np.zeros(client.params.slots), magnitude=2.0**-10, peak=2.0**-9)
    return client.evaluation_keys(for_=uses, example=example)
