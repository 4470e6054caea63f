"""How the networks lie on the slots of one ciphertext.

A network becomes a short program on vectors of `slots` numbers: `Linear`, `Square`, `Linear`, `Square`, `Linear`. A
`Linear` is a sum of diagonals, sum_d D_d[s] x[s + d], which takes one level. Sums of evenly spaced slots (rotations and
additions) and a bias follow. `simulate` runs the program on plain numbers; jali.demo.roles runs it on ciphertexts.

The slots are divided into blocks. An image is sent as one ciphertext.

**Convolution.** With few kernel positions (digits: 4 x 4), block k holds, for every map and output position, the pixel
under kernel position k. That takes one diagonal, then the sum over the blocks. With many kernel positions (mnist: 5 x 5)
the stride of two is used. The image's four phases, X_p[y, x] = image[2 y + p_y, 2 x + p_x], lie in four blocks, each
repeated for every map. Output (y, x) needs X_p[y + i, x + j] only for i, j in 0..2. That takes nine diagonals, then the
sum over the four blocks. Pixels beyond the edge have weight zero in the diagonals. In both cases every block holds the
whole result, because the sum is cyclic.

**First dense layer.** Every block has the whole vector v of length B, and computes a share of the rows. Slot c R + t of
block b starts row b R' + t at element c R + t, and takes R diagonals. Rotations then add the B / R partial sums of a
row. Thus R diagonals and log2(B / R) rotations replace hundreds of diagonals. Row b R' + t ends in slot t of block b; R'
<= R rows of a block are used. The other slots hold partial sums that nobody reads, and later layers give them weight zero.

**Last dense layer.** Output o is collected in the slots o - 16 + 16 c of all blocks by sixteen diagonals, for c = 0, 1 ..
if o - 16 + 16 c + i is one of the block's R' rows for some i in 0..15. It is then summed over c and the blocks. Logit o
ends in slot o - 16, that is, among the last sixteen. The layer needs no rotations that the layers before do not need.

**Ranges.** A square allows a free factor at each layer. Pre-activations are multiplied by `gains`, powers of two that are
included in weights and biases. They trade the rounding of values against that of weights. Logits are scaled so that they
fit the integer bits at level 0.

**What the client learns.** The unread slots of a reply hold partial sums of the last layer, so a client that looks at
them learns more about the network than ten logits. Zeroing them would take one level. A service whose weights are secret
should spend it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jali.demo.network import Array, Network

__all__ = ["Linear", "Program", "Square", "compile_network", "simulate"]

CLASSES = 10
GROUP = 16  # slots for the ten outputs of the last layer
BABY_STEP = (
    8  # in the dense layers: rotations by 1 .. 7 share a ModUp, and their keys serve both layers
)


@dataclass(frozen=True)
class Linear:
    """y[s] = sum over t of z[s + t strides] + bias[s], z[s] = sum_d diagonals[d][s] x[s + d], cyclically.

    baby_step: with d = g + b, where g is a multiple of baby_step, the sum is sum_g rot_g(sum_b rot_-g(D_{g+b}) rot_b(x)).
        Every rot_b(x) is computed once (baby steps and giant steps).
    sums: the (stride, count) of sums of evenly spaced slots, which follow one another; each count is a power of two.
    """

    diagonals: Mapping[int, Array]
    baby_step: int
    sums: tuple[tuple[int, int], ...]
    bias: Array

    def giants(self) -> dict[int, dict[int, Array]]:
        """The diagonals by giant and baby step, each rotated by its giant step."""
        out: dict[int, dict[int, Array]] = {}
        for d, diagonal in sorted(self.diagonals.items()):
            b = d % self.baby_step
            out.setdefault(d - b, {})[b] = np.roll(diagonal, d - b)
        return out

    def rotations(self) -> set[int]:
        """Every rotation for which it needs a key."""
        split = [{d % self.baby_step, d - d % self.baby_step} for d in self.diagonals]
        return set().union(*split, self.sum_rotations()) - {0}

    def sum_rotations(self) -> list[int]:
        """The rotations of the sums, in their order."""
        return [stride << k for stride, count in self.sums for k in range(count.bit_length() - 1)]


@dataclass(frozen=True)
class Square:
    """y = x * x, slot by slot. It takes one level."""


@dataclass(frozen=True)
class Program:
    """What the server computes, what the client sends, and where it finds the logits.

    gather: (slots,) for each slot, the index of its pixel in the flattened image, or -1 for zero.
    input_gain: the factor by which pixels are multiplied before encryption.
    outputs: the slots of the ten logits.
    output_gain: the factor by which the logits in these slots were multiplied.
    """

    slots: int
    gather: npt.NDArray[np.int64]
    input_gain: float
    steps: tuple[Linear | Square, ...]
    outputs: npt.NDArray[np.int64]
    output_gain: float

    @property
    def depth(self) -> int:
        """How many levels the program takes."""
        return len(self.steps)

    def rotations(self) -> list[int]:
        """Every rotation for which the server needs a key."""
        linear = [step.rotations() for step in self.steps if isinstance(step, Linear)]
        return sorted(set().union(*linear))

    def pack(self, images: npt.NDArray[np.generic]) -> Array:
        """From raw pixels (n, side, side) to the slots (n, slots) that the client encrypts."""
        flat = np.asarray(images, np.float64).reshape(len(images), -1) * self.input_gain
        return np.where(self.gather >= 0, flat[:, self.gather], 0.0)

    def unpack(self, slots: Array) -> Array:
        """From decrypted slots (n, slots) to logits (n, 10)."""
        return slots[:, self.outputs] / self.output_gain


def simulate(program: Program, x: Array) -> Array:
    """The program on plain numbers (n, slots). A rotation by s is np.roll by -s."""
    for step in program.steps:
        if isinstance(step, Square):
            x = x * x
            continue
        y = np.zeros_like(x)
        for g, terms in step.giants().items():
            inner = sum(diagonal * np.roll(x, -b, axis=1) for b, diagonal in terms.items())
            y += np.roll(inner, -g, axis=1)
        for rotation in step.sum_rotations():
            y = y + np.roll(y, -rotation, axis=1)
        x = y + step.bias
    return x


def compile_network(
    network: Network, slots: int, gains: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
) -> Program:
    """The program of a network on `slots` slots.

    gains: the factors of pixels in [0, 1], of the first and second pre-activations, and of logits.
    """
    pixel_gain, gain1, gain2, logit_gain = gains
    positions = network.kernel * network.kernel
    if network.maps * network.out**2 * _power_of_two(positions) <= slots:
        gather, conv, places, block = _gathered_convolution(network, slots)
        baby_step = 1
    else:
        gather, conv, places, block = _phased_convolution(network, slots)
        baby_step = -(-network.side // network.stride)  # a row of a phase
    bias1 = np.zeros(block)
    bias1[places] = np.repeat(network.conv_bias, network.out**2) * gain1
    first = Linear(
        {d: v * (gain1 / pixel_gain) for d, v in conv.items()},
        baby_step,
        ((block, slots // block),),
        np.tile(bias1, slots // block),
    )
    second, used = _dense_by_blocks(
        network.dense1_weight * (gain2 / gain1**2),
        network.dense1_bias * gain2,
        places,
        block,
        slots,
    )
    third, outputs = _dense_last(
        network.dense2_weight * (logit_gain / gain2**2),
        network.dense2_bias * logit_gain,
        used,
        block,
        slots,
    )
    steps = (first, Square(), second, Square(), third)
    return Program(slots, gather, pixel_gain / network.pixel_max, steps, outputs, logit_gain)


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _pixel(network: Network, row: int, column: int) -> int:
    """Index into the flattened image of a place of the padded one, -1 outside."""
    left, _, top, _ = network.pad
    y, x = row - top, column - left
    inside = 0 <= y < network.side and 0 <= x < network.side
    return y * network.side + x if inside else -1


def _gathered_convolution(
    network: Network, slots: int
) -> tuple[npt.NDArray[np.int64], dict[int, Array], npt.NDArray[np.int64], int]:
    """(gather, diagonals, slots of the outputs within a block, block size): one kernel position a block."""
    n, k, out = network.maps, network.kernel, network.out
    block = slots // _power_of_two(k * k)
    gather = np.full(slots, -1, np.int64)
    diagonal = np.zeros(slots)
    for position in range(k * k):
        i, j = divmod(position, k)
        for m, y, x in np.ndindex(n, out, out):
            s = position * block + (m * out + y) * out + x
            gather[s] = _pixel(network, network.stride * y + i, network.stride * x + j)
            diagonal[s] = network.conv_weight[m, i, j] if gather[s] >= 0 else 0.0
    return gather, {0: diagonal}, np.arange(n * out * out), block


def _phased_convolution(
    network: Network, slots: int
) -> tuple[npt.NDArray[np.int64], dict[int, Array], npt.NDArray[np.int64], int]:
    """The same, with the phases of a strided convolution in the blocks."""
    n, k, out, stride = network.maps, network.kernel, network.out, network.stride
    phases = stride * stride
    block = slots // _power_of_two(phases)
    taps = -(-k // stride)  # kernel positions of one phase, along one side
    side = -(-network.side // stride)  # of one phase's image
    if n * side * side > block:
        raise ValueError(f"{n} maps of {side} x {side} do not fit blocks of {block} slots")
    gather = np.full(slots, -1, np.int64)
    diagonals = {i * side + j: np.zeros(slots) for i in range(taps) for j in range(taps)}
    for phase in range(phases):
        py, px = divmod(phase, stride)
        for m, y, x in np.ndindex(n, side, side):
            s = phase * block + (m * side + y) * side + x
            gather[s] = _pixel(network, stride * y + py, stride * x + px)
            if y >= out or x >= out:
                continue
            for i, j in np.ndindex(taps, taps):
                ky, kx = stride * i + py, stride * j + px
                seen = y + i < side and x + j < side  # else: a zero beyond the edge
                if ky < k and kx < k and seen:
                    diagonals[i * side + j][s] = network.conv_weight[m, ky, kx]
    m, y, x = np.meshgrid(np.arange(n), np.arange(out), np.arange(out), indexing="ij")
    return gather, diagonals, ((m * side + y) * side + x).ravel(), block


def _dense_by_blocks(
    weight: Array, bias: Array, places: npt.NDArray[np.int64], block: int, slots: int
) -> tuple[Linear, int]:
    """A dense layer on a vector that every block holds, element j in slot places[j].

    Returns it and R', the rows a block: row b R' + t ends in slot t of block b.
    """
    rows, blocks = len(weight), slots // block
    used = -(-rows // blocks)
    group = _power_of_two(used)  # R
    column = np.full(block, -1)
    column[places] = np.arange(len(places))
    s = np.arange(slots)
    t, row = s % group, s // block * used + s % group
    diagonals = {}
    for d in range(group):
        j = column[(s + d) % block]
        valid = (t < used) & (row < rows) & (j >= 0)
        diagonals[d] = np.where(valid, weight[np.where(valid, row, 0), np.where(valid, j, 0)], 0.0)
    valid = (s % block < used) & (row < rows)
    placed = np.where(valid, bias[np.where(valid, row, 0)], 0.0)
    return Linear(diagonals, min(group, BABY_STEP), ((group, block // group),), placed), used


def _dense_last(
    weight: Array, bias: Array, used: int, block: int, slots: int
) -> tuple[Linear, npt.NDArray[np.int64]]:
    """The layer of ten outputs, on rows that lie as _dense_by_blocks leaves them."""
    hidden = weight.shape[1]
    chunks = _power_of_two(1 + -(-used // GROUP))
    s = np.arange(slots)
    # Slot s stands for output o and chunk c of the block in which it lies once GROUP is added.
    shifted = (s + GROUP) % slots
    b, o, c = shifted // block, shifted % GROUP, shifted % block // GROUP
    diagonals = {}
    for d in range(GROUP):
        t = GROUP * (c - 1) + o + d
        row = b * used + t
        valid = (c < chunks) & (o < CLASSES) & (t >= 0) & (t < used) & (row < hidden)
        diagonals[d] = np.where(valid, weight[np.where(valid, o, 0), np.where(valid, row, 0)], 0.0)
    outputs = (np.arange(CLASSES) - GROUP) % slots
    placed = np.zeros(slots)
    placed[outputs] = bias
    sums = ((GROUP, chunks), (block, slots // block))
    return Linear(diagonals, BABY_STEP, sums, placed), outputs
