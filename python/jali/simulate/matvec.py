"""The matrix-vector accelerator by formulas: bytes and reads of every entity, cycles, resources,
and what bounds a product.

The numbers of the equations are the paper's (he-matvec-fpga, III). A product of an m x n matrix
with an encrypted vector computes m partial
sums: rotate the vector (an automorphism and a key switch), multiply by a plaintext, rescale, add.
It uses one digit a residue, one special prime and one key for each rotation. docs/hardware.md
compares the results with the paper's tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from jali.errors import InvalidArgument, Unsupported
from jali.simulate.allocator import DataEntity
from jali.simulate.machine import Machine
from jali.simulate.papers import paper
from jali.simulate.steps import Kind

__all__ = [
    "CkksSet",
    "Product",
    "Transforms",
    "benchmarks",
    "cycles",
    "key_switch_rate",
    "partial_sum_s",
    "product_s",
    "published_sets",
    "resources",
    "scratchpad_bytes",
    "transforms_of_key_switch",
    "transforms_of_partial_sum",
]


@dataclass(frozen=True)
class CkksSet:
    """The parameters of CKKS of a row of the paper.

    N: length of polynomials.
    l: residues of a ciphertext (the paper's "computation depth").
    """

    name: str
    N: int
    l: int  # noqa: E741

    def __post_init__(self) -> None:
        if self.l < 1 or self.N < 4 or self.N & (self.N - 1):
            raise InvalidArgument(
                f"the set {self.name!r} has N {self.N} and l {self.l}: N must be a power of two of at least 4, and l at least 1"
            )


def published_sets() -> dict[str, CkksSet]:
    """Set-A, Set-B and Set-C of Table II."""
    return {
        name: CkksSet(name, int(float(sizes["N"])), int(float(sizes["l"])))
        for name, sizes in paper("matvec").sets.items()
    }


def benchmarks() -> dict[str, tuple[int, int]]:
    """The matrices of Table IV: m rows, n columns."""
    table = paper("matvec").tables["IV"]
    names = dict.fromkeys(cell.row for cell in table.cells)
    return {
        name: (int(table.cell(name, "m").value), int(table.cell(name, "n").value)) for name in names
    }


@dataclass(frozen=True)
class Product:
    """An m x n matrix times an encrypted vector. word_bytes: bytes of a coefficient."""

    m: int
    n: int
    ckks: CkksSet
    word_bytes: float = 8

    def __post_init__(self) -> None:
        if min(self.m, self.n) < 1 or self.word_bytes <= 0:
            raise InvalidArgument(
                f"a product of {self.m} x {self.n} with words of {self.word_bytes} bytes: all must be positive"
            )

    @property
    def ciphertexts(self) -> int:
        """Ciphertexts of the vector: ceil(2n/N)."""
        return -(-2 * self.n // self.ckks.N)

    @property
    def chunks(self) -> int:
        """The paper's k (II-D): 1 if m >= n, else floor(N/2m). It lets the chunks of a partial sum
        fill all slots, also beyond the n that there are (contradiction E6)."""
        return 1 if self.m >= self.n else max(1, self.ckks.N // (2 * self.m))

    @property
    def folds(self) -> int:
        """Rotations that add the chunks: ceil(log2 k)."""
        return (self.chunks - 1).bit_length()

    @property
    def polynomial(self) -> float:
        """Bytes of a residue polynomial."""
        return self.ckks.N * self.word_bytes

    def sizes(self) -> dict[str, float]:
        """Bytes of each entity, equations (1) to (6). A key is both halves."""
        residues, one = self.ckks.l, self.polynomial
        ciphertext = 2 * residues * one  # (1)
        plaintext = residues * one  # (3)
        return {
            "ciphertext": ciphertext,
            "input": self.ciphertexts * ciphertext,  # (2)
            "plaintext": plaintext,
            "matrix": self.m * self.ciphertexts * plaintext,  # (4)
            "NTT twiddles": residues * one,  # (5)
            "INTT twiddles": residues * one,  # (5)
            "key": 2 * residues * (residues + 1) * one,  # (6), ksk0 and ksk1
        }

    def reads(self) -> dict[str, float]:
        """Bytes that are read of each entity if nothing is held on the chip, equations (7) to (12).

        As in the paper, ceil(2n/N) is 1. Raises Unsupported for a vector of several ciphertexts:
        the paper does not say how they are combined.
        """
        if self.ciphertexts > 1:
            raise Unsupported(
                f"a vector of {self.n} numbers takes {self.ciphertexts} ciphertexts of {self.ckks.N // 2} slots, and the paper's cost "
                "model has one: use a larger N or split the vector"
            )
        m, residues, size = self.m, self.ckks.l, self.sizes()
        return {
            "keys": size["key"] * (m + self.folds),  # (12)
            "partial sum": m * size["ciphertext"] * residues,  # (10)
            "NTT twiddles": m * size["NTT twiddles"] * (residues + 4),  # (7)
            "input": m * size["ciphertext"],  # (9)
            "INTT twiddles": m * size["INTT twiddles"] * (1 + 2 / residues),  # (8)
            "matrix": m * size["plaintext"],  # (11)
        }

    def entities(self) -> list[DataEntity]:
        """The entities for an allocator, each as a whole, as the paper counts them.

        The keys of all rotations are one entity, and so is the matrix; both are read once. The
        partial sum is made on the chip. Reads are rounded to whole ones.
        """
        size, reads = self.sizes(), self.reads()
        whole = {
            **size,
            "keys": size["key"] * (self.m + self.folds),
            "partial sum": size["ciphertext"],
        }
        return [
            DataEntity(
                name,
                round(whole[name]),
                max(1, round(read / whole[name])),
                made=name == "partial sum",
            )
            for name, read in reads.items()
        ]


@dataclass(frozen=True)
class Transforms:
    """How many polynomials are transformed, forward and back."""

    forward: int
    inverse: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.forward + self.inverse


def transforms_of_key_switch(l: int) -> Transforms:  # noqa: E741
    """Algorithm 2: l INTTs; l - 1 NTTs for each, and one modulo the special prime; then both halves
    are rescaled by it: an INTT and l NTTs each."""
    return Transforms(forward=l * (l - 1) + l + 2 * l, inverse=l + 2)


def transforms_of_partial_sum(l: int) -> Transforms:  # noqa: E741
    """As equations (7) and (8) count them: l (l + 4) NTTs, l + 2 INTTs. Algorithms 1 and 2 give 2
    NTTs less and 2 INTTs more."""
    return Transforms(forward=l * (l + 4), inverse=l + 2)


def cycles(machine: Machine, kind: Kind, N: int) -> int:
    """Cycles of a PE for one residue polynomial: N/c, and log2 N (N/c + latencies) for transforms.
    Raises Unsupported for N above n_max."""
    _checked(machine)
    machine.check_degree(N)
    unit = machine.unit_of(kind)
    if unit is None:
        raise Unsupported(f"{machine.name} has no unit for {kind.name}")
    return unit.cycles(kind, N, 1)


def _checked(machine: Machine) -> None:
    if not {"g", "p", "c", "b"} <= set(machine.parameters):
        raise Unsupported(
            f"{machine.name} has no parameters g, p, c and b: use mv_set_a, mv_set_bc or a file with them"
        )


def _pes(machine: Machine) -> float:
    return float(machine.parameters["g"]) * float(machine.parameters["p"])


def _dram(machine: Machine) -> float:
    return float(machine.channels["dram"].bytes_a_second)


def key_switch_rate(machine: Machine, ckks: CkksSet) -> dict[str, float]:
    """Two upper bounds of key switches a second: the transforms on all PEs, always busy; a key from
    DRAM for each."""
    per_transform = cycles(machine, Kind.NTT, ckks.N)
    work = transforms_of_key_switch(ckks.l).total * per_transform
    key = Product(1, 1, ckks, float(machine.widths["coefficient"])).sizes()["key"]
    return {
        "butterflies": float(machine.frequency_hz) * _pes(machine) / work,
        "DRAM": _dram(machine) / key,
    }


def partial_sum_s(machine: Machine, ckks: CkksSet) -> dict[str, float]:
    """Two lower bounds of the seconds that a partial sum takes on average: its transforms, spread
    evenly over all PEs; its key and its plaintext from DRAM."""
    per_transform = cycles(machine, Kind.NTT, ckks.N)
    size = Product(1, 1, ckks, float(machine.widths["coefficient"])).sizes()
    work = transforms_of_partial_sum(ckks.l).total * per_transform
    return {
        "butterflies": work / _pes(machine) / float(machine.frequency_hz),
        "DRAM": (size["key"] + size["plaintext"]) / _dram(machine),
    }


def product_s(machine: Machine, product: Product) -> dict[str, float]:
    """Two lower bounds of the seconds of a whole product: all its transforms, spread evenly over
    all PEs; its keys and its matrix from DRAM.

    It has m partial sums, and ceil(log2 k) more key switches for its chunks. Raises Unsupported for
    a vector of several ciphertexts, as Product.reads does.
    """
    reads = product.reads()
    ckks = product.ckks
    transforms = product.m * transforms_of_partial_sum(ckks.l).total
    transforms += product.folds * transforms_of_key_switch(ckks.l).total
    work = transforms * cycles(machine, Kind.NTT, ckks.N)
    return {
        "butterflies": work / _pes(machine) / float(machine.frequency_hz),
        "DRAM": (reads["keys"] + reads["matrix"]) / _dram(machine),
    }


def resources(machine: Machine) -> dict[str, int]:
    """DSPs, BRAMs and URAMs: a multiplier of 17 DSPs for each lane and each core, buffers of the
    network, and the scratchpad's banks.

    BRAM: g p c ceil(N_max / c / 512). URAM: 16 b g p, a lower bound.
    """
    _checked(machine)
    return {name: int(float(machine.resources[name])) for name in ("dsp", "bram", "uram")}


def scratchpad_bytes(
    machine: Machine, ckks: CkksSet, word_bytes: float | None = None
) -> dict[str, float]:
    """Bytes that a PE holds of each entity: ceil(l/p) residues of the input, of the NTT twiddles
    and of the partial sum (V-A)."""
    _checked(machine)
    word = float(machine.widths["coefficient"]) if word_bytes is None else word_bytes
    residues = math.ceil(ckks.l / float(machine.parameters["p"]))
    one = residues * ckks.N * word
    return {"input": 2 * one, "NTT twiddles": one, "partial sum": 2 * one}
