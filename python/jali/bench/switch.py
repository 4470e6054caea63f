"""Key switching, and operations that are built on it, at the levels and shapes of other systems'
tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from jali.bench.measure import Row
from jali.bench.primitives import Shape, measure
from jali.bench.registry import Options, benchmark

# N = 2^16 as in Cheddar's figures; TensorFHE's sets, with as many 30-bit limbs as the 128-bit table
# allows; and GIF-FHE's key switching with one limb in each digit, at its sizes inside the table.
# Shape: log N, limbs, special primes, limbs of a digit, batch, bits of a prime.
SETS = {
    "level41": ("w32", Shape(16, 41, 12, 12, 1, 30)),
    "level37": ("w32", Shape(16, 37, 12, 12, 1, 30)),
    "level22": ("w32", Shape(16, 22, 12, 12, 1, 30)),
    "level11": ("w32", Shape(16, 11, 12, 12, 1, 30)),
    "level41x64": ("w32", Shape(16, 41, 12, 12, 64, 30)),
    "tensorfhe_a": ("w32", Shape(12, 3, 1, 1, 1024, 26)),
    "tensorfhe_b": ("w32", Shape(13, 6, 2, 2, 512, 26)),
    "tensorfhe_c": ("w32", Shape(14, 12, 3, 3, 128, 28)),
    "gif_13": ("w32", Shape(13, 8, 1, 1, 1, 23)),
    "gif_14": ("w32", Shape(14, 16, 1, 1, 1, 25)),
    "gif_15": ("w32", Shape(15, 31, 1, 1, 1, 27)),
    "w52level25": ("w52", Shape(16, 25, 8, 8, 1, 50)),
    "w64level20": ("w64", Shape(16, 20, 6, 6, 1, 60)),
}
# A rotation; the tensor product and key switching of a product; a key switching up to the division
# by P; that division.
OPERATIONS = ("key_switch_rotate", "combine_key_switch", "key_switch", "mod_down")


@benchmark("switch", "key switching at the levels and shapes of other systems' tables")
def switch(options: Options) -> Iterator[Row]:
    """Every operation at every set, or at those that --set names. Batches are measured on GPUs
    only."""
    on_gpu = options.on_gpu()
    for name, (word, shape) in SETS.items():
        if (options.sets and name not in options.sets) or (shape.batch > 1 and not on_gpu):
            continue
        for operation in OPERATIONS:
            row = measure(operation, word, shape, options)
            yield dataclasses.replace(row, params={"set": name, **row.params})
