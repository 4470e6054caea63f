"""Strix by formulas: the times, the throughput and the bandwidth of bootstrapping on a streaming
machine.

An iteration of a blind rotation sends B ciphertexts through the six stages of a core, one after the
other, and uses one part of the bootstrapping key for all of them. In the machine's mode "published"
the formulas have the limits that the paper's own figures obey; in "strict" they have all of them.
docs/hardware.md says which limits those are, and compares the results with the paper's tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from jali.errors import InvalidArgument, Unsupported
from jali.simulate.machine import Machine
from jali.simulate.number import Number
from jali.simulate.papers import paper
from jali.simulate.steps import Kind

__all__ = [
    "Point",
    "TfheSet",
    "batches",
    "bootstrap",
    "check",
    "fragmented",
    "is_streaming",
    "key_bytes",
    "largest_batch",
    "layers",
    "published_sets",
    "required_bandwidth",
    "stages",
    "switching_key_bytes",
    "utilisation",
]


@dataclass(frozen=True)
class TfheSet:
    """The sizes of a set of TFHE parameters, as the paper names them (Table II).

    n: the dimension of the LWE ciphertexts that are bootstrapped. k, N: polynomials of a mask, and
        their length.
    l_b, l_k: levels of the gadget of the bootstrapping key and of the key-switching key.
    sources: where each comes from.
    """

    name: str
    n: int
    k: int
    N: int
    l_b: int
    l_k: float
    sources: Mapping[str, str] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        sizes = (self.n, self.k, self.N, self.l_b, self.l_k)
        if min(sizes) <= 0 or self.N & (self.N - 1):
            raise InvalidArgument(
                f"the set {self.name!r} has n {self.n}, k {self.k}, N {self.N}, l_b {self.l_b}, l_k {self.l_k}: all must be "
                "positive, and N a power of two"
            )

    def constants(self, *sources: str) -> list[Number]:
        """The numbers whose source begins with one of the words, as Machine.constants."""
        return [
            Number(f"{self.name}.{key}", source, None, float(getattr(self, key)))
            for key, source in self.sources.items()
            if source.partition(":")[0] in sources
        ]

    def changed(self, scale: Mapping[str, float]) -> TfheSet:
        """The set with other sizes, as Machine.changed."""
        keys = {path.rpartition(".")[2]: factor for path, factor in scale.items()}
        return replace(self, **{key: getattr(self, key) * factor for key, factor in keys.items()})


def published_sets() -> dict[str, TfheSet]:
    """The sets I to IV of Table IV. Their l_k is calibrated, since the paper gives none."""
    sets = {}
    for name, numbers in paper("strix").sets.items():
        sizes = {key: int(float(number)) for key, number in numbers.items()}
        sources = {key: number.source for key, number in numbers.items()}
        sets[name] = TfheSet(name, **sizes, sources=sources)
    return sets


#: The stages of a core, in order, and what each serves.
STAGES = {
    "rotator": Kind.ROTATE,
    "decomposer": Kind.DECOMPOSE,
    "fft": Kind.FFT,
    "vma": Kind.VMA,
    "ifft": Kind.IFFT,
    "accumulator": Kind.ACCUMULATE,
}
#: The stages of a core's key switch.
SWITCH_STAGES = {
    "ks_decomposer": Kind.KEYSWITCH_DECOMPOSE,
    "ks_vma": Kind.KEYSWITCH_MAC,
    "ks_accumulator": Kind.KEYSWITCH_ACCUMULATE,
}


def is_streaming(machine: Machine) -> bool:
    """Whether a machine's file has the parameters and units of Strix."""
    return "clp" in machine.parameters and "rotator" in machine.units


_NEEDS = {
    "parameters": ("tvlp", "clp", "plp", "fold", "buffers", "max_degree"),
    "widths": ("key", "coefficient"),
    "units": (*STAGES, *SWITCH_STAGES),
    "memories": ("local",),
    "buses": ("bsk", "ksk"),
    "channels": ("bsk", "ksk", "ciphertext"),
}


def check(machine: Machine, tfhe: TfheSet) -> None:
    """Raises Unsupported for a machine that is not made as Strix is, or for a set that does not
    fit."""
    if not is_streaming(machine):
        raise Unsupported(
            f"{machine.name} is no streaming machine for TFHE: use strix, strix_nofold or a file with their units"
        )
    for table, names in _NEEDS.items():
        if missing := [name for name in names if name not in getattr(machine, table)]:
            raise Unsupported(
                f"{machine.name} has no {table}.{missing[0]}, which a streaming machine for TFHE needs: add it, as strix.toml has it"
            )
    for name in _NEEDS["parameters"]:
        value = float(machine.parameters[name])
        if not value >= 1 or (value % 1 and name in ("tvlp", "plp")):
            raise Unsupported(
                f"parameters.{name} is {value:g} in {machine.name}: a streaming machine has a whole number of at least 1 there"
            )
    for name, kind in {**STAGES, **SWITCH_STAGES}.items():
        if kind not in machine.units[name].kinds:
            raise Unsupported(
                f"units.{name} of {machine.name} does not serve {kind.name}, as this stage of a streaming machine does"
            )
    if (largest := float(machine.parameters["max_degree"])) < tfhe.N:
        raise Unsupported(
            f"N is {tfhe.N}, and the transforms of {machine.name} have at most {largest:.0f} points"
        )


def stages(machine: Machine, tfhe: TfheSet) -> dict[str, float]:
    """Cycles of each stage of a core for one iteration of one ciphertext.

    k + 1 polynomials are rotated and decomposed to (k+1) l_b, which are transformed; each is
    multiplied with k + 1 columns of the key; products of PLP polynomials are summed before the
    inverse transform, the rest after it (IV-B).
    """
    check(machine, tfhe)
    polynomials = tfhe.k + 1
    digits = polynomials * tfhe.l_b
    sums = polynomials * math.ceil(digits / float(machine.parameters["plp"]))
    work = {
        "rotator": polynomials,
        "decomposer": digits,
        "fft": digits,
        "vma": digits * polynomials,
        "ifft": sums,
        "accumulator": sums,
    }
    cycles = {}
    for name, count in work.items():
        unit = machine.units[name]
        rounds = math.ceil(count / float(unit.count))
        cycles[name] = rounds * tfhe.N / unit.lanes.at(tfhe.N)
    return cycles


def utilisation(machine: Machine, tfhe: TfheSet) -> dict[str, float]:
    """The share of the time for which each stage is busy, if ciphertexts follow each other without
    a gap."""
    cycles = stages(machine, tfhe)
    return {name: count / max(cycles.values()) for name, count in cycles.items()}


def key_bytes(machine: Machine, tfhe: TfheSet) -> float:
    """Bytes of the bootstrapping key that an iteration uses: (k+1)^2 l_b transforms of N complex
    words, or N/2 with folding."""
    points = tfhe.N / float(machine.parameters["fold"])
    return (tfhe.k + 1) ** 2 * tfhe.l_b * points * float(machine.widths["key"])


def switching_key_bytes(machine: Machine, tfhe: TfheSet) -> float:
    """Bytes of the key-switching key: kN l_k ciphertexts of n + 1 words (II-D)."""
    words = tfhe.k * tfhe.N * tfhe.l_k * (tfhe.n + 1)
    return words * float(machine.widths["coefficient"])


def largest_batch(machine: Machine, tfhe: TfheSet) -> int:
    """How many ciphertexts a core holds: test vectors of (k+1) N words, two of each, in the local
    scratchpad."""
    check(machine, tfhe)
    vector = (tfhe.k + 1) * tfhe.N * float(machine.widths["coefficient"])
    room = float(machine.memories["local"].bytes)
    batch = int(room // (float(machine.parameters["buffers"]) * vector))
    if batch < 1:
        raise Unsupported(
            f"the local scratchpad of {machine.name} has {room:.0f} bytes, too few for a test vector of {vector:.0f}"
        )
    return batch


@dataclass(frozen=True)
class Point:
    """How a machine bootstraps.

    batch: ciphertexts of a core.
    issue_cycles: between two ciphertexts in a core.
    period_s: n iterations of the batch.
    switch_s: a key switch of one ciphertext.
    epoch_s: the period, or the key switches of an epoch if they take longer.
    throughput: bootstrappings a second of the chip.
    latency_s: from the start of an epoch to its last result.
    bound: what an iteration waits for.
    """

    batch: int
    issue_cycles: float
    period_s: float
    switch_s: float
    epoch_s: float
    throughput: float
    latency_s: float
    bound: str
    waits_s: Mapping[str, float] = field(default_factory=dict)


def _fills(machine: Machine, stages: Mapping[str, Kind], n: int) -> float:
    """Cycles from the first word into a chain of stages to its first result."""
    return sum(machine.units[name].kinds[kind].latency.at(n) for name, kind in stages.items())


def _iteration(machine: Machine, tfhe: TfheSet, batch: int) -> dict[str, float]:
    """Seconds that each resource needs for one iteration of a batch."""
    clock = float(machine.frequency_hz)
    issue = max(stages(machine, tfhe).values())
    fills = _fills(machine, STAGES, tfhe.N)
    stream = key_bytes(machine, tfhe)
    return {
        "pipeline": batch * issue / clock,
        "dependence": (issue + fills) / clock,  # the next iteration needs the result of this one
        "key bus": stream / float(machine.buses["bsk"].bytes_a_cycle) / clock,
        "key channels": stream / float(machine.channels["bsk"].bytes_a_second),
    }


def _switching(machine: Machine, tfhe: TfheSet, batch: int) -> dict[str, float]:
    """Seconds that each resource needs for the key switches of a core's batch, for which the key is
    read once."""
    clock = float(machine.frequency_hz)
    words = tfhe.k * tfhe.N * tfhe.l_k * (tfhe.n + 1)
    stream = switching_key_bytes(machine, tfhe)
    return {
        "key switch": batch * words / float(machine.units["ks_vma"].lanes) / clock,
        "switching-key bus": stream / float(machine.buses["ksk"].bytes_a_cycle) / clock,
        "switching-key channels": stream / float(machine.channels["ksk"].bytes_a_second),
    }


def _ciphertexts(machine: Machine, tfhe: TfheSet, batch: int) -> float:
    """Seconds in which the ciphertexts of an epoch go in and out, each with a test vector of its
    own."""
    words = 2 * (tfhe.n + 1) + (tfhe.k + 1) * tfhe.N
    width = float(machine.widths["coefficient"])
    count = batch * float(machine.parameters["tvlp"])
    return count * words * width / float(machine.channels["ciphertext"].bytes_a_second)


def _least_batch(machine: Machine, tfhe: TfheSet) -> int:
    """The least batch whose computation takes as long as its key's stream, but no more than the
    scratchpad holds: what the paper's figures obey."""
    one = _iteration(machine, tfhe, 1)
    stream = max(one["key bus"], one["key channels"])
    return min(largest_batch(machine, tfhe), max(1, math.ceil(stream / one["pipeline"])))


def bootstrap(machine: Machine, tfhe: TfheSet, batch: int | None = None) -> Point:
    """How the machine bootstraps ciphertexts of a set, batch of them in each core.

    batch: by default, in the mode "published" the least that hides the key's stream, in "strict"
    the largest. "published" rounds the rate of a core to an integer, as the paper's Table VII does.

    Raises InvalidArgument for a batch that the local scratchpad does not hold, Unsupported for a
    machine or a set that does not fit.
    """
    largest = largest_batch(machine, tfhe)
    published = machine.mode == "published"
    if batch is None:
        batch = _least_batch(machine, tfhe) if published else largest
    if not 1 <= batch <= largest:
        raise InvalidArgument(
            f"a core of {machine.name} holds 1 to {largest} ciphertexts of set {tfhe.name}, not {batch}"
        )
    iteration = _iteration(machine, tfhe, batch)
    period = tfhe.n * max(iteration.values())
    switching = _switching(machine, tfhe, batch)
    transfer = _ciphertexts(machine, tfhe, batch)
    waits = {**{k: tfhe.n * v for k, v in iteration.items()}, **switching, "ciphertexts": transfer}
    epoch = max(waits.values())
    # The key switch of the last ciphertext follows its rotation; those of the others run beside
    # later ones.
    fills = _fills(machine, SWITCH_STAGES, tfhe.n + 1) / float(machine.frequency_hz)
    switch = max(_switching(machine, tfhe, 1).values()) + fills
    a_core = batch / epoch
    cores = float(machine.parameters["tvlp"])
    return Point(
        batch=batch,
        issue_cycles=max(stages(machine, tfhe).values()),
        period_s=period,
        switch_s=switch,
        epoch_s=epoch,
        throughput=cores * (math.floor(a_core + 0.5) if published else a_core),
        latency_s=period + switch,
        bound=max(waits, key=lambda name: waits[name]),
        waits_s=waits,
    )


def required_bandwidth(machine: Machine) -> float:
    """Table VII's required bandwidth in GiB/s, fitted: 143.05 + 28.5 CLP.

    143.05 GiB/s are the key of set IV (524,288 bytes an iteration) over the 4,096 cycles of one
    ciphertext at CLP 4. Nothing in the paper explains why it stays when CLP changes, nor the second
    term.
    """
    numbers = machine.parameters
    slope = float(numbers["fitted_gib_lane"])
    return float(numbers["fitted_gib"]) + slope * float(numbers["clp"])


def fragmented(ciphertexts: int, batch: int, seconds: float) -> float:
    """Seconds for many ciphertexts on a device that computes a batch at once: equations (1) and
    (2).

    fragments = ceil(ciphertexts / batch) - 1, time = (fragments + 1) x time of a batch. A GPU has
    one ciphertext for each SM in a batch; a machine with core-level batches has TvLP x B.
    """
    if ciphertexts < 1 or batch < 1:
        raise InvalidArgument(
            f"{ciphertexts} ciphertexts in batches of {batch}: both must be at least 1"
        )
    return math.ceil(ciphertexts / batch) * seconds


def layers(machine: Machine, tfhe: TfheSet, widths: Iterable[int]) -> float:
    """Seconds for layers of so many bootstrappings, each of which needs the layer before.

    A layer runs in epochs of at most TvLP x B ciphertexts. The last epoch of a layer has only what
    is left, spread over the cores, and ends with a key switch that nothing hides.
    """
    cores = int(float(machine.parameters["tvlp"]))
    largest = largest_batch(machine, tfhe)
    total = 0.0
    for width in widths:
        if width < 1:
            raise InvalidArgument(f"a layer of {width} bootstrappings: give at least 1")
        full, rest = divmod(width, cores * largest)
        total += full * bootstrap(machine, tfhe, largest).epoch_s
        last = bootstrap(machine, tfhe, math.ceil(rest / cores) if rest else largest)
        total += last.latency_s if rest else last.switch_s
    return total


def batches(machine: Machine, tfhe: TfheSet) -> Iterator[Point]:
    """The point of every batch that a core holds."""
    for batch in range(1, largest_batch(machine, tfhe) + 1):
        yield bootstrap(machine, tfhe, batch)
