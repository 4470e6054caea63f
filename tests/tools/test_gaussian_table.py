"""The table of the flooding sampler is that of the stated distribution, to its last bit."""

from __future__ import annotations

import re
from decimal import Decimal, getcontext
from pathlib import Path

HEADER = Path(__file__).parents[2] / "src" / "jali" / "random" / "gaussian_table.h"


def test_every_entry_is_the_rounded_tail() -> None:
    getcontext().prec = 80
    rows = re.findall(r"\{0x([0-9a-f]{16}), 0x([0-9a-f]{16})\}", HEADER.read_text())
    table = [int(high + low, 16) for high, low in rows]
    weights = [
        (-(Decimal(k) ** 2) / 128).exp() for k in range(300)
    ]  # what is left out is below 2^-1000
    total = weights[0] + 2 * sum(weights[1:])
    tails = [2 * sum(weights[k + 1 :]) / total * 2**127 for k in range(len(table) + 1)]
    assert len(table) > 100
    for entry, tail in zip(table, tails, strict=False):
        assert abs(entry - tail) <= Decimal("0.5")
    assert tails[len(table)] < Decimal("0.5")  # the next would round to 0
