"""The command ``jali demo encoder``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jali import device as devices
from jali._core import checks
from jali._core.console import seconds_text
from jali.cli.demo_compiled import Session, add_options, free_bytes, report, report_plan
from jali.cli.demo_options import check_positive
from jali.cli.parser import Parser
from jali.demo import encoder, sentences
from jali.errors import InvalidArgument

__all__ = ["main"]

_CALIBRATED = 256  # sentences on which ranges are measured
_SIMULATED = 64  # sentences on which the agreement to expect is counted
_SHOWN = 3


def _parser() -> Parser:
    parser = Parser(
        prog="jali demo encoder",
        description="The encoder of a transformer on encrypted sentences, which tells praise from blame: two layers of attention with softmax, layer "
        "normalisation and GELU, 128 features. The client embeds the words, and the server sees encrypted vectors. The real size needs a "
        "GPU; '--plan' ends after the plan and the prediction.",
    )
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="with rt-polarity.pos and rt-polarity.neg; without it, sentences are made of random words",
    )
    parser.add_argument(
        "--tokens",
        type=int,
        default=encoder.TOKENS,
        metavar="T",
        help="places for words in a sentence, a power of two (128)",
    )
    parser.add_argument(
        "--layers", type=int, default=encoder.LAYERS, metavar="L", help="of the network (2)"
    )
    parser.add_argument(
        "--sentences",
        type=int,
        default=1,
        metavar="S",
        help="that are encrypted, each a request (1)",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="for matrices, and as much for keys of bootstrapping, as 8GB; 40 GiB on a GPU, a third of what is free on a CPU",
    )
    add_options(parser)
    return parser


def _checked(argv: Sequence[str] | None) -> Namespace:
    options = _parser().parse_args(argv)
    check_positive(options, "tokens", "layers", "sentences")
    if options.tokens & (options.tokens - 1) or not 2 <= options.tokens <= encoder.TOKENS:
        raise InvalidArgument(f"--tokens must be a power of two from 2 to {encoder.TOKENS}")
    if options.layers > encoder.LAYERS:
        raise InvalidArgument(f"--layers must be at most {encoder.LAYERS}")
    return options


def _memory(options: Namespace) -> int:
    if options.memory is not None:
        return checks.size(options.memory, "--memory")
    if devices.resolved(options.device) != "cpu":
        return encoder.MEMORY
    return (free_bytes() or 12 << 30) // 3


def _answers(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.signedinteger[Any]]:
    """1 for praise and 0 for blame; -1 where decryption refused the logit."""
    return np.where(np.isfinite(logits), logits > 0, -1)


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali demo encoder``. Raises jali.Error, which says what to change."""
    options = _checked(argv)
    memory = _memory(options)
    network, tokens = encoder.load().first(options.layers), options.tokens
    if options.data is None:
        rng = np.random.default_rng()
        known = sentences.made(network.words, _CALIBRATED, rng)
        test = sentences.made(network.words, options.sentences + _SIMULATED, rng)
    else:
        train, held = sentences.load(options.data)
        known, test = train.first(_CALIBRATED), held.first(options.sentences + _SIMULATED)
    vectors = network.embedded(test.texts, tokens)
    mine = vectors[: options.sentences]
    if not options.json:
        print(f"{options.sentences} sentences from {test.source}")
        if options.data is None:
            print("They say nothing about real ones: give rt-polarity's folder with --data FOLDER.")
        print(
            f"{options.layers} layers, {tokens} places, {encoder.WIDTH} features, {encoder.HEADS} heads, {encoder.HIDDEN} hidden units"
        )
    session = Session(
        network.logit,
        (vectors[0],),
        (network.embedded(known.texts, tokens),),
        options,
        precision_bits=encoder.BITS,
        memory=memory,
        margin=encoder.MARGIN,
    )
    clear = network.logits(vectors)
    if not np.allclose(session.program.clear(vectors[:1]), clear[:1], rtol=1e-6, atol=1e-9):
        raise InvalidArgument(
            f"{options.program} is a program of other weights or sizes: name a new file, or remove it"
        )
    others = vectors[options.sentences :]
    expected = _answers(np.asarray(session.program.simulate(others)))
    agreement = float(np.mean(expected == _answers(clear[options.sentences :])))
    about = {
        "demo": "encoder",
        "source": test.source,
        "layers": options.layers,
        "tokens": tokens,
        "width": encoder.WIDTH,
        "heads": encoder.HEADS,
        "hidden": encoder.HIDDEN,
        "expected_agreement": agreement,
        "expected_on": len(others),
    }
    expects = ("agreement to expect", f"{agreement:.4f} of {len(others)} other sentences")
    if options.plan:
        report_plan(session, about, [expects], options)
        return 0
    logits, figures = session.run(mine, batch=1)
    plain, labels = clear[: options.sentences, 0], test.labels[: options.sentences]
    logits = logits[:, 0]
    error, largest = float(np.nanmax(np.abs(logits - plain))), float(np.abs(clear).max())
    result = {
        **about,
        "sentences": options.sentences,
        "accuracy": float(np.mean(_answers(logits) == labels)),
        "plain_accuracy": float(np.mean(_answers(plain) == labels)),
        "agreement_with_plain": float(np.mean(_answers(logits) == _answers(plain))),
        "max_logit_error": error,
        "largest_logit": largest,
        "seconds_per_sentence": figures.seconds,
        **asdict(figures),
    }
    told = {1: "praise", 0: "blame", -1: "refused"}
    for text, answer, label in list(zip(test.texts, _answers(logits), labels, strict=False))[
        :_SHOWN
    ]:
        session.say(f"  {told[int(answer)]:<8}({told[int(label)]}) {text}")
    lines = [
        (
            "agreement with the clear network",
            f"{result['agreement_with_plain']:.4f} (accuracy {result['accuracy']:.4f}, in the clear {result['plain_accuracy']:.4f})",
        ),
        expects,
        ("largest difference of a logit", f"{error:.1e} (logits up to {largest:.2f})"),
        (
            "time a sentence",
            f"{seconds_text(figures.seconds)} (predicted {seconds_text(figures.predicted_seconds)}), "
            f"{figures.bootstraps} bootstraps",
        ),
        *figures.lines(),
    ]
    report(result, lines, options)
    return 0
