"""A trace as the machine that runs it has it: TFHE on a streaming machine goes in epochs, in the machine's words.

The steps of a trace move the bytes of the engine that recorded it: words of its torus, and keys in the form of its transforms. A machine has words of its
own, and its cores hold so many accumulators at once. The arithmetic stays that of the trace.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jali.errors import LimitExceeded
from jali.simulate import strix
from jali.simulate.lower import lower
from jali.simulate.machine import Machine
from jali.simulate.steps import Entity, Kind, Steps
from jali.simulate.strix import TfheSet
from jali.simulate.trace import Header, Trace
from jali.simulate.workloads import Program

__all__ = ["fitted", "set_of"]

WORDS = (Entity.CIPHERTEXT, Entity.PLAINTEXT, Entity.TEST_VECTOR, Entity.HOST)  # of the torus
TILES = 16  # of a key-switching key, as in workloads.strix
MOST_BYTES = 2.0**53  # of a step: up to here a double holds every whole number


def set_of(header: Header) -> TfheSet:
    """The sizes of a trace of TFHE by the names of Strix's paper."""
    n, k, N = (int(header[name]) for name in ("n", "k", "N"))
    return TfheSet(
        "of the trace", n, k, N, int(header["rotation_gadget"][1]), int(header["switch_gadget"][1])
    )


def fitted(trace: Trace) -> Program:
    """The steps of a trace for a machine.

    On a machine whose file has the units of Strix, a batch of TFHE is rotated in epochs of as many ciphertexts as its scratchpads hold, and
    keys and words have the machine's sizes (its widths `key` and `coefficient`). On every other machine, and for CKKS, they are lower(trace).
    """
    made: dict[int | None, Steps] = {}

    def lowered(epoch: int | None) -> Steps:
        if epoch not in made:
            made.clear()  # a sweep changes the epoch seldom
            made[epoch] = lower(trace) if epoch is None else lower(trace, epoch=epoch, tiles=TILES)
        return made[epoch]

    def program(machine: Machine) -> Steps:
        if trace.header.scheme != "tfhe" or not strix.is_streaming(machine):
            return lowered(None)
        tfhe = set_of(trace.header)
        strix.check(machine, tfhe)
        cores = int(float(machine.parameters["tvlp"]))
        return _in_words_of(
            machine, lowered(cores * strix.largest_batch(machine, tfhe)), trace.header, tfhe
        )

    return program


def _in_words_of(machine: Machine, steps: Steps, header: Header, tfhe: TfheSet) -> Steps:
    """The steps with the machine's bytes of keys that are loaded, and of words."""
    loads, sizes = steps.kind == Kind.LOAD, steps.bytes.astype(np.float64)
    group = int(header["group"])
    pieces = (1 << group) - 1 if header["rotation"] == "multi_bit" else group
    sizes[loads & (steps.entity == Entity.BOOTSTRAPPING_KEY)] = pieces * strix.key_bytes(
        machine, tfhe
    )
    of_switching = loads & (steps.entity == Entity.SWITCHING_KEY)
    if of_switching.any():
        first = steps.record[of_switching] == steps.record[of_switching][0]
        whole = float(sizes[of_switching][first].sum())
        sizes[of_switching] *= strix.switching_key_bytes(machine, tfhe) / whole
    words = np.isin(steps.entity, WORDS)
    sizes[words] *= float(machine.widths["coefficient"]) / (int(header["torus"]) // 8)
    if not (sizes < MOST_BYTES).all():
        raise LimitExceeded(
            f"{machine.name}: a step moves more than 2^53 bytes: make the widths of words, or the numbers they follow from, smaller"
        )
    return replace(steps, bytes=np.ceil(sizes).astype(np.int64))
