"""A run without keys: it does all the work and computes meaningless numbers, at the levels and with the noise of right ones.

It says which keys a program uses, how much noise its results have and how long it takes, before any key exists.
"""

from __future__ import annotations

import numpy as np

from jali import ckks
from jali.ckks import Evaluator
from jali.nn.keys import Demand
from jali.nn.levels import taken
from jali.nn.run import Encrypted, Machine, peak

__all__ = ["Trial", "demanded"]


class Trial:
    """A server of a program that has zeros in the place of keys, and inputs for it."""

    def __init__(self, machine: Machine, device: str = "cpu", threads: int | None = 1) -> None:
        self.machine = machine
        client = ckks.Client(machine.params, threads=threads)
        none = client._core.evaluation_keys([], False, False, [])
        self.server = Evaluator._noting_keys(machine.params, none, device, threads)
        self.requests: list[tuple[ckks.Ciphertext, ...]] = []
        for node in machine.graph.inputs:
            zero = np.zeros(machine.params.slots)
            rms, largest = node.attrs["rms"], max(peak(node), 1.0)
            one = client.encrypt(zero, level=node.attrs["level"], magnitude=rms, peak=largest)
            self.requests.append((one,) * node.attrs["layout"].ciphertexts)
        self.inputs: list[Encrypted] = [
            tuple(map(self.server.bind, request)) for request in self.requests
        ]


def demanded(machine: Machine) -> Demand:
    """What a program needs of its keys, and the noise that it leaves."""
    trial = Trial(machine)
    outputs = machine(trial.server, *trial.inputs)
    products = [
        node.attrs["level"] + taken(node)
        for node in machine.graph
        if node.op in ("multiply", "approximated")
    ]
    return Demand(
        dict(trial.server._core.demand.rotations),
        max(products, default=0),
        tuple(min(x.precision_bits for x in output) for output in outputs),
    )
