"""Manifests that lie: one field is another, as someone writes it who knows the format."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np

from jali import nn
from jali._jali import program as _program
from jali.program.port import Port

__all__ = ["lying"]

REALS = [
    0.0,
    -0.0,
    -1.0,
    0.5,
    1.0,
    1.5,
    1e-9,
    1e-300,
    1e6,
    1e7,
    1e150,
    1e300,
    float("nan"),
    float("inf"),
]
WHOLE = [0, 1, 2, 3, 4, 5, 7, 8, 64, 65, 1 << 10, 1 << 12, 1 << 16, 1 << 24, (1 << 32) - 1]
NAMES = ["", "x", "v", "a\u001b[31mb", "\u202egnp.exe", "n\ne", "x" * 1001, "\u00e9" * 1000]


def lying(random_: random.Random, manifest: nn.Manifest) -> nn.Manifest:
    """A manifest with one field of a port or of the demand of keys changed."""
    pick, many = random_.choice, random_.choice([1, 1, 2, 9])
    kind = random_.random()
    if kind < 0.1:
        fields: dict[str, Any] = {"lanes": pick(WHOLE)}
        if random_.random() < 0.5:
            fields = {pick(["inputs", "outputs"]): manifest.inputs * pick([0, 2, 3, 1025])}
        return replace(manifest, **fields)
    if kind < 0.4:
        steps = {pick(WHOLE) * pick([1, -1]) % (1 << 31): pick(WHOLE) % 65536 for _ in range(many)}
        field, value = pick(
            [
                ("rotations", steps),
                ("product", pick(WHOLE)),
                ("noise_bits", (pick([*REALS, 12.0]),) * pick([0, 1, 2])),
                ("bootstrap", pick(["none", "all", "fewest", 0, 5, 1 << 63])),
                ("restored_bits", pick(REALS)),
                ("conjugation", pick([-2, -1, *WHOLE[:8]])),
                ("packings", tuple(pick(WHOLE) for _ in range(many))),
            ]
        )
        return replace(manifest, demand=replace(manifest.demand, **{field: value}))
    which = pick(["inputs", "outputs"])
    ports = list(getattr(manifest, which))
    if not ports:
        return manifest
    k = random_.randrange(len(ports))
    if random_.random() < 0.4:
        change: dict[str, Any] = {"layout": _layout(random_, ports[k])}
        if random_.random() < 0.5:
            change["shape"] = tuple(change["layout"].shape)
    elif random_.random() < 0.5:
        name = pick(["centre", "radius", "low", "high"])
        numbers = np.array(getattr(ports[k], name))
        if numbers.size:
            numbers[random_.randrange(numbers.size)] = pick(REALS)
        change = {
            name: pick([numbers, np.full_like(numbers, pick(REALS)), np.zeros(0), np.ones(3)])
        }
    else:
        name, value = pick(
            [
                ("name", pick(NAMES)),
                ("shape", tuple(pick(WHOLE) for _ in range(many))),
                ("rms", pick(REALS)),
                ("peak", pick(REALS)),
                ("level", pick(WHOLE)),
            ]
        )
        change = {name: value}
    ports[k] = replace(ports[k], **change)
    return replace(manifest, **{which: tuple(ports)})


def _layout(random_: random.Random, port: Port) -> _program.Layout:
    """Another layout, of any kind and of near or wild sizes."""
    pick, slots = random_.choice, port.layout.slots
    shape = list(pick([port.shape, (pick(WHOLE), pick(WHOLE)), (pick(WHOLE),)]))
    kind = random_.randrange(4)
    if kind == 0:
        grid = [pick(WHOLE) for _ in range(pick([max(0, len(shape) - 1), 0, 1]))]
        return _program.Layout.grid(shape, slots, pick([slots, *WHOLE]), pick(WHOLE[:12]), grid)
    if kind == 1:
        return _program.Layout.repeated(shape, slots, pick([slots, *WHOLE]), pick(WHOLE))
    if kind == 2:
        return _program.Layout.skewed(shape, slots, pick(WHOLE), pick(WHOLE))
    table = np.array([random_.randrange(-2, 8) for _ in range(slots)] * pick([1, 1, 2]), np.int32)
    return _program.Layout.gathered(shape, slots, table)
