#!/usr/bin/env python3
"""Fits the constants of cost.toml to times that were measured.

A constant is seconds for one operation of a kind (cost.cpp), and the sum over the kinds is a
prediction. The constants make the sum of squares of the relative errors least, with no constant
negative. Only records count whose results were decrypted and right, which the benchmarks see to.

Usage: python tools/tfhe_search/fit.py > tools/tfhe_search/cost.toml (it needs NumPy)
"""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
PRESETS = ROOT / "src" / "jali" / "params" / "presets" / "tfhe.toml"

# Which rows count: files, and the commits whose kernels are today's. Rows of a later file with the
# same name win.
GPU_PRESETS = "tfhe-h100-2026-11-26-presets.jsonl"
GPU_SETS = "tfhe-h100-2026-11-26-sets.jsonl"
H200_SETS = "tfhe-h200-2026-11-23-sets.jsonl"  # sets that no H100 measured; the SMs are the same
H200_OTHER = (
    "tfhe-h200-2026-11-23.jsonl"  # the kernel for every size, before these sizes had their own
)
CPU_PRESETS = "tfhe-presets-cpu-2026-11-27.jsonl"


@dataclass(frozen=True)
class Shape:
    """What the cost of a bootstrapping depends on."""

    n: int
    k: int
    N: int
    levels: int
    base_log: int
    rotation: str = "classic"
    group: int = 1
    switch_levels: int = 0
    batch: int = 8  # on a CPU, whose ciphertexts share what is read of a key

    @property
    def kernel(self) -> str:
        """As Kernel of cost.h."""
        if self.base_log * self.levels > 28:
            return "other"
        if (self.N, self.k) in ((2048, 1), (1024, 1), (1024, 2), (512, 3), (512, 4)):
            return "own"
        large = self.k == 1 and self.N in (4096, 8192, 16384)
        return "cluster" if large and self.rotation == "classic" else "other"

    @property
    def threads_used(self) -> float:
        """As in cost.cpp."""
        each = (self.k + 1) * self.N // 64
        group = math.lcm(each, 32)
        return 256 // group * group / 256

    def counts(self) -> dict[str, float]:
        """As Counts of cost.cpp."""
        points, k1, steps = self.N / 2, self.k + 1, self.n / self.group
        products = steps * self.levels * k1**2 * points
        units = {"classic": 0, "multi_bit": 2**self.group - 1, "block_binary": self.group}
        key_bytes = max(1, units[self.rotation]) * products * 16
        return {
            "steps": steps,
            "butterflies": steps * k1 * (self.levels + 1) * points / 2 * math.log2(points),
            "products": products,
            "sums": units[self.rotation] * products,
            "switch_words": self.k * self.N * self.switch_levels * (self.n + 1),
            "key_bytes": key_bytes / self.batch,
        }


@dataclass(frozen=True)
class Measured:
    """Seconds of one ciphertext."""

    name: str
    shape: Shape
    seconds: float


def presets() -> dict[str, Shape]:
    """The shapes of presets/tfhe.toml."""
    return {
        name: Shape(
            p["n"],
            p["k"],
            p["polynomial_size"],
            p["rotation_levels"],
            p["rotation_base_log"],
            p["rotation"],
            p["group"],
            p["switch_levels"],
        )
        for name, p in tomllib.loads(PRESETS.read_text()).items()
    }


#: Presets that had other shapes when a record was made (docs/decisions/0044-gadgets-of-28-bits.md).
CHANGED = {
    CPU_PRESETS: {
        "message_3_carry_3": Shape(950, 1, 8192, 2, 15, "classic", 1, 9),
        "strix_iv": Shape(991, 1, 16384, 2, 15, "classic", 1, 11),
    }
}


def rows(file: str) -> list[dict]:
    """The rows of a record."""
    lines = (RESULTS / file).read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def of_presets(
    file: str, operations: tuple[str, ...], alone: bool, seconds: str = "median_s"
) -> list[Measured]:
    """Rows of `jali bench tfhe` and `tfhe_gates`: one ciphertext alone, or the largest batch."""
    known = presets() | CHANGED.get(file, {})
    here = [r for r in rows(file) if r["name"].removeprefix("tfhe_") in operations]
    out = []
    for name in dict.fromkeys(r["params"]["set"] for r in here):
        mine = [r for r in here if r["params"]["set"] == name]
        size = 1 if alone else max(r["batch"] for r in mine)
        shape = replace(known[name], batch=size)
        out += [Measured(name, shape, r[seconds] / size) for r in mine if r["batch"] == size]
    return out


def of_sets(file: str, names: dict[str, int], commit: str) -> list[Measured]:
    """Rows of tfhe_bench without a key switch, of these sets in these batches."""
    out = []
    for r in rows(file):
        if r["what"] != "pbs" or r["commit"] != commit or names.get(r["set"]) != r["batch"]:
            continue
        bits = re.fullmatch(r".*_(multi_bit|block_binary)_(\d)", r["set"])
        rotation, group = (bits[1], int(bits[2])) if bits else ("classic", 1)
        shape = Shape(r["n"], r["k"], r["N"], r["levels"], r["base_log"], rotation, group)
        out.append(Measured(f"set {r['set']}", shape, r["ms"] / 1e3 / r["batch"]))
    if len(out) != len(names):
        sys.exit(f"{file} has {len(out)} of {len(names)} rows of commit {commit}")
    return out


def fit(measured: Iterable[Measured], features: Callable[[Shape], list[float]]) -> list[float]:
    """The constants of least squares of relative errors, of which none is negative."""
    points = list(measured)
    matrix = np.array([[x / m.seconds for x in features(m.shape)] for m in points])
    used = list(range(matrix.shape[1]))
    while True:
        found = np.linalg.lstsq(matrix[:, used], np.ones(len(points)), rcond=None)[0]
        if (found >= 0).all():
            break
        used.pop(int(np.argmin(found)))
    out = [0.0] * matrix.shape[1]
    for at, value in zip(used, found, strict=True):
        out[at] = float(f"{value:.4g}")
    return out


@dataclass
class Part:
    """Constants that are fitted together, and their kinds of operations."""

    title: str
    names: list[str]
    features: Callable[[Shape], list[float]]
    measured: list[Measured]
    error: str  # which of the model's errors counts it

    def solved(self) -> tuple[list[float], list[tuple[Measured, float]]]:
        """The constants, and the relative error of every prediction."""
        constants = fit(self.measured, self.features)
        return constants, [
            (m, float(np.dot(constants, self.features(m.shape))) / m.seconds - 1)
            for m in self.measured
        ]


def own(s: Shape) -> list[float]:
    """butterfly_one, product_one, butterfly_many, product_many, sum_block_binary, sum_multi_bit."""
    c = {name: value / s.threads_used for name, value in s.counts().items()}
    one = s.levels == 1
    return [
        c["butterflies"] * one,
        c["products"] * one,
        c["butterflies"] * (not one),
        c["products"] * (not one),
        c["sums"] * (s.rotation == "block_binary"),
        c["sums"] * (s.rotation == "multi_bit"),
    ]


def on_cpu(s: Shape) -> list[float]:
    """cpu_butterfly, .._large, cpu_product, cpu_sum_block_binary, cpu_sum_multi_bit, cpu_key_byte,
    cpu_switch_word."""
    c, large = s.counts(), s.N > 2048
    return [
        c["butterflies"] * (not large),
        c["butterflies"] * large,
        c["products"],
        c["sums"] * (s.rotation == "block_binary"),
        c["sums"] * (s.rotation == "multi_bit"),
        c["key_bytes"],
        c["switch_words"],
    ]


def least(measured: list[Measured]) -> list[Measured]:
    """The shortest time of each name."""
    out: dict[str, Measured] = {}
    for m in measured:
        if m.name not in out or m.seconds < out[m.name].seconds:
            out[m.name] = m
    return list(out.values())


def some(*kinds: str) -> Callable[[Shape], list[float]]:
    """These counts."""
    return lambda s: [s.counts()[kind] if kind else 1.0 for kind in kinds]


def parts() -> list[Part]:
    """All constants."""
    h100 = {"2_2": 4224, "2_2_multi_bit_4": 4224, "strix_i": 4224, "strix_ii": 4224}
    h100["strix_iii"] = 4224
    h200 = {"1_1": 4224, "boolean": 4224, "2_2_block_binary_3": 4224}
    other = {"1_1": 1024, "boolean": 1024, "strix_iv": 132}
    batch = of_presets(GPU_PRESETS, ("bootstrap",), alone=False)
    batch += of_sets(GPU_SETS, h100, "e3f168a") + of_sets(H200_SETS, h200, "4b521ca")
    single = of_presets(GPU_PRESETS, ("bootstrap",), alone=True)
    single += of_sets(GPU_SETS, dict.fromkeys([*h100, "strix_iv"], 1), "e3f168a")
    single += of_sets(H200_SETS, {"1_1": 1, "boolean": 1}, "4b521ca")
    on_other = of_sets(H200_OTHER, other, "f94efa7")
    return [
        Part(
            "A batch on an H100: sizes with kernels of their own",
            [
                *("butterfly_one", "product_one", "butterfly_many", "product_many"),
                *("sum_block_binary", "sum_multi_bit"),
            ],
            own,
            batch,
            "batch_error",
        ),
        Part(
            "Large polynomials, over clusters",
            ["butterfly_cluster"],
            some("butterflies"),
            of_sets(GPU_SETS, {"strix_iv": 528}, "e3f168a"),
            "batch_error",
        ),
        Part(
            "All other sizes",
            ["butterfly_other", "product_other"],
            lambda s: [s.counts()["butterflies"], s.counts()["products"] + s.counts()["sums"]],
            on_other,
            "batch_error",
        ),
        Part(
            "The key switch of a batch",
            ["switch_word"],
            some("switch_words"),
            of_presets(GPU_PRESETS, ("key_switch",), alone=False),
            "batch_error",
        ),
        Part(
            "One ciphertext alone on an H100, in clusters",
            ["step_alone", "butterfly_alone"],
            some("steps", "butterflies"),
            single,
            "alone_error",
        ),
        Part(
            "One alone of all other sizes",
            ["butterfly_alone_other"],
            some("butterflies"),
            of_sets(H200_OTHER, {"1_1": 1, "boolean": 1}, "f3dfd60"),
            "alone_error",
        ),
        Part(
            "The key switch of one alone",
            ["switch_alone", "switch_word_alone"],
            some("", "switch_words"),
            of_presets(GPU_PRESETS, ("key_switch",), alone=True),
            "alone_error",
        ),
        # Processor time, and the least of it: the machine was busy.
        Part(
            "One of eight ciphertexts on one thread of a CPU; one alone of message_4_carry_4",
            [
                *("cpu_butterfly", "cpu_butterfly_large", "cpu_product"),
                *("cpu_sum_block_binary", "cpu_sum_multi_bit", "cpu_key_byte", "cpu_switch_word"),
            ],
            on_cpu,
            least(of_presets(CPU_PRESETS, ("and", "xor", "look_up"), False, "min_s")),
            "cpu_error",
        ),
    ]


def toml() -> str:
    """cost.toml."""
    out = [
        "# Seconds of operations, by which the search weighs parameters. Made by fit.py from records under bench/results, which it",
        "# names; a test makes it again. cost.cpp says what is counted. Behind each constant's part: what was measured, and by how",
        "# much a prediction is off.",
    ]
    errors: dict[str, float] = {}
    for part in parts():
        constants, found = part.solved()
        out += ["", f"# {part.title}."]
        out += [f"{n} = {c:.4g}" for n, c in zip(part.names, constants, strict=True)]
        for m, error in found:
            out.append(f"#   {m.name}: {1e6 * m.seconds:.4g} us, {100 * error:+.1f}%")
            errors[part.error] = max(errors.get(part.error, 0), abs(error))
    out += [
        "",
        "# The largest errors of predictions for what was measured: a batch, one alone, a CPU.",
    ]
    out += [f"{name} = {math.ceil(100 * value) / 100:.2f}" for name, value in errors.items()]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    sys.stdout.write(toml())
