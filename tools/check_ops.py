#!/usr/bin/env python3
"""Refuses operations of the tables (src/jali/backend/*_ops.h) that tests/gpu does not compare with
the CPU's bits.

The test cuda_levels_test.cpp runs operations at every level, in every word, batch and variant. It
has to call every virtual function of a table as `o.engine.TABLE().NAME(`, where TABLE is the
header's name without `_ops.h`. It has to call `capture`, which the engine itself offers, as
`o.engine.capture(`.

The tables of TFHE stand beside an engine. tests/backend/tfhe_compare.h, which compares any of its
engines with the oracle, and tfhe_support.h, which makes its keys, have to call each of its
operations; tfhe_client_compare.h those under a secret key.

Usage: tools/check_ops.py [ROOT]. Prints one line for each violation; the exit status is 1 if there
are any.
"""

from __future__ import annotations

import re
from pathlib import Path

import checking

BACKEND = "src/jali/backend"
ENGINE = f"{BACKEND}/engine.h"
TEST = "tests/gpu/cuda_levels_test.cpp"
# Tables that no Engine offers, and the files that have to call their operations, each as `.NAME(`.
SIBLINGS = {
    "tfhe": ("tests/backend/tfhe_compare.h", "tests/backend/tfhe_support.h"),
    "secret/tfhe_client": ("tests/backend/tfhe_client_compare.h",),
}
# These functions describe an engine and compute nothing.
DESCRIBING = {"name", "config", "memory", "pool", "copies", "threads", "glwe_batch"}
VIRTUAL = re.compile(r"^  virtual [^;{(~]*?(\w+)\(", re.MULTILINE)
CALL = re.compile(r"\bo\.engine\s*\.(?:(\w+)\(\)\s*\.)?(\w+)\(")


def operations(text: str, name: str) -> set[str]:
    """The virtual functions of a class in a header."""
    body = re.split(rf"^class {name}\b[^;]*?{{", text, maxsplit=1, flags=re.MULTILINE)[1:]
    return set(VIRTUAL.findall(body[0].split("\n};", 1)[0])) if body else set()


def check_siblings(root: Path) -> list[str]:
    """The violations of tables that stand beside an engine."""
    lines = []
    for table, tests in SIBLINGS.items():
        header = root / BACKEND / f"{table}_ops.h"
        if not header.exists():
            continue
        words = table.rpartition("/")[2].split("_")
        names = operations(
            header.read_text(encoding="utf-8"), "".join(map(str.capitalize, words)) + "Ops"
        )
        if not names:
            lines.append(f"{BACKEND}/{table}_ops.h: it has no operations that this check can read")
        text = "".join((root / test).read_text(encoding="utf-8") for test in tests)
        calls = set(re.findall(r"(?:\.|->)(\w+)\(", text))
        lines += [
            f"{tests[0]}: {name} of {BACKEND}/{table}_ops.h is not called"
            for name in sorted(names - DESCRIBING - calls)
        ]
    return lines


def check(root: Path) -> list[str]:
    tables = {path.name.removesuffix("_ops.h"): path for path in (root / BACKEND).glob("*_ops.h")}
    tables = {table: path for table, path in tables.items() if table not in SIBLINGS}
    wanted = {}
    for table, path in tables.items():
        names = operations(path.read_text(encoding="utf-8"), f"{table.capitalize()}Ops")
        if not names:
            return [f"{BACKEND}/{path.name}: it has no operations that this check can read"]
        wanted.update({(table, name): path.name for name in names})
    engine = operations((root / ENGINE).read_text(encoding="utf-8"), "Engine")
    if not tables.keys() <= engine:
        return [
            f"{ENGINE}: class Engine offers no table {name}"
            for name in sorted(tables.keys() - engine)
        ]
    wanted.update({("", name): "engine.h" for name in engine - DESCRIBING - tables.keys()})
    called = set(CALL.findall((root / TEST).read_text(encoding="utf-8")))
    return check_siblings(root) + [
        f"{TEST}: {name} of {BACKEND}/{wanted[table, name]} is not called"
        for table, name in sorted(wanted.keys() - called)
    ]


if __name__ == "__main__":
    checking.run("ops", check)
