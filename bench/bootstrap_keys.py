#!/usr/bin/env python3
"""Times bootstrapping with sets of keys between the fewest and all. Prints one line of JSON for
each, after its result was decrypted and compared, and appends it to a file.

Usage: bench/bootstrap_keys.py PRESET WORD OUT.jsonl [cpu|cuda [BYTES ...]]
"""

from __future__ import annotations

import json
import statistics
import sys
import time

import numpy as np

from jali import ckks

_PARTS = (0.5, 0.4, 0.3, 0.25, 0.2, 0.0)  # of the bytes of all keys


def main(preset: str, word: str, out: str, device: str = "cpu", *budgets: str) -> None:
    params = ckks.Params.preset(preset, word=word)
    client = ckks.Client(params, device=device)
    curve = params.bootstrap_key_curve()
    least, most = curve[0][0], curve[-1][0]
    wanted = [int(float(b)) for b in budgets] or [round(most * part) for part in _PARTS]
    random = np.random.default_rng()
    z = random.uniform(-1, 1, params.slots) + 1j * random.uniform(-1, 1, params.slots)
    base = 0.0
    for memory in (most, *(max(b, least) for b in wanted)):
        keys = client.evaluation_keys(bootstrap=True, memory=memory)
        server = ckks.Evaluator(params, keys, device=device)
        x = server.bind(
            client.encrypt(z, level=params.bootstrap_level, magnitude=0.82, peak=2**0.5)
        )
        program = server.capture(lambda v: v.bootstrap(), x)
        times = []
        for _ in range(3 if device == "cpu" else 20):
            server.synchronize()
            start = time.perf_counter()
            y = program(x)
            server.synchronize()
            times.append(time.perf_counter() - start)
        error = np.abs(client.decrypt(y, complex=True) - z)
        if not error.mean() < 8 * 2.0**-y.precision_bits:
            raise SystemExit(f"the result is wrong: its mean error is {error.mean()}")
        median = statistics.median(times)
        base = base or median
        size, predicted = [point for point in curve if point[0] <= memory][-1]
        row = {
            "name": "bootstrap_keys",
            "preset": preset,
            "word": word,
            "device": device,
            "memory": memory,
            "key_bytes": size,
            "predicted": predicted,
            "median_s": median,
            "min_s": min(times),
            "relative": median / base,
            "mean_error": float(error.mean()),
            "max_error": float(error.max()),
        }
        print(json.dumps(row), flush=True)
        with open(out, "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
