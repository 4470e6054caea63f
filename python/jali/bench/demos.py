"""The demos as benchmarks: one image from encryption to logits, and rows through encrypted trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jali import _jali, ckks, tfhe
from jali.bench import floors
from jali.bench.measure import Floor, Row, row, timed
from jali.bench.registry import Options, benchmark
from jali.demo import data, network, roles
from jali.demo import trees as demo
from jali.demo.packing import Program
from jali.errors import InternalError, InvalidArgument
from jali.tfhe import trees


def _demo(name: str, images: npt.NDArray[np.generic], options: Options) -> Row:
    model = network.load(name)
    program = roles.plan(model)
    client = roles.Client(program, threads=options.threads)
    server = roles.Server(
        program, *client.public_bytes(), device=options.device, threads=options.threads
    )
    image, plain = images[:1], model.logits(images[:1])
    request = client.encrypt(image)
    reply = server(request)
    worst = float(np.abs(client.decrypt(reply) - plain).max())
    if not worst < 0.05:
        raise InternalError(f"demo_{name}: a logit is off by {worst:.2e}")
    floor = _floor(program, client, image, options)
    clock = options.clock_of(server.threads)
    times = timed(
        lambda: client.decrypt(server(client.encrypt(image))), seconds=options.seconds, clock=clock
    )
    about = {
        "log_n": client.params.log_n,
        "word": client.params.word,
        "log_qp": round(client.params.log_qp, 1),
        "threads": server.threads,
        "clock": clock,
        "bytes_up": len(request),
        "bytes_down": len(reply),
    }
    bits = float(-np.log2(worst))
    return row(f"demo_{name}", server.engine, about, times, floor=floor, precision_bits=bits)


def _floor(
    program: Program, client: roles.Client, image: npt.NDArray[np.generic], options: Options
) -> Floor:
    """The owner's floor and the server's, one after the other."""
    params, word = client.params, client.params.word
    server = roles.Server(
        program, *client.public_bytes(), device=options.device, threads=options.threads, trace=True
    )
    owner = _jali.ckks.ClientCore(params, options.threads or 0, "cpu", True)
    assert server.trace is not None and owner.trace is not None
    server.trace.clear()
    owner.trace.clear()
    reply = server.evaluate(
        owner.encrypt(program.pack(image), magnitude=roles.MAGNITUDE, peak=roles.GAINS[0])
    )
    owner.decrypt(reply, params.slots, False, False)
    host = ckks.Client(params, threads=options.threads).engine
    parts = [
        floors.of(floors.work_of(owner.trace), word, host, server.threads),
        floors.of(floors.work_of(server.trace), word, server.engine, server.threads),
    ]
    return Floor(sum(part.seconds for part in parts), ", then ".join(part.kind for part in parts))


@benchmark("demo_digits", "one image of 'jali demo digits': encrypt, evaluate, decrypt")
def demo_digits(options: Options) -> Iterator[Row]:
    """Needs scikit-learn."""
    yield _demo("digits", data.load_digits().images, options)


@benchmark("demo_mnist", "one image of 'jali demo mnist'; --images FILE")
def demo_mnist(options: Options) -> Iterator[Row]:
    """Needs a file of images."""
    if options.images is None:
        raise InvalidArgument("demo_mnist needs --images FILE, as 'jali demo mnist' does")
    yield _demo("mnist", data.load_mnist(Path(options.images)).images, options)


@benchmark(
    "demo_trees",
    "rows through the trees of 'jali demo trees': the server, and its sums and look-ups",
)
def demo_trees(options: Options) -> Iterator[Row]:
    """Needs scikit-learn. --batch says how many rows at once, --set which parameters.

    demo_trees: from a request's bytes to those of the reply. demo_trees_run: from answers in the device's memory to
    the bytes of the reply.
    """
    train, test = demo.load()
    model = demo.fitted(train)
    for name in options.sets or (demo.PRESET,):
        params = tfhe.Params.preset(name)
        program = trees.compile(model.rounded, params, model.edges)
        client = demo.Client(program.questions.to_json(), params)
        server = demo.Server(
            program, *client.public_bytes(), device=options.device, threads=options.threads or 1
        )
        for batch in options.batches or (1, 16):
            yield from _trees(client, server, model, np.resize(test.features, (batch, 30)), options)


def _trees(
    client: demo.Client,
    server: demo.Server,
    model: demo.Model,
    rows: npt.NDArray[np.float64],
    options: Options,
) -> Iterator[Row]:
    program, request, want = server.program, client.encrypt(rows), model.scores(rows)
    answers = program.read(server.evaluator, request)
    about = {
        "set": client.params.name,
        "look_ups": program.look_ups,
        "threads": options.threads or 1,
        "bytes_up": sum(len(one) for one in request),
        "bytes_down": len(server(request)),
    }
    bodies: dict[str, Callable[[], bytes]] = {
        "demo_trees": lambda: server(request),
        "demo_trees_run": lambda: program.run(answers).ciphertext.to_bytes(),
    }
    for name, body in bodies.items():
        times = timed(body, seconds=options.seconds)
        wrong = int(np.count_nonzero(client.decrypt(body()) != want))
        if wrong:
            raise InternalError(f"{name}: {wrong} of {len(want)} rows have another score")
        yield row(name, server.engine, about, times, batch=len(rows))
