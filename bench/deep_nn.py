#!/usr/bin/env python3
"""Measures the encrypted Deep-NN networks, and simulates how often their answers are not those of
the clear ones.

    python bench/deep_nn.py --images FILE --device cuda --batches 1 16 64 --limit 100
    python bench/deep_nn.py --images FILE --simulate 10

Prints one JSON object a line. A measured line has the time of encrypted evaluation in the server,
from bytes to bytes, and compares every score with the clear network's in the same run; the exit
status is 1 if an answer differs. The first batch of each size is not counted. A simulated line adds
the noise of the parameters to every sum of all images of the file, so many times.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import jali
from jali import device
from jali.demo import data, deep_nn


def measured(net: int, images: data.Images, batch: int, where: str) -> dict[str, Any]:
    """One size of batch of one network, on all images, the last batch filled up from the
    beginning."""
    network = deep_nn.load(net)
    client = deep_nn.Client(network)
    server = deep_nn.Server(network, *client.public_bytes(), where)
    count = len(images.images)
    chosen = np.resize(np.arange(count), -(-count // batch) * batch)
    server(client.encrypt(images.images[chosen[:batch]]))
    times, scores = [], []
    for start in range(0, len(chosen), batch):
        request = client.encrypt(images.images[chosen[start : start + batch]])
        begin = time.perf_counter()
        reply = server(request)
        times.append(time.perf_counter() - begin)
        scores.append(client.decrypt(reply))
    found, plain = np.concatenate(scores), network.scores(images.images[chosen])
    return {
        "bench": "deep_nn",
        "net": net,
        "device": server.engine,
        "name": device.name(server.engine),
        "jali": jali.__version__,
        "batch": batch,
        "images": len(chosen),
        "batch_seconds_median": float(np.median(times)),
        "batch_seconds_least": min(times),
        "images_per_second": len(chosen) / sum(times),
        "look_ups_per_second": len(chosen) * network.look_ups / sum(times),
        "accuracy": float(np.mean(found.argmax(1) == images.labels[chosen])),
        "agreement": float(np.mean(found.argmax(1) == plain.argmax(1))),
        "equal_scores": float(np.mean((found == plain).all(1))),
    }


def simulated(net: int, images: data.Images, draws: int) -> dict[str, Any]:
    """Answers with noise drawn for every sum, against those without."""
    network = deep_nn.load(net)
    rng = np.random.default_rng()
    first = network.layers[0]

    def noise(layer: deep_nn.Layer, shape: tuple[int, ...]) -> np.ndarray:
        norms = np.square(layer.weights.astype(np.float32)).sum(1)
        norms *= layer is not first  # pixels are fresh encryptions, whose noise is nothing
        if layer.table is None:
            variance, shift = deep_nn.sum_variance(norms), 0.0
        else:
            variance, shift = deep_nn.look_up_variance(norms), 0.25  # floor(x + 3/4) of a rounded x
        return rng.standard_normal(shape, dtype=np.float32) * np.sqrt(variance) + shift

    flips = other = total = hits = 0
    for start in range(0, len(images.images), 500):
        part = images.images[start : start + 500]
        plain = network.scores(part)
        hits += int((plain.argmax(1) == images.labels[start : start + 500]).sum())
        for _ in range(draws):
            found = network.read(network.values(part, noise))
            flips += int((found.argmax(1) != plain.argmax(1)).sum())
            other += int((found != plain).any(1).sum())
            total += len(part)
    rate = flips / total
    return {
        "bench": "deep_nn_simulated",
        "net": net,
        "images": len(images.images),
        "draws": draws,
        "accuracy": hits / len(images.images),
        "answers_that_differ": flips,
        "of": total,
        "scores_that_differ": other / total,
        "all_of_100_agree": (1 - rate) ** 100,
        "all_of_100_agree_at_least_95_percent_sure": (1 - upper(flips) / total) ** 100,
    }


def upper(count: int) -> float:
    """The mean of a Poisson distribution that gives at most `count` with a probability of 5
    percent."""
    low, high = 0.0, 3.0 * count + 10
    for _ in range(60):
        middle = (low + high) / 2
        term = sum_ = float(np.exp(-middle))
        for k in range(1, count + 1):
            term *= middle / k
            sum_ += term
        low, high = (middle, high) if sum_ > 0.05 else (low, middle)
    return high


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--images", type=Path, required=True, help="an .npz or IDX file of MNIST")
    parser.add_argument("--nets", type=int, nargs="+", default=list(deep_nn.DEPTHS))
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--limit", type=int, default=100, help="the first K images (100)")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--simulate", type=int, metavar="DRAWS", help="simulate, on all images")
    args = parser.parse_args()
    images = data.load_mnist(args.images)
    wrong = False
    for net in args.nets:
        if args.simulate:
            print(json.dumps(simulated(net, images, args.simulate)), flush=True)
            continue
        for batch in args.batches:
            # One image at a time is for the latency; a tenth of the images is enough.
            few = images.first(args.limit if batch > 1 else max(1, args.limit // 10))
            line = measured(net, few, batch, args.device)
            wrong |= line["agreement"] < 1
            print(json.dumps(line), flush=True)
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
