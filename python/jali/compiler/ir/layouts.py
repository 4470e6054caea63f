"""Layout: which slot of which ciphertext holds which number.

A ciphertext with s slots serves ``lanes`` examples at once: slot k of lane b is slot k lanes + b. A
rotation by k lanes slots is then a cyclic rotation by k of every lane. All that follows is written
for one lane, with s / lanes slots.

An array whose addresses all lie below a power of two, its period, repeats with that period. One
that is longer takes several ciphertexts. Images may be spread: number (c, y, x) of an array with
gap g lies where pixel (y g + c' // g, x g + c' mod g) of plane c // g^2 of a larger grid lies, with
c' = c mod g^2. A convolution with a stride s multiplies the gap by s and has then the few diagonals
of one without a stride (multiplexed packing, Lee et al. 2022).

The client can send numbers in any order, and several times (Gathered). The result of a matrix may
lie in shares, one for every copy of what the matrix takes (Shared).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from jali.compiler.ir.arrays import Array, Shape
from jali.compiler.ir.sparse import Indices

__all__ = [
    "Gathered",
    "Layout",
    "Repeated",
    "Shared",
    "Skewed",
    "contents",
    "fitted",
    "packed",
    "skewed",
    "unpacked",
]


@dataclass(frozen=True)
class Layout:
    """Where the numbers of an array lie.

    slots: of one lane.
    period: a power of two, after which an array of one ciphertext repeats.
    grid: the sizes of the grid on which all axes but the first lie.
    """

    shape: Shape
    slots: int
    period: int
    gap: int = 1
    grid: Shape = ()

    @cached_property
    def addresses(self) -> Indices:
        """For each number of the flattened array, ciphertext times slots + slot. Copies are left
        out."""
        channels, sizes = self._axes
        return self._at(np.arange(channels), [np.arange(size) for size in sizes])

    @cached_property
    def extent(self) -> int:
        """One more than the largest address, without a list of them."""
        channels, sizes = self._axes
        # An address grows with every place. Whole cells of channels reach equally far, so that one
        # of the last two reaches farthest.
        first = max(0, ((channels - 1) // self._cell - 1) * self._cell)
        last = [np.array([size - 1]) for size in sizes]
        return int(self._at(np.arange(first, channels), last).max()) + 1

    @property
    def is_apart(self) -> bool:
        """Whether no two numbers lie in one slot. It takes a list of the addresses only if a row
        reaches into the next one."""
        channels, sizes = self._axes
        fine = 0 if channels == 1 else self.gap - 1
        ends = zip(sizes, self.grid, strict=bool(sizes))
        inside = ((n - 1) * self.gap + fine < pitch for n, pitch in ends)
        return all(inside) or len(np.unique(self.addresses)) == len(self.addresses)

    @property
    def _axes(self) -> tuple[int, Shape]:
        """How many channels there are, and the sizes of the axes that lie on the grid."""
        return (self.shape[0], self.shape[1:]) if self.shape else (1, ())

    @property
    def _cell(self) -> int:
        """How many channels share a plane of the grid."""
        return int(self.gap ** len(self._axes[1]))

    def _at(self, channels: Indices, places: list[Indices]) -> Indices:
        """The addresses of these channels at these places of every axis."""
        axes = len(places)
        channel = channels.reshape(-1, *(1,) * axes)
        address, inside = channel // self._cell, channel % self._cell
        for axis, (found, pitch) in enumerate(zip(places, self.grid, strict=bool(places))):
            place = found.reshape(-1, *(1,) * (axes - axis - 1))
            fine = inside // self.gap ** (axes - axis - 1) % self.gap
            address = address * pitch + place * self.gap + fine
        return np.asarray(address.ravel())

    @property
    def copies(self) -> Indices:
        """How far behind its address every number lies once more."""
        return np.arange(0, self.slots if self.ciphertexts == 1 else 1, self.period)

    @cached_property
    def ciphertexts(self) -> int:
        """How many ciphertexts the array takes."""
        return (self.extent - 1) // self.slots + 1

    @property
    def partial(self) -> bool:
        """Whether slots between the numbers hold parts of sums, which matrices ignore. No function,
        bootstrap or client may see them, because nobody knows how large they are, and because they
        tell of the weights; products may."""
        return False

    def __str__(self) -> str:
        spread = f", gap {self.gap} on {'x'.join(map(str, self.grid))}" if self.gap > 1 else ""
        repeated = f", {self.slots // self.period} times" if self.ciphertexts == 1 else ""
        return f"{self.ciphertexts} x {self.slots} slots{repeated}{spread}"


@dataclass(frozen=True, eq=False)
class Gathered(Layout):
    """An input in an order that suits the only matrix that takes it. The matrix has few entries in
    each row.

    table: (ciphertexts, slots), the index of the number that lies there, or -1 for zero.
    places: (numbers, copies), the addresses of every number.
    like: the layout that the table is, if it is one. Without places and like, every window of the
        ciphertexts holds what the rows take as one of their entries: entry k of a row lies in
        window k, in the slot of the row. The product then takes one diagonal for each ciphertext,
        and the rotations that add the windows.
    """

    table: Indices = field(default_factory=lambda: np.zeros((1, 1), np.int64))
    places: Indices | None = None
    like: Layout | None = None

    @property
    def ciphertexts(self) -> int:
        """How many ciphertexts the array takes."""
        return len(self.table)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Gathered) and np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash((self.shape, self.table.shape, self.table.tobytes()))

    def __str__(self) -> str:
        return f"{self.ciphertexts} x {self.slots} slots, gathered"


@dataclass(frozen=True)
class Shared(Layout):
    """An array in shares. Its addresses in a Layout of the same grid and gap are cut into chunks.
    Block b of the ciphertext holds chunk b, once in every ``every`` slots; after a period, this
    repeats.

    block: the period of what the matrix takes, so that every block can compute its chunk from its
        own copy. A result in such a layout takes as many copies' work as it has copies itself,
        block / every, instead of that of all copies; and the next matrix, whose result has a period
        again, takes block / every times fewer diagonals than it would for one copy. If `every` is
        larger than the chunk, the slots between the chunks hold parts of sums.
    """

    block: int = 1
    chunk: int = 1
    every: int = 1

    @cached_property
    def addresses(self) -> Indices:
        """For each number of the flattened array, its first slot."""
        share, inside = np.divmod(super().addresses, self.chunk)
        return np.asarray(share * self.block + inside)

    @cached_property
    def extent(self) -> int:
        """See Layout."""
        return int(self.addresses.max()) + 1

    @property
    def copies(self) -> Indices:
        """How far behind its address every number lies once more."""
        again = np.arange(0, self.slots, self.period)
        return np.asarray((again[:, None] + np.arange(0, self.block, self.every)).ravel())

    @property
    def partial(self) -> bool:
        """See Layout."""
        return self.every > self.chunk

    def __str__(self) -> str:
        spread = f", gap {self.gap} on {'x'.join(map(str, self.grid))}" if self.gap > 1 else ""
        repeated = f", {self.slots // self.period} times" if self.period < self.slots else ""
        return (
            f"1 x {self.slots} slots{repeated}, {self.chunk} in every {self.every} of each block of "
            f"{self.block}{spread}"
        )


@dataclass(frozen=True)
class Repeated(Layout):
    """Every number lies in ``width`` slots, one behind the other; a power of two. The grid and the
    gap have no meaning."""

    width: int = 1

    @cached_property
    def addresses(self) -> Indices:
        """For each number of the flattened array, its first slot."""
        return np.arange(math.prod(self.shape)) * self.width

    @cached_property
    def extent(self) -> int:
        """See Layout."""
        return (math.prod(self.shape) - 1) * self.width + 1

    @property
    def copies(self) -> Indices:
        """How far behind its address every number lies once more."""
        return (super().copies[:, None] + np.arange(self.width)).ravel()

    def __str__(self) -> str:
        return f"{self.ciphertexts} x {self.slots} slots, each number {self.width} times"


@dataclass(frozen=True)
class Skewed(Layout):
    """A matrix (rows, columns) in several ciphertexts, for products with encrypted vectors from
    both sides (the diagonals of Halevi and Shoup 2014, of blocks instead of numbers).

    A row is cut into ``count`` chunks of ``width`` numbers. Slots i width to (i + 1) width of every
    ciphertext belong to row i, and those of ciphertext j hold its chunk i + j, modulo count. So

    - a vector that repeats after count width slots, rotated by j width, lies as the columns in
      ciphertext j do;
    - a vector of which every number lies in ``width`` slots, one behind the other, lies as the rows
      do in all of them;
    - the sum of all ciphertexts has in the slots of a row what is left to be added of the row;
    - ciphertext j rotated by -j width has numbers of column s mod (count width) in slot s. The sum
      of those is what is left to be added of the columns.

    The grid and the gap have no meaning. A matrix has at most slots / width rows.
    """

    count: int = 1
    width: int = 1

    @cached_property
    def addresses(self) -> Indices:
        """For each number of the flattened array, ciphertext times slots + slot."""
        row, column = (axis.ravel() for axis in np.indices(self.shape))
        chunk, inside = np.divmod(column, self.width)
        return np.asarray((chunk - row) % self.count * self.slots + row * self.width + inside)

    @cached_property
    def extent(self) -> int:
        """See Layout."""
        return int(self.addresses.max()) + 1

    @property
    def ciphertexts(self) -> int:
        """How many ciphertexts the array takes."""
        return self.count

    @property
    def turns(self) -> tuple[int, ...]:
        """For each ciphertext, by how much a vector that repeats is rotated to lie as its columns
        do."""
        return tuple(range(0, self.count * self.width, self.width))

    def __str__(self) -> str:
        return f"{self.count} x {self.slots} slots, skewed by {self.width}"


def contents(layout: Layout) -> Indices:
    """(ciphertexts, slots): the index of the number that lies in each slot, or -1."""
    if isinstance(layout, Gathered):
        return layout.table
    table = np.full(layout.ciphertexts * layout.slots, -1)
    places = layout.addresses[:, None] + layout.copies
    table[places] = np.arange(len(places))[:, None]
    return table.reshape(layout.ciphertexts, layout.slots)


def fitted(
    shape: Shape, slots: int, gap: int = 1, grid: Shape | None = None, least: int = 1
) -> Layout:
    """The layout with the smallest period, but none below `least`."""
    layout = Layout(shape, slots, slots, gap, shape[1:] if grid is None else grid)
    needed = max(layout.extent, least)
    return Layout(shape, slots, min(slots, 1 << (needed - 1).bit_length()), gap, layout.grid)


def skewed(shape: Shape, slots: int) -> Skewed | None:
    """The skewed layout of a matrix in the fewest ciphertexts; None for other arrays, and if one
    ciphertext would do."""
    if len(shape) != 2:
        return None
    columns = 1 << (shape[1] - 1).bit_length()
    count = 1 << (-(-shape[0] * columns // slots) - 1).bit_length()
    if not 1 < count <= columns:
        return None
    return Skewed(shape, slots, slots, 1, shape[1:], count, columns // count)


def packed(layout: Layout, values: Array) -> Array:
    """Examples (batch, size) as the slots of one lane, (batch, ciphertexts, slots). Zeros lie in
    the slots that hold no number."""
    if isinstance(layout, Gathered):
        return np.where(layout.table >= 0, values[:, layout.table], 0.0)
    flat = np.zeros((len(values), layout.ciphertexts * layout.slots))
    for start in layout.copies:
        flat[:, start + layout.addresses] = values
    return flat.reshape(len(values), layout.ciphertexts, layout.slots)


def unpacked(layout: Layout, slots: Array) -> Array:
    """The numbers (batch, size) of the slots (batch, ciphertexts, slots) of a lane."""
    return slots.reshape(len(slots), -1)[:, layout.addresses]
