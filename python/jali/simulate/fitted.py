"""A trace as the machine that runs it has it: TFHE goes in epochs or waves, and words have the
machine's size.

The steps of a trace move the bytes of the engine that recorded it: words of its torus, and keys in
the form of its transforms. A machine has words of its own, and its cores hold so many accumulators
at once. The arithmetic stays that of the trace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from jali.errors import LimitExceeded
from jali.simulate import strix
from jali.simulate.lower import lower
from jali.simulate.machine import Machine
from jali.simulate.steps import Entity, Kind, Steps
from jali.simulate.strix import TfheSet
from jali.simulate.trace import Header, Trace

__all__ = ["Fitted", "fitted", "residue_bytes", "set_of"]

WORDS = (Entity.CIPHERTEXT, Entity.PLAINTEXT, Entity.TEST_VECTOR, Entity.HOST)  # of the torus
RESIDUES = (Entity.CIPHERTEXT, Entity.PLAINTEXT, Entity.KEY, Entity.TWIDDLE, Entity.INVERSE_TWIDDLE, Entity.SCRATCH)  # fmt: skip
TILES = 16  # of a key-switching key, as in workloads.strix
MOST_BYTES = 2.0**53  # of a step: up to here a double holds every whole number


def set_of(header: Header) -> TfheSet:
    """The sizes of a trace of TFHE by the names of Strix's paper."""
    n, k, N = (int(header[name]) for name in ("n", "k", "N"))
    return TfheSet(
        "of the trace", n, k, N, int(header["rotation_gadget"][1]), int(header["switch_gadget"][1])
    )


@dataclass(frozen=True)
class Fitted:
    """The steps of a trace for a machine.

    On a machine whose file has the units of Strix, a batch of TFHE is rotated in epochs of as many
    ciphertexts as its scratchpads hold, and keys and words have the machine's sizes (its widths
    `key` and `coefficient`). A machine whose file has the parameter `wave` rotates so many
    ciphertexts together, and then the next ones. Of CKKS, residues have the machine's words
    (decision 0038). Otherwise the steps are lower(trace).
    """

    trace: Trace
    made: dict[tuple[int | None, int], Steps] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def bootstrappings(self) -> int:
        """Bootstrappings of TFHE in the trace."""
        records = self.trace.records if self.trace.header.scheme == "tfhe" else ()
        return sum(int(r["batch"]) for r in records if "steps" in r.shape)

    def _lowered(self, epoch: int | None, tiles: int = 1) -> Steps:
        if (epoch, tiles) not in self.made:
            self.made.clear()  # a sweep changes the epoch seldom
            self.made[epoch, tiles] = lower(self.trace, epoch=epoch, tiles=tiles)
        return self.made[epoch, tiles]

    def __call__(self, machine: Machine) -> Steps:
        header = self.trace.header
        if header.scheme != "tfhe":
            return _residues_of(machine, self._lowered(None), header)
        if not strix.is_streaming(machine):
            wave = machine.parameters.get("wave")
            return self._lowered(None if wave is None else max(1, int(float(wave))))
        tfhe = set_of(header)
        strix.check(machine, tfhe)
        epoch = int(float(machine.parameters["tvlp"])) * strix.largest_batch(machine, tfhe)
        return _in_words_of(machine, self._lowered(epoch, TILES), header, tfhe)


def fitted(trace: Trace) -> Fitted:
    """The program of a trace."""
    return Fitted(trace)


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
    return _sized(machine, steps, sizes)


def residue_bytes(machine: Machine, header: Header) -> float | None:
    """Bytes of a residue of CKKS on a machine: as many of its words as the longest prime needs.
    None if its file gives no width."""
    if "coefficient" not in machine.widths:
        return None
    word = float(machine.widths["coefficient"])
    if not word > 0:
        raise LimitExceeded(f"widths.coefficient of {machine.name} is {word:g}: a word has bytes")
    longest = max(int(bits) for bits in header["prime_bits"])
    return word * math.ceil(longest / (8 * word) - 1e-9)


def _residues_of(machine: Machine, steps: Steps, header: Header) -> Steps:
    """The steps with the machine's bytes of residues. What the host holds stays: it is no
    residues."""
    own, wanted = int(header["word_bytes"]), residue_bytes(machine, header)
    if wanted is None or wanted == own:
        return steps
    sizes = steps.bytes.astype(np.float64)
    sizes[np.isin(steps.entity, RESIDUES)] *= wanted / own
    return _sized(machine, steps, sizes)


def _sized(machine: Machine, steps: Steps, sizes: NDArray[np.float64]) -> Steps:
    """The steps with other bytes. Raises LimitExceeded for those that are not exact."""
    if not (sizes < MOST_BYTES).all():
        raise LimitExceeded(
            f"{machine.name}: a step moves more than 2^53 bytes: make the widths of words, or the numbers they follow from, smaller"
        )
    return replace(steps, bytes=np.ceil(sizes).astype(np.int64))
