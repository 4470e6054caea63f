"""Exact integers modulo T: the operations on ciphertexts, the client's side, and products of BGV and
BFV beside the product of CKKS."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from jali import ckks, discrete
from jali.bench import floors, profile, sets
from jali.bench.measure import NO_LIMIT, Floor, Row, accept, row, timed
from jali.bench.operations import Case as CkksCase
from jali.bench.registry import Options, benchmark
from jali.errors import Error, InternalError, InvalidArgument

__all__ = ["Case", "Sides", "ckks_set", "every_operation", "expected", "load"]

_PARTS: dict[str, Callable[[str], Any]] = {
    "modulus": int,
    "integers": int,
    "depth": int,
    "multiplication": str,
    "log_n": int,
    "word": str,
    "dnum": int,
    "security": int,
    "name": str,
}
#: Both ways to multiply at one size, and numbers of 32 bits.
OWN = ("f65537_d6", "modulus=65537,depth=6,multiplication=bfv", "int32_d4")
#: Sizes for products beside CKKS's: N = 2^14 on CPUs, and 24 limbs of 32-bit words at N = 2^15.
BESIDE = {
    "cpu": "modulus=65537,depth=6,log_n=14",
    "cuda": "modulus=65537,depth=11,log_n=15,word=w32,dnum=6",
}
ROUNDS = 5  # in which the products of schemes take turns

Numbers = npt.NDArray[Any]


def load(name: str) -> discrete.Params:
    """The parameters of a preset of exact integers, or of arguments such as
    "modulus=65537,depth=6,log_n=14".

    Raises InvalidArgument for other names and arguments.
    """
    if "=" not in name:
        return discrete.Params.preset(name)
    arguments: dict[str, Any] = {}
    for item in name.split(","):
        key, _, value = item.partition("=")
        try:
            arguments[key] = _PARTS[key](value)
        except (KeyError, ValueError):
            raise InvalidArgument(
                f"'{item}' is no part of a set of exact integers: use {', '.join(_PARTS)}"
            ) from None
    if "depth" not in arguments:
        raise InvalidArgument(f"the set '{name}' has no depth: add ,depth=6 or another number")
    return discrete.Params.create(**arguments)


class Case:
    """One parameter set at one level, with keys and two vectors of residues for every entry of a
    batch."""

    def __init__(self, name: str, params: discrete.Params, options: Options, batch: int) -> None:
        self.name, self.params, self.options, self.batch = name, params, options, batch
        self.threads = options.threads or 1
        self.level = options.levels[0] if options.levels else params.depth
        if not min(1, params.depth) <= self.level <= params.depth:
            raise InvalidArgument(f"--level must be 1 to {params.depth} for the set {name}")
        self.clock = options.clock_of(self.threads)
        self.client = discrete.Client(params, threads=self.threads)
        random = np.random.default_rng()
        self.a, self.b = random.integers(
            params.low, params.high, (2, batch, params.slots), endpoint=True
        )

    @classmethod
    def all_of(cls, options: Options, own: Sequence[str]) -> Iterator[Case]:
        """A case for every set and batch that was asked for."""
        for name in options.sets or own:
            params = load(name)
            if options.words and params.word not in options.words:
                continue
            for batch in options.batches or (1,):
                for level in options.levels or (params.depth,):
                    yield cls(name, params, replace(options, levels=(level,)), batch)

    @property
    def has_products(self) -> bool:
        """Whether arrays can be multiplied."""
        return self.params.packing == "slots" and self.params.depth > 0

    @property
    def word_bytes(self) -> int:
        """The bytes of a residue."""
        return 4 if self.params.word == "w32" else 8

    @property
    def limbs(self) -> int:
        """Primes of a ciphertext of the level."""
        p = self.params
        return p.ciphertext_bytes(level=self.level) // (2 * p.slots * self.word_bytes)

    def about(self, **more: Any) -> dict[str, Any]:
        """The parameters that a result states."""
        p = self.params
        return {
            "set": self.name,
            "level": self.level,
            "multiplication": p.multiplication,
            "modulus": p.modulus,
            "log_n": p.log_n,
            "log_q": round(p.log_q_at(self.level), 1),
            "log_p": round(p.log_p, 1),
            "limbs": self.limbs,
            "special": p.p_count,
            "dnum": p.dnum,
            "word": p.word,
            "threads": self.threads,
            "clock": self.clock,
            **more,
        }

    def evaluator(
        self, keys: discrete.EvaluationKeys | None, *, trace: bool = False
    ) -> discrete.Evaluator:
        """An evaluator on the device."""
        device = self.options.device
        return discrete.Evaluator(self.params, keys, device, threads=self.threads, trace=trace)

    def times(
        self, call: Callable[[], object], seconds: float, wait: Callable[[], None]
    ) -> list[float]:
        """The times of about so many seconds of calls. wait: until a GPU has done them."""
        return timed(
            call,
            seconds=seconds,
            clock=self.clock,
            most=self.options.most,
            wait=wait if self.options.on_gpu() else None,
        )

    def given(self, values: Numbers, encryptor: Any = None) -> discrete.Ciphertext:
        """Fresh encryptions of residues. encryptor: by default the client's secret key."""
        made: discrete.Ciphertext = (encryptor or self.client).encrypt(
            values, wrap=True, level=self.level, max_bytes=NO_LIMIT
        )
        return made


def expected(value: Numbers, params: discrete.Params) -> Numbers:
    """Integers of Python as the residues that decryption gives."""
    residues = (value.astype(object) - params.low) % params.modulus + params.low
    return residues.astype(np.int64)


def _accept(what: str, got: Numbers, want: Numbers) -> None:
    """Raises InternalError unless all numbers are equal: a wrong result's time means nothing."""
    wrong = int(np.count_nonzero(got != want))
    if wrong:
        raise InternalError(f"{what}: {wrong} of {want.size} numbers are wrong")


#: An operation of the engine on the ciphertexts of two arrays.
Body = Callable[[Any, discrete.Ciphertext, discrete.Ciphertext], discrete.Ciphertext]


class Sides:
    """An evaluator and one that records, with both vectors of a case encrypted on the device."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.keys = case.client.evaluation_keys([1])
        self.server = case.evaluator(self.keys)
        self.x, self.y = (self.server.bind(case.given(v)) for v in (case.a, case.b))

    def call(self, body: Body, last: list[discrete.Ciphertext]) -> Callable[[], None]:
        """A function of no arguments that runs the operation and keeps its last result."""
        core, a, b = self.server._engine, self.x._ct, self.y._ct

        def run() -> None:
            last[:] = [body(core, a, b)]

        return run

    def check(self, what: str, result: discrete.Ciphertext, want: Numbers) -> None:
        """Decrypts a result and compares every number."""
        got = self.case.client.decrypt(self.x._new(result))
        _accept(f"{what} at {self.case.name}", got, expected(want, self.case.params))

    def floor(self, name: str, body: Body) -> Floor:
        """The least time of an operation, from a trace."""
        case = self.case
        recorder = case.evaluator(self.keys, trace=True)
        x, y = (recorder.bind(case.given(v)) for v in (case.a, case.b))

        def run() -> discrete.Ciphertext:
            return body(recorder._engine, x._ct, y._ct)

        run()  # fills tables and pools
        recorder.trace().clear()
        written = run().nbytes  # a lower bound, because some operations only copy
        work = floors.work_of(recorder.trace())
        work = replace(work, bytes=max(work.bytes, written))
        if case.options.profile:
            profile.operations(f"{name} at {case.name}", recorder, run)
        return floors.of(work, case.params.word, recorder.engine, case.threads)

    def measure(self, name: str, body: Body, want: Numbers) -> Row:
        """Times an operation, compares the last result, and derives its floor."""
        case, last = self.case, list[discrete.Ciphertext]()
        floor = self.floor(name, body)
        call = self.call(body, last)
        times, power = case.options.measured(
            self.server.engine,
            lambda seconds: case.times(call, seconds, self.server.synchronize),
        )
        self.check(name, last[0], want)
        engine, about = self.server.engine, case.about()
        return row(name, engine, about, times, batch=case.batch, floor=floor, power=power)


def every_operation(case: Case) -> dict[str, tuple[Body, Numbers]]:
    """Every operation by name, and its right result."""
    by, clear = case.params.multiplication, case.b
    a, b = case.a.astype(object), case.b.astype(object)
    rows = case.a.reshape(case.batch, 2, -1)
    turned = np.roll(rows, -1, axis=-1).reshape(case.a.shape)
    swapped = rows[:, ::-1].reshape(case.a.shape)
    return {
        "add": (lambda core, x, y: core.add(x, y), a + b),
        "add_array": (lambda core, x, _: core.add_array(x, clear), a + b),
        "multiply_number": (lambda core, x, _: core.multiply_number(x, 3), 3 * a),
        "multiply_array": (lambda core, x, _: core.multiply_array(x, clear), a * b),
        f"multiply_{by}": (lambda core, x, y: core.multiply(x, y), a * b),
        f"square_{by}": (lambda core, x, _: core.multiply(x, x), a * a),
        "rotate": (lambda core, x, _: core.rotate_rows(x, 1), turned),
        "swap_rows": (lambda core, x, _: core.swap_rows(x), swapped),
    }


@benchmark(
    "discrete",
    "exact integers: sum, products with numbers and arrays in the clear, product, square, rotation, swap of rows",
    energy=True,
)
def operations(options: Options) -> Iterator[Row]:
    """Every operation on ciphertexts of residues. A product of BGV includes the division to the next
    level, and one with an array in the clear includes its encoding."""
    for case in Case.all_of(options, OWN):
        if not case.has_products:
            raise InvalidArgument(f"the set {case.name} has no products: use one with a depth")
        s = Sides(case)
        for name, (body, want) in every_operation(case).items():
            yield s.measure(f"discrete_{name}", body, want)


def _client_work(case: Case) -> dict[str, floors.Work]:
    """The least work of a client's calls: a transform of each limb of each polynomial that is drawn
    or read, the products with the key, the uniform half, and every byte of the ciphertext once."""
    n, limbs = case.params.slots, case.limbs * case.batch
    transform, size = n // 2 * case.params.log_n, limbs * n * case.word_bytes
    return {
        "encrypt": floors.Work(mults=limbs * (transform + n), bytes=2 * size, stream_bytes=size),
        "encrypt_public": floors.Work(mults=limbs * (3 * transform + 2 * n), bytes=2 * size),
        "decrypt": floors.Work(mults=limbs * (transform + 2 * n), bytes=2 * size),
    }


@benchmark("discrete_client", "exact integers: keygen, encryption by either key, decryption")
def client(options: Options) -> Iterator[Row]:
    """The data owner's side, on the CPU. Encryption includes encoding, and decryption the comparison
    of the noise and of the numbers with what the ciphertext says of them."""
    for case in Case.all_of(options, ("f65537_d6", "int32_d4", "sums_2_32")):
        owner, word = case.client, case.params.word
        others = discrete.Encryptor(owner.public_key(), threads=case.threads)
        made = {"encrypt": case.given(case.a), "encrypt_public": case.given(case.a, others)}
        for what, fresh in made.items():
            _accept(f"{what} at {case.name}", owner.decrypt(fresh), case.a)
        bodies: dict[str, Callable[[], object]] = {
            "encrypt": functools.partial(case.given, case.a),
            "encrypt_public": functools.partial(case.given, case.a, others),
            "decrypt": functools.partial(owner.decrypt, made["encrypt"]),
        }
        if case.has_products:
            s = Sides(case)
            product = s.server._engine.multiply(s.x._ct, s.y._ct)
            s.check("a product with the keys", product, case.a.astype(object) * case.b)
            bodies["keygen"] = functools.partial(owner.evaluation_keys, [1])
        work = _client_work(case)
        for step, body in bodies.items():
            times = timed(body, seconds=options.seconds, clock=case.clock)
            floor = (
                floors.of(work[step], word, owner.engine, case.threads) if step in work else None
            )
            yield row(
                f"discrete_{step}",
                owner.engine,
                case.about(),
                times,
                batch=1 if step == "keygen" else case.batch,
                floor=floor,
            )


def ckks_set(params: discrete.Params) -> str:
    """Parameters of CKKS, in the form of jali.bench.sets, of the same ring and word, with as many
    limbs and digits, and with as many special primes or about as many.

    Its levels are planned otherwise: of 32-bit words they take the largest primes, not pairs of
    equal ones. Raises InvalidArgument if there are none.
    """
    start = round(params.log_q / (params.depth + 1))
    best: tuple[int, str] | None = None
    for scale in range(start, max(start - 16, 20), -1):
        for room in (10, 5):
            text = (
                f"log_n={params.log_n},depth={{}},scale_bits={scale},integer_bits={room},"
                f"dnum={params.dnum},word={params.word},security={params.security}"
            )
            found = _with_limbs(text, params.q_count)
            if found is None:
                continue
            depth, special = found
            off = abs(special - params.p_count)
            if best is None or off < best[0]:
                best = off, text.format(depth)
            if off == 0:
                return best[1]
    if best is None:
        raise InvalidArgument(
            f"CKKS has no parameters with {params.q_count} limbs and {params.dnum} digits at log_n "
            f"{params.log_n}: use another depth or another dnum"
        )
    return best[1]


def _with_limbs(text: str, limbs: int) -> tuple[int, int] | None:
    """The depth at which a set of CKKS has so many limbs, and its special primes. text: the set, with
    {} for its depth."""
    low, high = 0, limbs + 1  # a level takes one limb at least
    while high - low > 1:
        depth = (low + high) // 2
        try:
            p = sets.load(text.format(depth))
        except Error:  # too deep for the table
            high = depth
            continue
        count = len(p.level(p.depth).primes)
        if count == limbs:
            return depth, p.p_count
        low, high = (depth, high) if count < limbs else (low, depth)
    return None


@benchmark(
    "discrete_beside_ckks",
    "exact integers: products of BGV and BFV, in turn with HMULT and rescaling of CKKS of equal sizes",
)
def beside(options: Options) -> Iterator[Row]:
    """Every row says how many times CKKS's time its least time is. The schemes take turns, so that
    other work on the machine disturbs all of them."""
    for name in options.sets or (BESIDE["cuda" if options.on_gpu() else "cpu"],):
        names = [f"{name},multiplication={by}" for by in ("bgv", "bfv")] if "=" in name else [name]
        for batch in options.batches or (1,):
            asked = replace(options, sets=tuple(names), batches=(batch,), levels=())
            sides = [Sides(case) for case in Case.all_of(asked, ())]
            if sides:
                yield from _in_turn(sides, asked)


def _in_turn(sides: Sequence[Sides], options: Options) -> Iterator[Row]:
    case = sides[0].case
    set_name = ckks_set(case.params)
    theirs = next(CkksCase.all_of(set_name, options, case.threads))
    server = ckks.Evaluator(theirs.params, theirs.keys, options.device, threads=case.threads)
    operands = theirs.operands(server)

    def hmult() -> ckks.Ciphertext:
        return operands.e.multiply_relinearise_rescale(operands.a, operands.b)

    def product(core: Any, x: discrete.Ciphertext, y: discrete.Ciphertext) -> discrete.Ciphertext:
        made: discrete.Ciphertext = core.multiply(x, y)
        return made

    last: list[list[discrete.Ciphertext]] = [[] for _ in sides]
    ours = [s.call(product, results) for s, results in zip(sides, last, strict=True)]
    base: list[float] = []
    spent: list[list[float]] = [[] for _ in sides]
    for _ in range(ROUNDS):
        seconds = options.seconds / ROUNDS
        base += case.times(hmult, seconds, server.synchronize)
        for s, call, times in zip(sides, ours, spent, strict=True):
            times += case.times(call, seconds, s.server.synchronize)

    got, want = hmult(), theirs.va * theirs.vb
    shown = theirs.client.decrypt(got, complex=True, length=theirs.params.slots)
    bits = accept(f"hmult at {set_name}", shown.reshape(want.shape), want, got.precision_bits)
    about = {**sets.describe(set_name, theirs.params, case.threads), "clock": case.clock}
    yield row(
        "ckks_hmult_rescale", server.engine, about, base, batch=case.batch, precision_bits=bits
    )
    for s, results, times in zip(sides, last, spent, strict=True):
        name = f"discrete_multiply_{s.case.params.multiplication}"
        s.check(name, results[0], s.case.a.astype(object) * s.case.b)
        more = s.case.about(times_ckks=round(min(times) / min(base), 3))
        floor = s.floor(name, product)
        yield row(name, s.server.engine, more, times, batch=case.batch, floor=floor)
