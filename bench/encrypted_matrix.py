"""Bytes and seconds of an encrypted matrix of a thousand rows by thirty columns, beside a batch of
as many vectors.

    python bench/encrypted_matrix.py [--threads 2]

Times are medians of ten encryptions in a fresh client, at N = 2^14 and depth 4.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

from jali import ckks

ROWS, COLUMNS, REPETITIONS = 1000, 30, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    threads = parser.parse_args().threads
    params = ckks.Params.create(depth=4, log_n=14)
    client = ckks.Client(params, threads=threads)
    table = np.random.default_rng().uniform(-1, 1, (ROWS, COLUMNS))
    times = []
    for _ in range(REPETITIONS):
        start = time.perf_counter()
        fresh = client.encrypt(table, peak=1.0)
        times.append(time.perf_counter() - start)
    assert np.abs(client.decrypt(fresh) - table).max() < ckks.worst_case_error(fresh)
    batch = params.ciphertext_bytes(table.shape, batch=True)
    print(f"{ROWS} x {COLUMNS}, N = 2^14, {client.engine}, {threads} threads")
    print(f"bytes to send  {len(fresh.to_bytes()) / 1e6:8.2f} MB")
    print(f"in memory      {fresh.nbytes / 1e6:8.2f} MB ({batch / 1e6:.0f} MB with batch=True)")
    print(f"encryption     {statistics.median(times) * 1e3:8.2f} ms (from {min(times) * 1e3:.2f})")


if __name__ == "__main__":
    main()
