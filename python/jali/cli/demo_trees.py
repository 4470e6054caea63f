"""The command ``jali demo trees``."""

from __future__ import annotations

import json
import time
from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from jali import device, tfhe
from jali._core.console import bytes_text, progress, seconds_text, table
from jali.cli.demo_options import add_common, check_positive
from jali.cli.parser import Parser
from jali.demo import trees as demo
from jali.tfhe import trees

__all__ = ["Result", "main"]

SHOWN = 10


@dataclass(frozen=True)
class Result:
    """The figures of a run. Times are in seconds of wall time. Bytes are for one row; key_bytes are
    sent once.

    accuracy: of the encrypted answers.
    plain_accuracy: of scikit-learn's model with rounded leaves, on the same rows.
    fitted_accuracy: of the model before its leaves were rounded.
    agreement_with_plain: the share of rows with the rounded model's label.
    equal_scores: that of rows with its very score.
    seconds_per_row: encryption, serialisation, evaluation and decryption together.
    look_ups_per_second: in the server's time, which includes reading requests and writing replies.
    """

    demo: str
    rows: int
    accuracy: float
    plain_accuracy: float
    fitted_accuracy: float
    agreement_with_plain: float
    equal_scores: float
    look_ups_per_row: int
    seconds_per_row: float
    server_seconds_per_row: float
    rows_per_second: float
    look_ups_per_second: float
    ready_seconds: float
    bytes_up: int
    bytes_down: int
    key_bytes: int
    batch: int
    device: str
    params: str


def _rows(text: str) -> int | None:
    if text == "all":
        return None
    try:
        return int(text)
    except ValueError:
        raise ArgumentTypeError(f"rows must be a whole number or all, not {text}") from None


def _parser() -> Parser:
    parser = Parser(
        prog="jali demo trees",
        description="Boosted trees on encrypted rows of scikit-learn's breast-cancer set, end to end.",
    )
    parser.add_argument(
        "--rows", type=_rows, metavar="K", help="only the first K test rows (all 142)"
    )
    parser.add_argument("--batch", type=int, default=16, metavar="B", help="rows a request (16)")
    parser.add_argument(
        "--preset", default=demo.PRESET, metavar="NAME", help=f"parameters ({demo.PRESET})"
    )
    add_common(parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """The command ``jali demo trees``. Raises jali.Error, which says what to change."""
    options = _parser().parse_args(argv)
    check_positive(options, "rows", "batch")
    agreed = tfhe.Params.preset(options.preset)
    train, test = demo.load()
    started = time.perf_counter()
    model = demo.fitted(train)
    program = trees.compile(model.rounded, agreed, model.edges, split_sums=True)
    manifest = program.manifest.to_bytes()
    client = demo.Client(manifest, threads=options.threads)
    keys = client.public_bytes()
    server = demo.Server(program, keys, device=options.device, threads=options.threads)
    ready = time.perf_counter() - started
    test = test.first(options.rows)
    say = (lambda *_: None) if options.json else print
    say(
        f"{len(test.labels)} test rows of scikit-learn's breast-cancer set, {len(train.labels)} others to train on"
    )
    say(
        f"model: gradient boosting, {demo.TREES} trees of {demo.LEAVES} leaves on {demo.BINS} bins of each of "
        f"{test.features.shape[1]} features; {program.look_ups} look-ups a row"
    )
    say(f"client: {client.params}")
    say(f"server: {server.engine} ({device.name(server.engine)})")
    say(
        f"client -> server, once: {bytes_text(len(keys))} of public keys; ready in {seconds_text(ready)}"
    )
    begin = time.perf_counter()
    answers = list(_answers(client, server, test, options.batch))
    seconds = time.perf_counter() - begin
    scores = np.concatenate([one.scores for one in answers])
    plain = model.scores(test.features)
    count = len(test.labels)
    in_server = sum(one.server_seconds for one in answers)
    labels, expected = client.labels(scores), client.labels(plain)
    result = Result(
        demo="trees",
        rows=count,
        accuracy=float(np.mean(labels == test.labels)),
        plain_accuracy=model.accuracy(model.rounded, test),
        fitted_accuracy=model.accuracy(model.fitted, test),
        agreement_with_plain=float(np.mean(labels == expected)),
        equal_scores=float(np.mean(scores == plain)),
        look_ups_per_row=program.look_ups,
        seconds_per_row=seconds / count,
        server_seconds_per_row=in_server / count,
        rows_per_second=count / in_server,
        look_ups_per_second=count * program.look_ups / in_server,
        ready_seconds=ready,
        bytes_up=round(sum(one.up for one in answers) / count),
        bytes_down=round(sum(one.down for one in answers) / count),
        key_bytes=len(keys),
        batch=options.batch,
        device=server.engine,
        params=client.params.name,
    )
    if options.json:
        print(json.dumps(asdict(result)))
        return 0
    _report(result, test.labels, labels, scores, plain)
    return 0


@dataclass(frozen=True)
class _Answer:
    scores: npt.NDArray[np.float64]
    server_seconds: float
    up: int
    down: int


def _answers(
    client: demo.Client, server: demo.Server, test: demo.Rows, batch: int
) -> Iterator[_Answer]:
    starts = range(0, len(test.labels), batch)
    for start in progress(starts, "encrypted inference, request", len(starts)):
        request = client.encrypt(test.features[start : start + batch])
        arrived = time.perf_counter()
        reply = server(request)
        left = time.perf_counter()
        yield _Answer(client.decrypt(reply), left - arrived, len(request), len(reply))


def _report(
    result: Result,
    labels: npt.NDArray[np.int64],
    found: npt.NDArray[np.int64],
    scores: npt.NDArray[np.float64],
    plain: npt.NDArray[np.float64],
) -> None:
    names = ("malignant", "benign")
    print()
    table(
        "the first rows",
        ["row", "encrypted score", "scikit-learn's", "answer", "label"],
        [
            (i, f"{scores[i]:.3f}", f"{plain[i]:.3f}", names[found[i]], names[labels[i]])
            for i in range(min(SHOWN, len(labels)))
        ],
    )
    differing = [i for i in range(len(labels)) if scores[i] != plain[i]]
    if differing:
        print(f"rows whose scores differ from scikit-learn's: {differing}")
    summary = [
        (
            "accuracy",
            f"{result.accuracy:.4f} (scikit-learn {result.plain_accuracy:.4f}, before its leaves were rounded "
            f"{result.fitted_accuracy:.4f})",
        ),
        (
            "agreement with scikit-learn",
            f"{result.agreement_with_plain:.4f} of answers, {result.equal_scores:.4f} of scores to the last bit",
        ),
        (
            "time a row",
            f"{seconds_text(result.seconds_per_row)}, of which the server {seconds_text(result.server_seconds_per_row)} "
            f"on {result.device}",
        ),
        (
            "look-ups",
            f"{result.look_ups_per_row} a row, {result.look_ups_per_second:.0f} a second",
        ),
        ("client to server, a row", bytes_text(result.bytes_up)),
        ("server to client, a row", bytes_text(result.bytes_down)),
    ]
    print(f"\n{result.demo}: {result.rows} encrypted rows")
    for name, value in summary:
        print(f"  {name:<30}{value}")
