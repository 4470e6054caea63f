"""The command ``jali demo``."""

from __future__ import annotations

import json
import math
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jali import ckks, device, nn
from jali._core.console import bytes_text, progress, seconds_text, table
from jali.cli import (
    demo_aggregate,
    demo_cifar,
    demo_deep_nn,
    demo_encoder,
    demo_helr,
    demo_lookup,
    demo_nearest,
    demo_rnn,
    demo_trees,
)
from jali.cli.demo_options import add_common, check_positive
from jali.cli.parser import Parser
from jali.demo import data, network, show
from jali.demo.network import Array, Network
from jali.errors import InvalidArgument

__all__ = ["Result", "main"]

DRAWN = 10

# Demos with options of their own.
_OTHERS = {
    "trees": demo_trees.main,
    "deep-nn": demo_deep_nn.main,
    "helr": demo_helr.main,
    "rnn": demo_rnn.main,
    "encoder": demo_encoder.main,
    "cifar": demo_cifar.main,
    "lookup": demo_lookup.main,
    "nearest": demo_nearest.main,
    "aggregate": demo_aggregate.main,
}


@dataclass(frozen=True)
class Result:
    """The figures of a run. Times are in seconds of wall time. Bytes are for one image; key_bytes
    are sent once.

    seconds_per_image: encryption, serialisation, evaluation and decryption together, from the
        second request to the last answer.
    server_seconds_per_image: the mean time that a request spends in the server, divided by its
        images. With several workers, requests overlap there.
    first_seconds: for the first request, which is sent alone. On a GPU it also records the program.
        The means leave it out, unless it is the only one.
    compile_seconds: of ready_seconds, which is from the start to the first request.
    max_logit_error: the largest difference from the plain model's logits.
    precision_bits: -log2 of the root mean square of those differences.
    """

    demo: str
    images: int
    accuracy: float
    plain_accuracy: float
    agreement_with_plain: float
    max_logit_error: float
    precision_bits: float
    seconds_per_image: float
    server_seconds_per_image: float
    first_seconds: float
    compile_seconds: float
    ready_seconds: float
    bytes_up: int
    bytes_down: int
    key_bytes: int
    batch: int
    workers: int
    threads: int
    device: str
    params: dict[str, Any]


def _parser() -> Parser:
    parser = Parser(
        prog="jali demo",
        description="Encrypted inference on handwritten digits, end to end. 'jali demo trees --help' describes boosted trees "
        "on rows of numbers, 'jali demo deep-nn --help' deep networks of TFHE, 'jali demo helr --help' training on encrypted data, "
        "'jali demo rnn --help' recurrent networks on sentences, 'jali demo encoder --help' the encoder of a transformer, "
        "'jali demo cifar --help' ResNet-20 on colour images, 'jali demo lookup --help' private look-up by key, "
        "'jali demo nearest --help' scores of a private query, and 'jali demo aggregate --help' sums of many owners' numbers.",
    )
    parser.add_argument(
        "name",
        choices=["digits", "mnist", *_OTHERS],
        help="scikit-learn's 8x8 digits, 28x28 digits, trees, deep networks on 28x28 digits, training, recurrent networks, an encoder, a "
        "residual network, or exact integers: a look-up, a search, sums",
    )
    parser.add_argument(
        "--images",
        type=Path,
        metavar="FILE",
        help="mnist: an .npz with images and labels, or an IDX file",
    )
    parser.add_argument(
        "--labels", type=Path, metavar="FILE", help="labels of an IDX file of images"
    )
    parser.add_argument("--limit", type=int, metavar="K", help="only the first K images")
    parser.add_argument("--batch", type=int, default=1, metavar="B", help="images a request (1)")
    parser.add_argument(
        "--workers", type=int, default=1, metavar="W", help="requests at a time (1)"
    )
    parser.add_argument("--png", type=Path, metavar="FILE", help="draw images and answers to FILE")
    add_common(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali demo``. Raises jali.Error, which says what to change."""
    words = list(sys.argv[2:] if argv is None else argv)
    if words and words[0] in _OTHERS:
        return _OTHERS[words[0]](words[1:])
    started = time.perf_counter()
    options = _parser().parse_args(words)
    check_positive(options, "limit", "batch", "workers")
    # Check now what would otherwise fail at the end.
    ckks.Evaluator(ckks.Params.preset("n12_d1"), None, options.device)
    if options.png is not None:
        show.check_png(options.png)
    every = _images(options)
    images = every.first(options.limit)
    model = network.load(options.name)
    known = _known(options, every, len(images.images))
    say = (lambda *_: None) if options.json else print
    waited = time.perf_counter() - started  # reading images is not part of getting ready
    session = _Session(model, known, options)
    ready = time.perf_counter() - started - waited
    say(f"{len(images.images)} images from {images.source}")
    say(
        f"program: calibrated on {len(known)} images; {session.program.params}; compiled in "
        f"{seconds_text(session.compile_seconds)}"
    )
    say(f"server: {_device_text(session.server.evaluator)}")
    say(
        f"client -> server, once: {bytes_text(session.key_bytes)} of public keys "
        f"({len(session.program.manifest.demand.rotations)} rotations); ready in {seconds_text(ready)}"
    )
    encrypted, timing = session.classify(images.images, options.batch, options.workers)
    plain = model.logits(images.images)
    result = _result(options.name, images.labels, encrypted, plain, timing, session, ready, options)
    predictions = encrypted.argmax(1)
    pixels = np.asarray(images.images, np.float64) / model.pixel_max
    if options.png is not None:
        show.write_png(options.png, pixels, predictions, images.labels)
    if options.json:
        print(json.dumps(asdict(result)))
        return 0
    _report(result, pixels, images.labels, encrypted, plain)
    if options.png is not None:
        print(f"wrote {options.png}")
    return 0


def _device_text(server: ckks.Evaluator) -> str:
    """The device that computes, e.g. "cuda:0 (NVIDIA GeForce RTX 4090)"."""
    if server.engine.startswith("cuda"):
        return f"{server.engine} ({device.name(server.engine)})"
    return f"{server.engine}, {server.threads} threads"


def _images(options: Namespace) -> data.Images:
    if options.name == "digits":
        if options.images is not None or options.labels is not None:
            raise InvalidArgument("'jali demo digits' has its own images: --images goes with mnist")
        return data.load_digits()
    if options.images is None:
        raise InvalidArgument(
            "'jali demo mnist' needs --images FILE: an .npz with `images` (n, 28, 28) uint8 and "
            "`labels`, or an IDX file such as t10k-images-idx3-ubyte"
        )
    return data.load_mnist(options.images, options.labels)


def _known(options: Namespace, images: data.Images, used: int) -> npt.NDArray[np.generic]:
    """Images to calibrate the program on: those on which the digits' network was trained, or of the
    same file."""
    if options.name == "digits":
        return data.others(data.load_digits(test=False).images, 0)
    return data.others(images.images, used)


@dataclass
class _Timing:
    """How long requests took.

    first: seconds for the first request.
    seconds, server: for others, of so many images, or for the first if there are none.
    """

    first: float
    images: int
    seconds: float
    server: float
    up: int
    down: int


class _Session:
    """A client, a server, and the bytes that they exchange."""

    def __init__(self, model: Network, known: npt.NDArray[np.generic], options: Namespace) -> None:
        begin = time.perf_counter()
        self.model, self.program = model, model.program(known)
        self.compile_seconds = time.perf_counter() - begin
        # Several workers keep the cores busy by themselves, so each uses one thread.
        alone = options.workers == 1
        self.client = self.program.client(threads=options.threads if alone else 1)
        keys = self.client.evaluation_keys().to_bytes()
        self.server = self.program.server(
            ckks.EvaluationKeys.from_bytes(keys, self.program.params),
            device=options.device,
            threads=options.threads,
        )
        self.key_bytes = len(keys)

    def classify(
        self, images: npt.NDArray[np.generic], batch: int, workers: int
    ) -> tuple[Array, _Timing]:
        """Logits (n, 10) that the server computes, `workers` requests at a time after the first,
        and the times."""
        begin = time.perf_counter()
        done = [self._answer(images[:batch])]
        first = seconds = time.perf_counter() - begin
        starts = range(batch, len(images), batch)
        if starts:
            with ThreadPoolExecutor(workers) as pool:
                begin = time.perf_counter()
                answers = pool.map(lambda k: self._answer(images[k : k + batch]), starts)
                done += progress(answers, "encrypted inference, request", len(starts))
                seconds = time.perf_counter() - begin
        server, up, down = zip(*(figures for _, figures in done), strict=True)
        counted = len(images) - batch if starts else len(images)
        timing = _Timing(first, counted, seconds, sum(server[1:] or server), sum(up), sum(down))
        return np.concatenate([logits for logits, _ in done]), timing

    def _answer(self, images: npt.NDArray[np.generic]) -> tuple[Array, tuple[float, int, int]]:
        """The logits of one request; the seconds in the server, and the bytes up and down."""
        manifest = self.program.manifest
        request = self.client.encrypt(self.model.pixels(images)).to_bytes()
        arrived = time.perf_counter()
        reply = self.server(nn.Message.request(request, manifest)).to_bytes()
        left = time.perf_counter()
        logits = np.asarray(self.client.decrypt(nn.Message.reply(reply, manifest)))
        return logits, (left - arrived, len(request), len(reply))


def _result(
    name: str,
    labels: npt.NDArray[np.int64],
    encrypted: Array,
    plain: Array,
    timing: _Timing,
    session: _Session,
    ready: float,
    options: Namespace,
) -> Result:
    n = len(labels)
    params, server = session.program.params, session.server.evaluator
    rms = math.sqrt(float(np.mean((encrypted - plain) ** 2)))
    return Result(
        demo=name,
        images=n,
        accuracy=float(np.mean(encrypted.argmax(1) == labels)),
        plain_accuracy=float(np.mean(plain.argmax(1) == labels)),
        agreement_with_plain=float(np.mean(encrypted.argmax(1) == plain.argmax(1))),
        max_logit_error=float(np.abs(encrypted - plain).max()),
        precision_bits=-math.log2(rms) if rms > 0 else math.inf,
        seconds_per_image=timing.seconds / timing.images,
        server_seconds_per_image=timing.server / timing.images,
        first_seconds=timing.first,
        compile_seconds=session.compile_seconds,
        ready_seconds=ready,
        bytes_up=round(timing.up / n),
        bytes_down=round(timing.down / n),
        key_bytes=session.key_bytes,
        batch=options.batch,
        workers=options.workers,
        threads=server.threads,
        device=server.engine,
        params={
            "log_n": params.log_n,
            "depth": params.depth,
            "scale_bits": params.scale_bits,
            "log_qp": params.log_qp,
            "word": params.word,
            "security": params.security,
        },
    )


def _report(
    result: Result,
    pixels: Array,
    labels: npt.NDArray[np.int64],
    encrypted: Array,
    plain: Array,
) -> None:
    predictions, expected = encrypted.argmax(1), plain.argmax(1)
    captions = [
        f"{p} ({label}, {e})" for p, label, e in zip(predictions, labels, expected, strict=True)
    ]
    print("\nunder each digit: the encrypted answer (label, plain model's answer)\n")
    print(show.digits_text(pixels[:DRAWN], captions[:DRAWN]))
    wrong = [
        i
        for i in range(len(labels))
        if predictions[i] != labels[i] or predictions[i] != expected[i]
    ]
    if wrong:
        rows = [(i, predictions[i], labels[i], expected[i]) for i in wrong[:20]]
        more = f", the first 20 of {len(wrong)}" if len(wrong) > 20 else ""
        table(
            f"answers that differ from the label{more}",
            ["image", "encrypted", "label", "plain"],
            rows,
        )
        print()
    first = "of the only request"
    if result.images > result.batch:
        first = f"without the first request, which took {seconds_text(result.first_seconds)}"
    summary = [
        ("accuracy", f"{result.accuracy:.4f} (plain model {result.plain_accuracy:.4f})"),
        ("agreement with the plain model", f"{result.agreement_with_plain:.4f}"),
        (
            "precision of a logit",
            f"{result.precision_bits:.1f} bits (largest error {result.max_logit_error:.1e})",
        ),
        (
            "time an image",
            f"{seconds_text(result.seconds_per_image)}, of which the server "
            f"{seconds_text(result.server_seconds_per_image)} on {result.device}; {first}",
        ),
        ("client to server, an image", bytes_text(result.bytes_up)),
        ("server to client, an image", bytes_text(result.bytes_down)),
    ]
    print(f"{result.demo}: {result.images} encrypted images")
    for name, value in summary:
        print(f"  {name:<32}{value}")
    sys.stdout.flush()
