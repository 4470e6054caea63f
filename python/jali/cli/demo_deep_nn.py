"""The command ``jali demo deep-nn``."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jali import device, tfhe
from jali._core.console import bytes_text, counter, seconds_text, table
from jali.cli.demo_options import add_common, check_positive
from jali.cli.parser import Parser
from jali.demo import data, deep_nn, show
from jali.errors import InvalidArgument

__all__ = ["Result", "main"]

DRAWN = 10
PUBLISHED = {20: 0.971, 50: 0.947}  # Chillotti, Joye and Paillier (2021/091)


@dataclass(frozen=True)
class Result:
    """The figures of a run. Times are in seconds of wall time. Bytes are for one image; key_bytes
    are sent once.

    accuracy, plain_accuracy: of the encrypted and of the clear network.
    agreement_with_plain: the share of images to which both give one answer.
    equal_scores: that of images whose ten scores are the same whole numbers.
    seconds_per_image: encryption, serialisation, evaluation and decryption together. Images of one
        request are computed together.
    look_ups_per_second: in the server's time, which includes reading requests and writing replies.
    """

    demo: str
    net: int
    images: int
    accuracy: float
    plain_accuracy: float
    agreement_with_plain: float
    equal_scores: float
    look_ups_per_image: int
    seconds_per_image: float
    server_seconds_per_image: float
    look_ups_per_second: float
    ready_seconds: float
    bytes_up: int
    bytes_down: int
    key_bytes: int
    batch: int
    device: str
    security: int


def _parser() -> Parser:
    parser = Parser(
        prog="jali demo deep-nn",
        description="Zama's Deep-NN on encrypted 28x28 digits: 20, 50 or 100 layers, ReLU by programmable bootstrapping.",
    )
    parser.add_argument(
        "--net", type=int, choices=deep_nn.DEPTHS, default=20, help="how many layers (20)"
    )
    parser.add_argument(
        "--images",
        type=Path,
        metavar="FILE",
        help="an .npz with images and labels, or an IDX file such as t10k-images-idx3-ubyte",
    )
    parser.add_argument(
        "--labels", type=Path, metavar="FILE", help="labels of an IDX file of images"
    )
    parser.add_argument("--limit", type=int, default=1, metavar="K", help="the first K images (1)")
    parser.add_argument("--batch", type=int, default=1, metavar="B", help="images a request (1)")
    add_common(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali demo deep-nn``. Raises jali.Error, which says what to change."""
    options = _parser().parse_args(argv)
    check_positive(options, "limit", "batch")
    if options.images is None:
        raise InvalidArgument(
            "'jali demo deep-nn' needs --images FILE: an .npz with `images` (n, 28, 28) uint8 and `labels`, or an IDX file such as "
            "t10k-images-idx3-ubyte"
        )
    images = data.load_mnist(options.images, options.labels).first(options.limit)
    network = deep_nn.load(options.net)
    say = (lambda *_: None) if options.json else print
    started = time.perf_counter()
    client = deep_nn.Client(network, threads=options.threads)
    params, keys = client.public_bytes()
    server = deep_nn.Server(network, params, keys, options.device, threads=options.threads)
    ready = time.perf_counter() - started
    count = len(images.images)
    say(f"{count} images from {images.source}")
    say(f"network: NN-{network.depth}, {network.look_ups} look-ups an image")
    say(f"client: {_params_text(deep_nn.PARAMS)}")
    say(f"server: {server.engine} ({device.name(server.engine)})")
    say(
        f"client -> server, once: {bytes_text(len(params) + len(keys))} of public keys; ready in {seconds_text(ready)}"
    )
    starts = range(0, count, options.batch)
    scores, in_server, up, down = [], 0.0, 0, 0
    begin = time.perf_counter()
    for number, start in enumerate(starts, 1):
        request = client.encrypt(images.images[start : start + options.batch])
        arrived = time.perf_counter()
        reply = server(
            request, counter(f"encrypted inference, request {number}/{len(starts)}, layer")
        )
        in_server += time.perf_counter() - arrived
        scores.append(client.decrypt(reply))
        up, down = up + len(request), down + len(reply)
    seconds = time.perf_counter() - begin
    found, plain = np.concatenate(scores), network.scores(images.images)
    answers, expected = found.argmax(1), plain.argmax(1)
    result = Result(
        demo="deep-nn",
        net=network.depth,
        images=count,
        accuracy=float(np.mean(answers == images.labels)),
        plain_accuracy=float(np.mean(expected == images.labels)),
        agreement_with_plain=float(np.mean(answers == expected)),
        equal_scores=float(np.mean((found == plain).all(1))),
        look_ups_per_image=network.look_ups,
        seconds_per_image=seconds / count,
        server_seconds_per_image=in_server / count,
        look_ups_per_second=count * network.look_ups / in_server,
        ready_seconds=ready,
        bytes_up=round(up / count),
        bytes_down=round(down / count),
        key_bytes=len(params) + len(keys),
        batch=options.batch,
        device=server.engine,
        security=deep_nn.PARAMS.security,
    )
    if options.json:
        print(json.dumps(asdict(result)))
        return 0
    _report(result, images, found, plain)
    return 0


def _params_text(params: tfhe.Params) -> str:
    return f"TFHE, n={params.n}, k={params.k}, N={params.N}, {params.security} bits of security"


def _report(
    result: Result,
    images: data.Images,
    found: npt.NDArray[np.int64],
    plain: npt.NDArray[np.int64],
) -> None:
    answers, expected = found.argmax(1), plain.argmax(1)
    captions = [
        f"{a} ({label}, {e})" for a, label, e in zip(answers, images.labels, expected, strict=True)
    ]
    pixels = np.asarray(images.images[:DRAWN], np.float64) / 255
    print("\nunder each digit: the encrypted answer (label, clear network's answer)\n")
    print(show.digits_text(pixels, captions[:DRAWN]))
    wrong = [
        i
        for i in range(len(answers))
        if answers[i] != images.labels[i] or answers[i] != expected[i]
    ]
    if wrong:
        more = f", the first 20 of {len(wrong)}" if len(wrong) > 20 else ""
        table(
            f"answers that differ from the label{more}",
            ["image", "encrypted", "label", "clear"],
            [(i, answers[i], images.labels[i], expected[i]) for i in wrong[:20]],
        )
        print()
    published = PUBLISHED.get(result.net)
    beside = f"; published for NN-{result.net}: {published:.3f}" if published else ""
    summary = [
        (
            "accuracy",
            f"{result.accuracy:.4f} (clear network {result.plain_accuracy:.4f}{beside})",
        ),
        (
            "agreement with the clear network",
            f"{result.agreement_with_plain:.4f} of answers, {result.equal_scores:.4f} of images in all ten scores",
        ),
        (
            "time an image",
            f"{seconds_text(result.seconds_per_image)}, of which the server {seconds_text(result.server_seconds_per_image)} "
            f"on {result.device}",
        ),
        (
            "look-ups",
            f"{result.look_ups_per_image} an image, {result.look_ups_per_second:.0f} a second",
        ),
        ("client to server, an image", bytes_text(result.bytes_up)),
        ("server to client, an image", bytes_text(result.bytes_down)),
    ]
    print(f"{result.demo}: {result.images} encrypted images")
    for name, value in summary:
        print(f"  {name:<34}{value}")
