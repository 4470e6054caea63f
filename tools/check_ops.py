#!/usr/bin/env python3
"""Refuses operations of backend/ops.h that tests/gpu does not hold to the CPU's bits.

Every virtual function of Ops has to be called as `o.ops.NAME(` in the test that runs what it is given at every
level, in every word, batch and variant. Usage: tools/check_ops.py [ROOT]. Exit status 1 with one line a violation.
"""

from __future__ import annotations

import re
from pathlib import Path

import checking

OPS = "src/jali/backend/ops.h"
TEST = "tests/gpu/cuda_levels_test.cpp"
# They describe an engine and compute nothing.
DESCRIBING = {"name", "config", "memory", "pool", "threads"}
VIRTUAL = re.compile(r"^  virtual [^;{(~]*?(\w+)\(", re.MULTILINE)
CALL = re.compile(r"\bo\.ops\s*\.(\w+)\(")


def operations(text: str) -> set[str]:
    body = text.split("class Ops {", 1)[-1].split("\n};", 1)[0]
    return set(VIRTUAL.findall(body)) - DESCRIBING


def check(root: Path) -> list[str]:
    wanted = operations((root / OPS).read_text(encoding="utf-8"))
    if len(wanted) < 2:
        return [f"{OPS}: class Ops has no operations that this check can read"]
    called = set(CALL.findall((root / TEST).read_text(encoding="utf-8")))
    return [f"{TEST}: {name} of {OPS} is not called" for name in sorted(wanted - called)]


if __name__ == "__main__":
    checking.run("ops", check)
