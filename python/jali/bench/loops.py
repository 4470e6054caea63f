"""Compiled loops as benchmarks: training on encrypted rows, and recurrent networks on encrypted
sentences."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from jali import nn
from jali.bench.compiled import Array, Served
from jali.bench.measure import Row
from jali.bench.registry import Options, benchmark
from jali.demo import helr, recurrent, sentences
from jali.errors import InvalidArgument
from jali.nn import workloads

_CALIBRATED = 128  # sentences


@benchmark(
    "demo_helr",
    "the server of 'jali demo helr': 32 iterations of 1,024 rows; --images FILE, else rows are made",
)
def demo_helr(options: Options) -> Iterator[Row]:
    """Needs a GPU, or much memory and hours. The definition is that of Han et al. (2019), which
    TensorFHE (2023; 128 rows in a polynomial, 14 iterations) and Cheddar (2026; 32 iterations of
    1,024 images of 14 x 14 pixels, two for each bootstrapping) have, too. They report the time of
    an iteration: `iterations` divides a row's time.
    """
    rows, count = 1024, 32
    if options.images is None:
        task = helr.made(11 * rows, np.random.default_rng())
    else:
        task = helr.load(Path(options.images))
    yield helr_row(task, rows, count, options)


def helr_row(task: helr.Task, rows: int, count: int, options: Options) -> Row:
    """A row for so many iterations of so many rows."""
    batches = task.batches(rows, count)

    def train(*given: Any) -> Any:
        return workloads.logistic_regression(list(given), count)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # an example is a whole set of rows
        program = nn.compile(
            train,
            tuple(batches),
            calibration=tuple(batch[None] for batch in batches),
            precision_bits=helr.BITS,
            device="cuda" if options.on_gpu() else "cpu",
        )
    plain = np.asarray(train(*batches))
    about = {
        "task": f"training: {rows} rows, {helr.FEATURES} features and a bias, Nesterov's gradient",
        "iterations": count,
        "batches": len(batches),
        "source": task.source,
        "plain_accuracy": round(task.accuracy(plain), 4),
    }
    return Served(program, options).row("demo_helr", tuple(batches), plain, about)


@benchmark(
    "demo_rnn",
    "the server of 'jali demo rnn': 200 steps, 128 units, 32 sentences of random words; --set rnn or lstm for one of its cells",
)
def demo_rnn(options: Options) -> Iterator[Row]:
    """Needs a GPU, or much memory and hours. The definition of the Elman network is that of
    Podschwadt and Takabi (2020), which TensorFHE (2023) and Cheddar (2026) time as "LSTM" and
    "RNN". Nobody has published an LSTM with its four gates.
    """
    for cell in options.sets or tuple(recurrent.CELLS):
        if cell not in recurrent.CELLS:
            raise InvalidArgument(
                f"demo_rnn has the cells {' and '.join(recurrent.CELLS)}, not {cell}: name one with --set"
            )
        network = recurrent.load(cell)
        drawn = sentences.made(network.words, _CALIBRATED, np.random.default_rng())
        yield recurrent_row(network, network.embedded(drawn.texts, 200), 32, options)


def recurrent_row(network: recurrent.Network, vectors: Array, count: int, options: Options) -> Row:
    """A row for the first sentences, so many. vectors: (sentences, steps, units), on which ranges
    are measured."""
    program = nn.compile(
        network.state,
        vectors[0],
        calibration=vectors,
        precision_bits=recurrent.BITS,
        batch=count,
        device="cuda" if options.on_gpu() else "cpu",
    )
    plain = network.states(vectors)
    about = {
        "network": f"{network.name}, {recurrent.UNITS} units",
        "steps": vectors.shape[1],
    }
    largest = float(np.abs(plain).max())
    return Served(program, options).row(
        "demo_rnn", (vectors[:count],), plain[:count], about, batch=count, largest=largest
    )
