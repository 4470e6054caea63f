"""The command ``jali demo helr``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from jali._core.console import seconds_text
from jali.cli.demo_compiled import Session, add_options, report, report_plan
from jali.cli.demo_options import check_positive
from jali.cli.parser import Parser
from jali.demo import helr
from jali.nn import workloads

__all__ = ["main"]


def _parser() -> Parser:
    parser = Parser(
        prog="jali demo helr",
        description="Encrypted training (HELR, Han et al. 2019): Nesterov's gradient for a logistic regression that tells a 3 from an 8, on "
        "encrypted images and labels. The real size needs a GPU; '--iterations 3 --batch 128' takes half a minute on two cores.",
    )
    parser.add_argument(
        "--images",
        type=Path,
        metavar="FILE",
        help="28x28 digits with labels, an .npz or an IDX file; without it, a set is made",
    )
    parser.add_argument(
        "--labels", type=Path, metavar="FILE", help="labels of an IDX file of images"
    )
    parser.add_argument(
        "--iterations", type=int, default=32, metavar="K", help="of the gradient (32)"
    )
    parser.add_argument(
        "--batch", type=int, default=1024, metavar="R", help="rows an iteration (1024)"
    )
    add_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali demo helr``. Raises jali.Error, which says what to change."""
    options = _parser().parse_args(argv)
    check_positive(options, "iterations", "batch")
    rng, count = np.random.default_rng(), options.iterations
    if options.images is None:
        task = helr.made(options.batch * min(count, 11), rng)
    else:
        task = helr.load(options.images, options.labels)
    batches = task.batches(options.batch, count)

    def train(*rows: Any) -> Any:
        return workloads.logistic_regression(list(rows), count)

    plain = train(*batches)
    if not options.json:
        print(f"{len(batches)} batches of {options.batch} rows from {task.source}")
        if options.images is None:
            print("They say nothing about real images: give MNIST's with --images FILE.")
        print(f"{count} iterations, {helr.FEATURES} features and a bias")
    session = Session(
        train,
        tuple(batches),
        tuple(batch[None] for batch in batches),
        options,
        precision_bits=helr.BITS,
    )
    each = session.summary.seconds / count
    session.say(f"  {seconds_text(each)} an iteration")
    about = {
        "demo": "helr",
        "source": task.source,
        "iterations": count,
        "batch": options.batch,
        "batches": len(batches),
        "features": helr.FEATURES,
        "predicted_seconds_per_iteration": each,
    }
    if options.plan:
        report_plan(session, about, [], options)
        return 0
    weights, figures = session.run(*batches)
    accuracy, clear = task.accuracy(weights), task.accuracy(plain)
    error = float(np.abs(weights - plain).max() / np.abs(plain).max())
    result = {
        **about,
        "test_rows": len(task.held),
        "accuracy": accuracy,
        "plain_accuracy": clear,
        "accuracy_difference_points": 100 * abs(accuracy - clear),
        "weights_error": error,
        "seconds_per_iteration": figures.seconds / count,
        **asdict(figures),
    }
    lines = [
        (
            "accuracy on other images",
            f"{100 * accuracy:.2f}% (training in the clear {100 * clear:.2f}%)",
        ),
        ("largest error of a weight", f"{error:.1e} of the largest weight"),
        (
            "time an iteration",
            f"{seconds_text(figures.seconds / count)} (predicted {seconds_text(each)})",
        ),
        ("time in all", f"{seconds_text(figures.seconds)}, {figures.bootstraps} bootstraps"),
        *figures.lines(),
    ]
    report(result, lines, options)
    return 0
