"""The command ``jali demo cifar``."""

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
from jali.demo import cifar
from jali.errors import InvalidArgument

__all__ = ["main"]

_BITS = {
    True: cifar.BITS,
    False: 5,
}  # of precision, of the largest score; with squares, and with ReLU
_CALIBRATED = 256  # images on which ranges are measured
_EXPECTED = 200  # images on which the agreement to expect is counted; they take seconds
_RELU = "relu_15_15_27"


def _parser() -> Parser:
    parser = Parser(
        prog="jali demo cifar",
        description="ResNet-20 on encrypted colour images, compiled. Its activations are squares, and its weights part of Jali. It needs a "
        "GPU, or a CPU with much memory and time: the plan and what it takes come first, and '--plan' ends there.",
    )
    parser.add_argument(
        "--images",
        type=Path,
        metavar="FILE",
        help="an .npz with images (n, 32, 32, 3) uint8 and labels; without it, images are drawn",
    )
    parser.add_argument("--count", type=int, default=1, metavar="K", help="encrypted images (1)")
    parser.add_argument(
        "--batch", type=int, metavar="B", help="images a request (as many as --pack says)"
    )
    parser.add_argument(
        "--pack",
        type=int,
        default=1,
        metavar="P",
        help="images in one ciphertext, a power of two, for which another program is compiled (1); if there are more in a request, its ciphertexts are "
        "computed side by side",
    )
    parser.add_argument(
        "--expect",
        type=int,
        default=_EXPECTED,
        metavar="K",
        help=f"images in the clear on which the agreement to expect is counted ({_EXPECTED})",
    )
    parser.add_argument(
        "--weights",
        type=Path,
        metavar="FILE",
        help="an .npz with another ResNet of this kind, as FHE-MP-CNN has them",
    )
    parser.add_argument(
        "--relu",
        action="store_true",
        help="the network of --weights has ReLU: by polynomials of degrees 15, 15 and 27, as others have it",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="for matrices, and as much for keys of bootstrapping, as 8GB; 40 GiB on a GPU, a third of what is free on a CPU",
    )
    add_options(parser)
    return parser


def _network(options: Namespace) -> cifar.Network:
    if options.weights is None and options.relu:
        raise InvalidArgument(
            "--relu needs the weights of a network with ReLU: name them with --weights FILE, for example an .npz of the arrays in "
            "FHE-MP-CNN's pretrained_parameters/resnet20_new"
        )
    network = cifar.shipped() if options.weights is None else cifar.load(options.weights)
    if network.squares == options.relu:
        kind = "squares: leave out --relu" if network.squares else "ReLU: add --relu"
        raise InvalidArgument(f"the network of {options.weights} has {kind}")
    return network


def _memory(options: Namespace) -> int:
    if options.memory is not None:
        return checks.size(options.memory, "--memory")
    if devices.resolved(options.device) != "cpu":
        return cifar.MEMORY
    return (free_bytes() or 12 << 30) // 3


class _Images:
    """The images that are encrypted, their labels, or none, and others; in every kept order."""

    def __init__(self, options: Namespace) -> None:
        self.labels: npt.NDArray[np.int64] | None = None
        if options.images is None:
            rng = np.random.default_rng()
            number = options.count + max(options.expect, _CALIBRATED)
            drawn: npt.NDArray[np.generic] = cifar.made(number, cifar.SIDE, rng)
            pixels, self._others = np.split(drawn, [options.count])
            self.source = "images drawn for this run"
        else:
            test, self._others = cifar.chosen(options.images, options.count)
            pixels, self.labels, self.source = test.images, test.labels, test.source
        self.encrypted = cifar.normalised(pixels)

    def others(self, most: int) -> cifar.Array:
        """At most so many images that are not encrypted, spread evenly."""
        count = min(most, len(self._others))
        at = np.linspace(0, max(0, len(self._others) - 1), count).round().astype(int)
        return cifar.normalised(self._others[at])

    def calibration(self) -> tuple[cifar.Array]:
        """Raises InvalidArgument if there are too few."""
        found = self.others(_CALIBRATED)
        if len(found) < cifar.LEAST:
            raise InvalidArgument(
                f"{self.source}: {len(found)} images are left to measure ranges on, and {cifar.LEAST} are needed: use a smaller --count, a "
                "file with more images, or a kept --program"
            )
        return (found,)

    def accuracy(self, scores: cifar.Array) -> float | None:
        """The share of images with the largest score at their label; None without labels."""
        return None if self.labels is None else _agreement(_answers(scores), self.labels)


def _answers(scores: cifar.Array) -> npt.NDArray[np.signedinteger[Any]]:
    """The label with the largest score of each image; -1 where decryption refused them."""
    return np.where(np.isfinite(scores).all(1), scores.argmax(1), -1)


def _agreement(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic]) -> float:
    return float(np.mean(a == b))


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali demo cifar``. Raises jali.Error, which says what to change."""
    options = _parser().parse_args(argv)
    check_positive(options, "count", "batch", "pack", "expect")
    if options.pack & (options.pack - 1):
        raise InvalidArgument("--pack must be a power of two, such as 2 or 4")
    options.batch = options.batch or options.pack
    if options.count % options.batch:
        raise InvalidArgument("--count must be a multiple of --batch, the images of a request")
    if options.batch % options.pack:
        raise InvalidArgument("--batch must be a multiple of --pack, the images of a ciphertext")
    memory, network, images = _memory(options), _network(options), _Images(options)
    side = images.encrypted.shape[-1]
    if not options.json:
        print(f"{options.count} images of {side} x {side} from {images.source}")
        if options.images is None:
            print("They say nothing about real images: give CIFAR-10's with --images FILE.")
        kind = "squares" if network.squares else "ReLU of degrees 15, 15 and 27"
        print(f"{len(network.layers) + 1} layers, {kind}, weights {network.name}")
    session = Session(
        network.graph(side, _RELU),
        (images.encrypted[0],),
        images.calibration,
        options,
        precision_bits=_BITS[network.squares],
        memory=memory,
        batch=options.pack,
    )
    others = max(0, options.expect - options.count)
    many = np.concatenate([images.encrypted, images.others(others)])
    clear = network.clear(many)
    if not np.allclose(session.program.clear(many[:1]), clear[:1], rtol=1e-6):
        raise InvalidArgument(
            f"{options.program} is a program of other weights: name a new file, or remove it"
        )
    session.say(f"counting the agreement to expect on {len(many)} images in the clear")
    expected = np.asarray(session.program.simulate(many))
    plan = {
        "demo": "cifar",
        "weights": network.name,
        "activation": "squares" if network.squares else _RELU,
        "source": images.source,
        "expected_agreement": _agreement(_answers(expected), clear.argmax(1)),
        "expected_on": len(many),
    }
    expects = f"{plan['expected_agreement']:.4f} of {len(many)} images, by the predicted noise"
    if options.plan:
        report_plan(session, plan, [("agreement to expect", expects)], options)
        return 0
    scores, figures = session.run(images.encrypted, batch=options.batch)
    plain = clear[: options.count]
    error, largest = float(np.nanmax(np.abs(scores - plain))), float(np.abs(plain).max())
    result = {
        **plan,
        "images": options.count,
        "batch": options.batch,
        "pack": options.pack,
        "accuracy": images.accuracy(scores),
        "plain_accuracy": images.accuracy(plain),
        "agreement_with_plain": _agreement(_answers(scores), plain.argmax(1)),
        "max_score_error": error,
        "largest_score": largest,
        "seconds_per_image": figures.seconds / options.batch,
        "images_per_second": options.batch / figures.seconds,
        **asdict(figures),
    }
    right = (
        ""
        if images.labels is None
        else f" (accuracy {result['accuracy']:.4f}, in the clear {result['plain_accuracy']:.4f})"
    )
    lines = [
        (
            "agreement with the clear network",
            f"{result['agreement_with_plain']:.4f} of {options.count} images{right}",
        ),
        ("agreement to expect", expects),
        ("largest difference of a score", f"{error:.1e} (scores up to {largest:.2f})"),
        (
            "time a request",
            f"{seconds_text(figures.seconds)} for {options.batch} images (predicted {seconds_text(figures.predicted_seconds)} for one ciphertext of "
            f"{options.pack}), {figures.bootstraps} bootstraps",
        ),
        ("images a second", f"{options.batch / figures.seconds:.3g}"),
        *figures.lines(),
    ]
    report(result, lines, options)
    return 0
