"""The command ``jali demo rnn``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from jali._core.console import seconds_text
from jali.cli.demo_compiled import Session, add_options, report, report_plan
from jali.cli.demo_options import check_positive
from jali.cli.parser import Parser
from jali.demo import recurrent, sentences
from jali.errors import InvalidArgument

__all__ = ["main"]

_CALIBRATED = 128  # sentences on which ranges are measured
SHOWN = 3


def _parser() -> Parser:
    parser = Parser(
        prog="jali demo rnn",
        description="A recurrent network of 128 units on encrypted sentences, which tells praise from blame. The client embeds the words, "
        "and the server sees encrypted vectors. The real size needs a GPU; '--steps 2' is for a CPU.",
    )
    parser.add_argument(
        "--cell", choices=list(recurrent.CELLS), default="rnn", help="the network's (rnn)"
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="with rt-polarity.pos and rt-polarity.neg; without it, sentences are made of random words",
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=200,
        metavar="K",
        help="words of each sentence, the last ones (200)",
    )
    parser.add_argument(
        "--sentences",
        type=int,
        default=32,
        metavar="S",
        help="in one ciphertext, a power of two (32)",
    )
    add_options(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali demo rnn``. Raises jali.Error, which says what to change."""
    options = _parser().parse_args(argv)
    check_positive(options, "steps", "sentences")
    if options.sentences & (options.sentences - 1):
        raise InvalidArgument("--sentences must be a power of two")
    network, steps = recurrent.load(options.cell), options.steps
    if options.data is None:
        rng = np.random.default_rng()
        known = sentences.made(network.words, _CALIBRATED, rng)
        test = sentences.made(network.words, options.sentences, rng)
    else:
        train, held = sentences.load(options.data)
        known, test = train.first(_CALIBRATED), held.first(options.sentences)
    vectors = network.embedded(test.texts, steps)
    plain = network.states(vectors)
    if not options.json:
        print(f"{len(test.texts)} sentences from {test.source}")
        if options.data is None:
            print("They say nothing about real ones: give rt-polarity's folder with --data FOLDER.")
        print(f"{steps} steps, {recurrent.UNITS} units, {network.name}")
    session = Session(
        network.state,
        (vectors[0],),
        (network.embedded(known.texts, steps),),
        options,
        precision_bits=recurrent.BITS,
        batch=options.sentences,
    )
    about = {
        "demo": options.cell,
        "source": test.source,
        "steps": steps,
        "units": recurrent.UNITS,
        "sentences": len(test.texts),
    }
    if options.plan:
        report_plan(session, about, [], options)
        return 0
    states, figures = session.run(vectors)
    logits, expected = network.logits(states), network.logits(plain)
    answers, wanted = logits > 0, expected > 0
    largest = float(np.abs(states - plain).max())
    result = {
        **about,
        "accuracy": float(np.mean(answers == test.labels)),
        "plain_accuracy": float(np.mean(wanted == test.labels)),
        "agreement_with_plain": float(np.mean(answers == wanted)),
        "max_state_error": largest,
        "largest_state": float(np.abs(plain).max()),
        "max_logit_error": float(np.abs(logits - expected).max()),
        "seconds_per_step": figures.seconds / steps,
        **asdict(figures),
    }
    for text, logit, label in list(zip(test.texts, logits, test.labels, strict=True))[:SHOWN]:
        session.say(
            f"  {'praise' if logit > 0 else 'blame':<7}({'praise' if label else 'blame'}) {text}"
        )
    lines = [
        (
            "agreement with the clear network",
            f"{result['agreement_with_plain']:.4f} (accuracy {result['accuracy']:.4f}, in the clear {result['plain_accuracy']:.4f})",
        ),
        (
            "largest difference of a state",
            f"{largest:.1e} (states up to {result['largest_state']:.2f})",
        ),
        (
            "time",
            f"{seconds_text(figures.seconds)} (predicted {seconds_text(figures.predicted_seconds)}) for {len(test.texts)} sentences; "
            f"{seconds_text(figures.seconds / steps)} a step, {figures.bootstraps} bootstraps",
        ),
        *figures.lines(),
    ]
    report(result, lines, options)
    return 0
