"""The demos as benchmarks: one image from encryption to logits, rows through encrypted trees, and
compiled networks: residual ones and an encoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jali import _jali, ckks, nn, tfhe
from jali.bench import floors
from jali.bench.compiled import Served
from jali.bench.measure import Floor, Row, row, timed
from jali.bench.registry import Options, benchmark
from jali.demo import cifar, data, encoder, network, sentences
from jali.demo import trees as demo
from jali.errors import InternalError, InvalidArgument
from jali.tfhe import trees


def _demo(
    name: str,
    images: npt.NDArray[np.generic],
    known: npt.NDArray[np.generic],
    options: Options,
) -> Row:
    """known: images on which the program is calibrated."""
    model = network.load(name)
    program = model.program(known)
    client = program.client(threads=options.threads)
    server = program.server(
        client.evaluation_keys(), device=options.device, threads=options.threads
    )
    image, plain = model.pixels(images[:1]), model.logits(images[:1])

    def answered() -> tuple[int, int, npt.NDArray[np.float64]]:
        request = client.encrypt(image).to_bytes()
        reply = server(nn.Message.request(request, program.manifest)).to_bytes()
        logits = client.decrypt(nn.Message.reply(reply, program.manifest))
        return len(request), len(reply), np.asarray(logits)

    up, down, logits = answered()
    worst = float(np.abs(logits - plain).max())
    if not worst < 0.05:
        raise InternalError(f"demo_{name}: a logit is off by {worst:.2e}")
    floor = _floor(program, image, options)
    threads = server.evaluator.threads
    clock = options.clock_of(threads)
    times = timed(answered, seconds=options.seconds, clock=clock)
    about = {
        "log_n": program.params.log_n,
        "word": program.params.word,
        "log_qp": round(program.params.log_qp, 1),
        "threads": threads,
        "clock": clock,
        "bytes_up": up,
        "bytes_down": down,
    }
    bits = float(-np.log2(worst))
    return row(
        f"demo_{name}", server.evaluator.engine, about, times, floor=floor, precision_bits=bits
    )


def _floor(program: nn.Program, image: npt.NDArray[np.float64], options: Options) -> Floor:
    """The owner's floor and the server's, one after the other."""
    word = program.params.word
    secret = ckks.Client(program.params, threads=options.threads)
    host = secret.engine
    secret._core = owner = _jali.ckks.ClientCore(program.params, options.threads or 0, "cpu", True)
    client = program.client(secret=secret)
    server = program.server(
        client.evaluation_keys(),
        device=options.device,
        threads=options.threads,
        capture=False,
        trace=True,
    )
    noted = server.evaluator.trace()
    assert owner.trace is not None
    noted.clear()
    owner.trace.clear()
    client.decrypt(server(client.encrypt(image)))
    threads, engine = server.evaluator.threads, server.evaluator.engine
    parts = [
        floors.of(floors.work_of(owner.trace), word, host, threads),
        floors.of(floors.work_of(noted), word, engine, threads),
    ]
    return Floor(sum(part.seconds for part in parts), ", then ".join(part.kind for part in parts))


@benchmark("demo_digits", "one image of 'jali demo digits': encrypt, evaluate, decrypt")
def demo_digits(options: Options) -> Iterator[Row]:
    """Needs scikit-learn."""
    known = data.load_digits(test=False)
    yield _demo("digits", data.load_digits().images, known.images, options)


@benchmark("demo_mnist", "one image of 'jali demo mnist'; --images FILE")
def demo_mnist(options: Options) -> Iterator[Row]:
    """Needs a file of images."""
    if options.images is None:
        raise InvalidArgument("demo_mnist needs --images FILE, as 'jali demo mnist' does")
    images = data.load_mnist(Path(options.images)).images
    yield _demo("mnist", images, data.others(images, 1), options)


@benchmark(
    "demo_trees",
    "rows through the trees of 'jali demo trees': the server, and its sums and look-ups",
)
def demo_trees(options: Options) -> Iterator[Row]:
    """Needs scikit-learn. --batch says how many rows at once, --set which parameters.

    demo_trees: from a request's bytes to those of the reply.
    demo_trees_run: from answers in the device's memory to the bytes of the reply.
    """
    train, test = demo.load()
    model = demo.fitted(train)
    for name in options.sets or (demo.PRESET,):
        params = tfhe.Params.preset(name)
        program = trees.compile(model.rounded, params, model.edges, split_sums=True)
        client = demo.Client(program.manifest.to_bytes())
        keys = client.public_bytes()
        server = demo.Server(program, keys, device=options.device, threads=options.threads or 1)
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
    message = trees.Message.request(request, program.manifest)
    answers = server.read(message)
    about = {
        "set": client.params.name,
        "look_ups": program.look_ups,
        "threads": options.threads or 1,
        "bytes_up": len(request),
        "bytes_down": len(server(request)),
    }
    bodies: dict[str, Callable[[], bytes]] = {
        "demo_trees": lambda: server(request),
        "demo_trees_run": lambda: server.run(message, answers).to_bytes(),
    }
    for name, body in bodies.items():
        times = timed(body, seconds=options.seconds)
        wrong = int(np.count_nonzero(client.decrypt(body()) != want))
        if wrong:
            raise InternalError(f"{name}: {wrong} of {len(want)} rows have another score")
        yield row(name, server.engine, about, times, batch=len(rows))


@benchmark(
    "demo_cifar",
    "the server of 'jali demo cifar', ResNet-20 with squares; --images FILE, --batch images a request",
)
def demo_cifar(options: Options) -> Iterator[Row]:
    """Needs a file of images, and a GPU or much memory. A row's time is that of the server for one
    request, from ciphertexts to ciphertexts; the definition is that of TensorFHE (2023) and Cheddar
    (2026), whose networks have ReLU, and of HyPHEN (2023), whose has squares.
    """
    if options.images is None:
        raise InvalidArgument("demo_cifar needs --images FILE, as 'jali demo cifar' does")
    most = max(options.batches or (1,))
    test, others = cifar.chosen(Path(options.images), most)
    yield from cifar_rows(
        cifar.shipped(), cifar.normalised(test.images), cifar.normalised(others[:256]), options
    )


def cifar_rows(
    model: cifar.Network, images: cifar.Array, others: cifar.Array, options: Options
) -> Iterator[Row]:
    """A row for each size of a request. others: images on which ranges are measured."""
    kind = "cuda" if options.on_gpu() else "cpu"
    program = nn.compile(
        model.graph(images.shape[-1]),
        images[0],
        calibration=others,
        precision_bits=cifar.BITS,
        device=kind,
        memory=cifar.MEMORY,
    )
    served = Served(program, options)
    about = {"network": f"ResNet-{len(model.layers) + 1}, squares"}
    for batch in options.batches or (1,):
        some = images[:batch]
        yield served.row("demo_cifar", (some,), model.clear(some), about, batch=batch)


@benchmark(
    "demo_encoder",
    "the server of 'jali demo encoder', one sentence of random words: two layers, 128 places, 128 features",
)
def demo_encoder(options: Options) -> Iterator[Row]:
    """Needs a GPU, or much memory and hours. The row's time is that of the server for one request,
    from ciphertexts to ciphertexts. Published encoders of this size (BERT-tiny) were not found;
    NEXUS, THOR and others have BERT-base, which is 200 times the work.
    """
    model, rng = encoder.load(), np.random.default_rng()
    vectors = model.embedded(sentences.made(model.words, 64, rng).texts)
    yield encoder_row(model, vectors, options)


def encoder_row(model: encoder.Network, vectors: encoder.Array, options: Options) -> Row:
    """A row for the first sentence. vectors: of sentences on which ranges are measured."""
    program = nn.compile(
        model.logit,
        vectors[0],
        calibration=vectors,
        precision_bits=encoder.BITS,
        margin=encoder.MARGIN,
        device="cuda" if options.on_gpu() else "cpu",
        memory=encoder.MEMORY,
    )
    plain = model.logits(vectors)
    about = {
        "network": f"{len(model.layers)} layers, {vectors.shape[2]} places, {encoder.WIDTH} features, softmax, layer norm, GELU",
    }
    largest = float(np.abs(plain).max())
    return Served(program, options).row(
        "demo_encoder", (vectors[:1],), plain[:1], about, largest=largest
    )
