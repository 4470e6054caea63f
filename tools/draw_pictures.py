#!/usr/bin/env python3
"""Draws the pictures of the documents that come from the library and from bench/results.

    python tools/draw_pictures.py [NAME ..]          writes docs/NAME.svg, all of PICTURES unless named
    python tools/draw_pictures.py --check [NAME ..]  exit status 1 if one is not what it would write

wire: what client and server send each other, in the bytes of three programs.
noise: bits of precision that products leave, as the library counts them.
batch: time of one ciphertext on a GPU against how many are computed at once.
plan: the plan of a network that bootstraps, as Program.plot draws it; takes half a minute and
matplotlib, whose version its details depend on.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from drawing import (
    COLOURS,
    DEEP,
    EDGE,
    INK,
    QUIET,
    Axis,
    Curve,
    arrow,
    box,
    chart,
    page,
    words,
)

import jali
from jali import ckks, tfhe
from jali._core.console import bytes_text
from jali.nn import scalar

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"


# --- what crosses the wire ------------------------------------------------------------------------
Sizes = tuple[int, int, int, int]  # bytes of parameters or manifest, keys, request and reply


def sizes_of_numbers() -> Sizes:
    """The first program of the README: three real numbers."""
    params = ckks.Params.create(depth=2)
    client = ckks.Client(params)
    keys = client.evaluation_keys(rotations=[1])
    server = ckks.Evaluator(params, keys)
    request = client.encrypt(np.array([0.5, -1.25, 2.0]), peak=2)
    x = server.bind(request)
    reply = ((x * x + 0.25) * x.rotate(1)).ciphertext
    found = (params, keys, request, reply)
    return tuple(len(thing.to_bytes()) for thing in found)  # type: ignore[attr-defined,return-value]


def sizes_of_integers() -> Sizes:
    """The second: two integers of 8 bits."""
    params = tfhe.Params.preset("message_2_carry_2")
    client = tfhe.Client(params)
    keys = client.evaluation_keys()
    request = client.encrypt_uint(np.array([200, 17]), bits=8)
    reply = (tfhe.Evaluator(params, keys).bind(request) + 100).ciphertext
    found = (params, keys, request, reply)
    return tuple(len(thing.to_bytes()) for thing in found)  # type: ignore[attr-defined,return-value]


def sizes_of_model() -> Sizes:
    """A linear classifier as large as the third: 30 columns, 128 rows in a ciphertext."""
    rng = np.random.default_rng(1)
    weights, rows = rng.normal(size=30) / 4, rng.normal(size=(128, 30))
    program = jali.compile(lambda x: x @ weights, rows[0], calibration=rows, batch=128)
    client = program.client()
    keys = client.evaluation_keys()
    request = client.encrypt(rows)
    reply = program.server(keys)(request)
    found = (program.manifest, keys, request, reply)
    return tuple(len(thing.to_bytes()) for thing in found)  # type: ignore[attr-defined,return-value]


def draw_wire() -> str:
    """Client and server, and between them what they send each other, a column for each program."""
    heads = (
        ("CKKS", "3 real numbers"),
        ("TFHE", "2 integers of 8 bits"),
        ("model", "128 rows of 30"),
    )
    columns = [
        [bytes_text(size) for size in sizes]
        for sizes in (sizes_of_numbers(), sizes_of_integers(), sizes_of_model())
    ]
    rows = (
        ("parameters, or manifest: once", False),
        ("evaluation keys: once", True),
        ("request: ciphertexts", True),
        ("reply: ciphertexts", False),
    )
    wide, high, side = 900, 330, 156
    parts = [box(16, 16, side, high - 32, DEEP), box(wide - side - 16, 16, side, high - 32, DEEP)]
    owners = (
        (30, "Client", ("holds the secret", "key, encrypts,", "decrypts")),
        (
            wide - side - 2,
            "Server",
            ("holds the program", "and its weights,", "computes on", "ciphertexts"),
        ),
    )
    for x, name, lines in owners:
        parts.append(words(x, 46, name, 18, INK, "bold"))
        parts += [words(x, 72 + 20 * k, text, 13, QUIET) for k, text in enumerate(lines)]
    left, right = side + 30, wide - side - 30
    places = [left + 165 + (right - left - 165) * (k + 0.5) / 3 for k in range(3)]
    for x, (name, about) in zip(places, heads, strict=True):
        parts.append(words(x, 38, name, 13, INK, "bold", "middle"))
        parts.append(words(x, 56, about, 11, QUIET, anchor="middle"))
    for k, (name, to_server) in enumerate(rows):
        y = 92 + 60 * k
        parts.append(words(left, y, name, 13, INK))
        parts += [
            words(x, y + 20, column[k], 13, EDGE, "bold", "middle")
            for x, column in zip(places, columns, strict=True)
        ]
        ends = (left, right) if to_server else (right, left)
        parts.append(arrow(*ends, y + 32))
    return page(wide, high, "What client and server send each other, and how many bytes", parts)


# --- noise against depth --------------------------------------------------------------------------
DEPTH = 6


def bits_left(scale_bits: int) -> tuple[list[float], list[float]]:
    """After 0, 1, .. DEPTH products one after another: bits of precision, and bits of the bound
    that no error exceeds."""
    params = ckks.Params.create(depth=DEPTH, scale_bits=scale_bits)
    client = ckks.Client(params)
    server = ckks.Evaluator(params, client.evaluation_keys())
    x = server.bind(client.encrypt(np.full(params.slots, 0.5), peak=1, magnitude=1))
    promised, bounds, y = [], [], x
    for k in range(DEPTH + 1):
        y = x if k == 0 else y * x
        promised.append(round(y.ciphertext.precision_bits, 1))
        bounds.append(round(-float(np.log2(ckks.worst_case_error(y.ciphertext))), 1))
    return promised, bounds


def draw_noise() -> str:
    """Precision and bound for two scales."""
    curves = []
    for scale, colour in ((45, COLOURS[0]), (30, COLOURS[1])):
        promised, bounds = bits_left(scale)
        name = f"precision, scale of {scale} bits"
        curves.append(Curve(name, list(enumerate(promised)), colour, (4, 0, -12)))
        name = "bound on every error"
        curves.append(Curve(name, list(enumerate(bounds)), colour, (4, 0, -10), "6 4"))
    return chart(
        "Precision against depth",
        "numbers of at most 1, multiplied by each other one product after another, without bootstrapping",
        "Bits of precision after 0 to 6 products, for scales of 30 and 45 bits, and the bounds",
        Axis("products one after another", tuple(range(DEPTH + 1))),
        Axis("bits", tuple(range(0, 45, 10))),
        curves,
    )


# --- time against batch ---------------------------------------------------------------------------
PRODUCTS, LOOK_UPS = "h100-2026-11-22-programs", "tfhe-h100-2026-11-26-sets"


def rows_of(record: str) -> list[dict[str, Any]]:
    """The lines of bench/results/RECORD.jsonl."""
    text = (RESULTS / f"{record}.jsonl").read_text(encoding="utf-8")
    return [json.loads(row) for row in text.splitlines()]


def product_times(log_n: int) -> list[tuple[float, float]]:
    """(batch, microseconds of one ciphertext) of products in rings of 2^log_n."""
    return sorted(
        (row["batch"], row["median_s"] * 1e6 / row["batch"])
        for row in rows_of(PRODUCTS)
        if row.get("name") == "hmult_batched" and row["params"]["log_n"] == log_n
    )


def look_up_times(name: str) -> list[tuple[float, float]]:
    """(batch, microseconds of one look-up) of a set; of the batches that are powers of two."""
    return sorted(
        (row["batch"], row["ms"] * 1e3 / row["batch"])
        for row in rows_of(LOOK_UPS)
        if row["what"] == "pbs" and row["set"] == name and row["batch"].bit_count() == 1
    )


def draw_batch() -> str:
    """The time of one of a batch: products of two rings, and look-ups."""
    curves = (
        Curve(
            "look-up of TFHE, 2 bits of message",
            look_up_times("2_2_multi_bit_4"),
            COLOURS[1],
            (2, 12, -6),
        ),
        Curve("product of CKKS, N = 2^14", product_times(14), COLOURS[2], (7, 14, 10)),
        Curve("product of CKKS, N = 2^12", product_times(12), COLOURS[0], (5, -190, 20)),
    )
    return chart(
        "Time of one, against how many are computed at once",
        "one H100; a batch reads each key once and keeps the whole GPU busy",
        "Microseconds of one product or look-up on an H100 in batches of 1 to 8,192",
        Axis("ciphertexts in a batch", (1, 4, 16, 64, 256, 1024, 4096, 16384), log=True),
        Axis("microseconds of one", (1, 10, 100, 1000), log=True),
        curves,
    )


# --- the plan of a program ------------------------------------------------------------------------
def network() -> jali.nn.Program:
    """Six dense layers of 16 units with a sigmoid behind each, which have to be bootstrapped once."""
    rng = np.random.default_rng(1)
    layers = rng.normal(size=(6, 16, 16)) / 4
    examples = rng.uniform(-1, 1, (100, 16))

    def classify(x: Any) -> Any:
        for weights in layers:
            x = scalar.sigmoid(4 * (weights @ x)) - 0.5
        return x

    return jali.compile(classify, examples[0], calibration=examples, precision_bits=8)


def draw_plan() -> str:
    """What Program.plot draws."""
    import matplotlib

    how = {"svg.hashsalt": "jali", "svg.fonttype": "none", "font.family": "DejaVu Sans"}
    with matplotlib.rc_context(how):  # type: ignore[arg-type]
        picture = io.StringIO()
        network().plot().savefig(picture, format="svg", metadata={"Date": None, "Creator": None})
    label = (
        'role="img" aria-label="The level of every array of a program, and what each step costs"'
    )
    text = re.sub(r"<\?xml.*?(?=<svg )", "", picture.getvalue(), flags=re.DOTALL)
    return re.sub(r" +$", "", text.replace("<svg ", f"<svg {label} ", 1), flags=re.MULTILINE)


PICTURES: dict[str, Callable[[], str]] = {
    "wire": draw_wire,
    "noise": draw_noise,
    "batch": draw_batch,
    "plan": draw_plan,
}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="pictures of the documents")
    parser.add_argument("names", nargs="*", choices=[[], *PICTURES], default=[], metavar="NAME")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    stale = []
    for name in options.names or PICTURES:
        path, picture = ROOT / "docs" / f"{name}.svg", PICTURES[name]()
        if not options.check:
            path.write_text(picture, encoding="utf-8")
        elif not path.is_file() or path.read_text(encoding="utf-8") != picture:
            stale.append(name)
    for name in stale:
        print(f"docs/{name}.svg is out of date: run python tools/draw_pictures.py {name}")
    return bool(stale)


if __name__ == "__main__":
    sys.exit(main())
