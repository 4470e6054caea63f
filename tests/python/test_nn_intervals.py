"""Intervals of arrays: what interval arithmetic says, what functions rely on, and which clamps
never act."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from positive_programs import draw

import jali
from jali import nn
from jali.compiler.frontends.tracing import trace_function
from jali.compiler.ir.execute import every_value
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.passes.inactive_clamps import inactive_clamps
from jali.compiler.passes.intervals import intervals, relied
from jali.nn import scalar
from jali.program import container

Function = Callable[..., Any]

W = np.array([[0.5, -1.0, 0.3], [1.5, 0.2, -0.7]])

#: Functions of three numbers whose intervals have some form: signs, squares, turning points, roots
#: of polynomials.
MODELS: dict[str, Function] = {
    "matrix": lambda x: W @ x + 1,
    "product": lambda x: (W @ x)[:1] * x,
    "square": lambda x: (W @ x) ** 2,
    "turning points": lambda x: np.abs(x) + scalar.silu(2 * x) + scalar.gelu(2 * x),
    "mish": lambda x: (2 * x)._function("mish") if hasattr(x, "_function") else x,
    "gelu tanh": lambda x: (2 * x)._function("gelu_tanh") if hasattr(x, "_function") else x,
    "polynomial": lambda x: scalar.polynomial(x, [1.0, -2.0, 0.5, 3.0]),
    "even polynomial": lambda x: scalar.polynomial(x, [0.0, 0.0, 1.0]),
    "functions": lambda x: np.tanh(x) + scalar.sigmoid(x) * np.exp(x),
    "quotient": lambda x: 1 / (x * x + 1) + np.log(x + 3) / np.sqrt(x + 2),
    "negative": lambda x: 1 / (x - 3),
    "matrices": lambda x: x.reshape(3, 1) @ x.reshape(1, 3) @ x.reshape(3, 1),
}


@pytest.mark.parametrize("model", MODELS)
def test_all_numbers_lie_in_their_intervals(model: str, rng: np.random.Generator) -> None:
    """Of inputs anywhere in their ranges, whose ends are among them."""
    graph = fold(trace_function(MODELS[model], [np.zeros(3)]))
    low, high = np.array([-1.0, 0.2, -0.4]), np.array([0.5, 0.9, -0.1])
    known = calibrate(graph, [rng.uniform(low, high, (50, 3))], input_ranges=[(low, high)])
    x = np.concatenate(
        [rng.uniform(low, high, (500, 3)), np.where(rng.random((500, 3)) < 0.5, low, high)]
    )
    values, found = every_value(known, [x]), intervals(known)
    for node in known:
        least, most = found[node.name]
        seen = values[node.name].reshape(len(x), -1)
        room = 1e-9 * (1 + np.abs(seen).max())
        assert np.all(seen >= least - room) and np.all(seen <= most + room), node.name
        if node.op in ("input", "affine"):  # of independent numbers, which reach the ends
            assert np.all(np.isfinite(least) & np.isfinite(most))


@pytest.mark.parametrize("name", ["silu", "gelu", "gelu_tanh", "mish", "absolute"])
def test_turning_points_are_where_they_are_said_to_be(name: str) -> None:
    x = np.linspace(-3, 1, 400001)
    graph = fold(trace_function(lambda v: v._function(name), [np.zeros(1)]))
    known = calibrate(graph, [np.array([[-3.0], [1.0]])], margin=0.0)
    least, _ = intervals(known)[graph.outputs[0]]
    assert abs(least[0] - scalar.FUNCTIONS[name](x).min()) < 1e-9


@pytest.mark.parametrize("name", ["sin", "cos", "cosh", "atan", "sinh", "asinh", "softsign"])
def test_functions_lie_within_their_intervals(name: str) -> None:
    x = np.linspace(-4, 9, 1001)
    graph = fold(trace_function(lambda v: v._function(name), [np.zeros(1)]))
    known = calibrate(graph, [np.array([[-4.0], [9.0]])], margin=0.0)
    least, most = intervals(known)[graph.outputs[0]]
    values = scalar.FUNCTIONS[name](x)
    assert least[0] <= values.min() <= values.max() <= most[0]


def test_functions_rely_on_their_arguments(rng: np.random.Generator) -> None:
    """Carried back through shifts, squares and roots, to every number of the input that an argument
    is made of."""
    x = rng.uniform(0.5, 1, (50, 3))
    graph = fold(trace_function(lambda v: np.log(np.sqrt(v[1:] ** 2) + 1), [np.zeros(3)]))
    known = calibrate(graph, [x], margin=0.25)
    log = next(n for n in known if n.attrs.get("function") == "log")
    low, high = (known[log.inputs[0]].attrs[k] for k in ("low", "high"))
    least, most = relied(known)["v"]
    assert least[0] == -np.inf and most[0] == np.inf
    assert np.all(least[1:] >= low - 1 - 1e-9) and np.all(most[1:] <= high - 1 + 1e-9)


#: Clamps that never act on numbers from 0.5 to 1 and from -0.4 to 0.4, and what they are then.
INACTIVE: dict[str, tuple[Function, Function]] = {
    "maximum with 0": (lambda x, y: np.maximum(x, 0) * 2, lambda x, y: x * 2),
    "maximum with a number": (lambda x, y: np.maximum(y, -3.0) + x, lambda x, y: y + x),
    "minimum": (lambda x, y: np.minimum(x, 6), lambda x, y: x),
    "of two arrays": (lambda x, y: np.maximum(x + 1, y), lambda x, y: x + 1),
    "modulus": (lambda x, y: abs(x) - abs(y - 1), lambda x, y: x + y - 1),
    "relu of negative numbers": (lambda x, y: scalar.relu(y - 2) + x, lambda x, y: x),
    "composition": (lambda x, y: scalar.relu_15_15_27(x), lambda x, y: x),
    "hard tanh": (lambda x, y: np.minimum(np.maximum(y, -1), 1), lambda x, y: y),
    "norm": (
        lambda x, y: y / np.maximum(np.sqrt((y * y).sum() + 0.1), 1e-12),
        lambda x, y: y / np.sqrt((y * y).sum() + 0.1),
    ),
    "logarithm": (lambda x, y: np.log(np.maximum(x * x, 1e-9)), lambda x, y: np.log(x * x)),
    "root": (
        lambda x, y: np.sqrt(np.maximum((x * y).sum() + 2, 0)),
        lambda x, y: np.sqrt((x * y).sum() + 2),
    ),
}


def pair(rng: np.random.Generator, count: int = 64) -> tuple[np.ndarray, np.ndarray]:
    return rng.uniform(0.5, 1, (count, 4)), rng.uniform(-0.4, 0.4, (count, 4))


@pytest.mark.parametrize("name", INACTIVE)
def test_clamps_that_never_act_cost_nothing(name: str, rng: np.random.Generator) -> None:
    """Neither levels nor products, and the numbers are right, from bytes, too."""
    (clamped, plain), x = INACTIVE[name], pair(rng)
    program, other = (
        jali.compile(f, (x[0][0], x[1][0]), calibration=x, precision_bits=7)
        for f in (clamped, plain)
    )
    program.verify()
    assert not any(
        n.op == "function" and n.attrs["function"] in scalar.HOMOGENEOUS
        for n in program.stages["calibrate"]
    )
    levels, others = (max(n.attrs["level"] for n in p.stages["levels"]) for p in (program, other))
    assert levels <= others
    want = np.stack([clamped(*v) for v in zip(*x, strict=True)])
    again = nn.Program.from_bytes(program.to_bytes())
    assert again.to_bytes() == program.to_bytes()
    for one in (program, again):
        got = np.asarray(one.simulate(*x, rng=1)).reshape(want.shape)
        assert np.abs(got - want).max() <= 2.0**-7 * np.abs(want).max()
    assert np.allclose(np.asarray(program.clear(*x)).reshape(want.shape), want)


#: Clamps that act on some inputs that a client encrypts, although on no example.
ACTIVE: dict[str, Function] = {
    "near 0": lambda x, y: np.maximum(x - 0.45, 0),
    "near the end": lambda x, y: np.minimum(y, 0.5),
    "seen positive": lambda x, y: np.maximum((x + 2 * y).sum(), 0),
    "modulus": lambda x, y: abs(x - 0.4),
}


@pytest.mark.parametrize("name", ACTIVE)
def test_clamps_that_may_act_stay(name: str, rng: np.random.Generator) -> None:
    """The margin counts: at the ends of what the client encrypts, the result is that of the
    clamp."""
    f = ACTIVE[name]
    x, y = pair(rng)
    if name == "seen positive":  # by chance, as of most data: the range allows for others
        y *= 0.5
    program = jali.compile(f, (x[0], y[0]), calibration=(x, y), precision_bits=5)
    assert any(n.attrs.get("function") in scalar.HOMOGENEOUS for n in program.stages["calibrate"])
    if name == "seen positive":  # both ends are beyond what the sum was seen to be
        return
    ports = program.manifest.inputs
    ends = [np.stack([port.low, port.high]) for port in ports]
    got = program.simulate(*ends, rng=1)
    want = np.stack([f(*v) for v in zip(*ends, strict=True)])
    seen = np.stack([f(*v) for v in zip(x, y, strict=True)])
    assert np.abs(got - want).max() <= 2.0**-4 * max(np.abs(want).max(), np.abs(seen).max())


#: Clamps that act only where an input's margin crosses 0, although no number was seen there; and
#: how many numbers of x and of y stay on their side then.
ON_A_SIDE: dict[str, tuple[Function, Function, list[int]]] = {
    "relu": (lambda x, y: np.maximum(x, 0) + y, lambda x, y: x + y, [4, 0]),
    "modulus": (lambda x, y: abs(x) * y, lambda x, y: x * y, [4, 0]),
    "of a part": (lambda x, y: np.maximum(x[:2], 0) + x[2:], lambda x, y: x[:2] + x[2:], [2, 0]),
    "of a sum": (lambda x, y: np.maximum(x.sum() + 1, 0) + y, lambda x, y: x.sum() + 1 + y, [4, 0]),
    "sum of moduli": (lambda x, y: y / abs(x).sum(), lambda x, y: y / x.sum(), [4, 0]),
    "negative": (lambda x, y: np.maximum(-x, 0) + x + y, lambda x, y: x + y, [4, 0]),
}


@pytest.mark.filterwarnings("ignore:decryption refuses", "ignore:no result depends")
@pytest.mark.parametrize("low", [0.0, 0.1])
@pytest.mark.parametrize("name", ON_A_SIDE)
def test_a_margin_alone_keeps_no_clamp(name: str, low: float, rng: np.random.Generator) -> None:
    """Clients refuse the numbers for which it would have acted, and no others."""
    f, plain, counts = ON_A_SIDE[name]
    x, y = rng.uniform(low, 1, (64, 4)), rng.uniform(-0.4, 0.4, (64, 4))
    x[0] = low
    if name == "sum of moduli":
        x += 0.05
    program = jali.compile(f, (x[0], y[0]), calibration=(x, y), precision_bits=6)
    assert not any(
        n.attrs.get("function") in scalar.HOMOGENEOUS for n in program.stages["calibrate"]
    )
    ports = program.manifest.inputs
    assert [int(np.sum(port.low > -1e-9)) for port in ports] == counts
    ends = [np.stack([port.low, port.high]) for port in ports]
    if name != "sum of moduli":  # whose inverse has an interval of its own
        got = np.asarray(program.simulate(*ends, rng=1))
        want = np.stack([f(*v) for v in zip(*ends, strict=True)])
        assert np.abs(got - want).max() <= 2.0**-5 * np.abs(want).max()
    assert np.allclose(program.clear(x, y), [plain(*v) for v in zip(x, y, strict=True)])
    client = program.client(threads=1)
    client.encrypt(x, y)
    if name != "sum of moduli":
        client.encrypt(0 * x, y)
    with pytest.raises(jali.InvalidArgument, match="not among the numbers"):
        client.encrypt(x[0] - 0.2, y[0])


def test_a_clamp_stays_for_few_examples_and_for_declared_ranges(rng: np.random.Generator) -> None:
    """A few numbers may be on one side by chance, and who declares others will encrypt them."""
    x = rng.uniform(0.1, 1, (64, 4))

    def clamps(**how: Any) -> bool:
        made = jali.compile(lambda v: np.maximum(v, 0) + v, x[0], precision_bits=6, **how)
        return any(n.attrs.get("function") == "relu" for n in made.stages["calibrate"])

    assert clamps(calibration=x[:10]) and clamps(calibration=x, input_range=(-1, 2))
    assert not clamps(calibration=x) and not clamps(calibration=x, input_range=(0, 2))


def test_a_clamp_on_which_another_relies_stays(rng: np.random.Generator) -> None:
    """ReLU6 of a matrix's result: the bound at 6 goes, because the ReLU beside it is approximated
    on a small interval, and the ReLU stays."""
    # Each number reaches 0.4 alone: all of them together would give 3.4, and an interval beyond 6.
    x = np.concatenate([rng.uniform(-0.3, 0.3, (64, 3)), 0.4 * np.eye(3), -0.4 * np.eye(3)])
    graph = fold(
        trace_function(lambda v: np.minimum(np.maximum(3.5 * (W @ v), 0), 6) + v[:2], [np.zeros(3)])
    )
    known = calibrate(graph, [x])
    proven = intervals(known)
    first, second = (n for n in known if n.attrs.get("function") == "relu")
    assert proven[second.inputs[0]][0].min() < 0  # by the ranges of the inputs alone, it may act
    assert inactive_clamps(known) == {second.name: "same"} and first.name != second.name


def test_changes_that_are_none_are_refused(rng: np.random.Generator) -> None:
    x = pair(rng)
    program = jali.compile(
        lambda x, y: np.maximum(x, 0) + y, (x[0][0], x[1][0]), calibration=x, precision_bits=5
    )
    content, arrays = container.read("program", program.to_bytes())
    (name,) = content["changes"]
    for wrong in (
        {name: "inverse_sqrt"},
        {name: 2},
        {name: "sign"},
        {"x": "same"},
        {"z": "zero"},
        3,
    ):
        data = container.written("program", {**content, "changes": wrong}, arrays)
        with pytest.raises(jali.CorruptData, match="no program"):
            nn.Program.from_bytes(data)


#: Functions of positive vectors that were refused, because an argument was scaled around 0 or its
#: margin reached there.
POSITIVE: dict[str, Function] = {
    "quotient by a square": lambda x, y: x[:1] / (x[1:] * x[1:]),
    "x log x": lambda x, y: x * np.log(x),
    "root of a product": lambda x, y: np.sqrt(x * y),
    "inverse and square": lambda x, y: 1 / x + x * x,
    "cosine": lambda x, y: (x * y).sum() / (np.sqrt((x * x).sum()) * np.sqrt((y * y).sum())),
    "inverse of negative numbers": lambda x, y: y / -x,
    "root of a modulus": lambda x, y: np.sqrt(abs(x) + y),
    "inverse of tanh": lambda x, y: y / np.tanh(x),
    "logarithm of a logit": lambda x, y: np.log(x / (x + y)) * x,
    "an argument that is an output": lambda x, y: (x * y, 1 / (x * y)),
    "in a loop": lambda x, y: nn.loop(lambda s, t: np.sqrt(s * t), x, [y, x]),
}


ENCRYPTED = ("root of a product", "inverse of negative numbers", "an argument that is an output")


@pytest.mark.parametrize("name", POSITIVE)
def test_functions_of_positive_numbers(name: str, rng: np.random.Generator) -> None:
    """From bytes, some encrypted. Clients take no numbers for which a factor of an argument is
    0."""
    f = POSITIVE[name]
    x, y = rng.uniform(0.3, 1.5, (2, 64, 3))
    program = jali.compile(f, (x[0], y[0]), calibration=(x, y), precision_bits=6)
    program.verify()
    again = nn.Program.from_bytes(program.to_bytes())
    assert again.to_bytes() == program.to_bytes()
    client = again.client(threads=1)
    if name in ENCRYPTED:
        server = again.server(client.evaluation_keys(), device="cpu", threads=1)
        found = client.decrypt(server(client.encrypt(x[:2], y[:2])))
    else:
        found = again.simulate(x[:2], y[:2], rng=1)
    wanted = [f(*v) for v in zip(x, y, strict=True)]
    for k, got in enumerate(found if isinstance(found, tuple) else (found,)):
        want = np.stack([w[k] if isinstance(w, tuple) else w for w in wanted])
        # Errors of functions in loops add up from one iteration to the next.
        bits = 4 if name == "in a loop" else 6
        assert np.abs(got - want[:2]).max() <= 2.0**-bits * np.abs(want).max()
    if name in ("x log x", "root of a product", "inverse and square"):
        with pytest.raises(jali.InvalidArgument, match="outside"):
            client.encrypt(np.zeros(3), y[0])


def test_a_declared_range_that_holds_0_is_refused(rng: np.random.Generator) -> None:
    """For such a number, the function has no value, whatever the examples are."""
    x = rng.uniform(0.3, 1.5, (64, 3))
    with pytest.raises(jali.InvalidArgument, match="lies above 0"):
        jali.compile(lambda v: 1 / v, x[0], calibration=x, input_range=(-1, 2))
    program = jali.compile(lambda v: 1 / v, x[0], calibration=x, input_range=(0.25, 2))
    assert all(n.attrs["proven"] for n in program.stages["calibrate"])


def test_clients_refuse_what_leaves_the_interval_of_a_function(rng: np.random.Generator) -> None:
    """log(1 + x) had a smaller margin than x, and numbers between both gave wrong results without a
    word."""
    x = rng.uniform(0.1, 2, (64, 5))
    program = jali.compile(lambda v: np.log(1 + v[1:]), x[0], calibration=x, precision_bits=6)
    (port,) = program.manifest.inputs
    ends = rng.uniform(port.low, port.high, (300, 5))
    ends[0], ends[1] = port.low, port.high
    want = np.log(1 + ends[:, 1:])
    got = np.asarray(program.simulate(ends, rng=1))
    assert np.abs(got - want).max() <= 2.0**-5 * np.abs(want).max()
    assert np.all(port.low <= x.min(axis=0)) and np.all(port.high >= x.max(axis=0))


#: Seeds of programs that were wrong or refused at some time, and some others.
SEEDS = (1, 15, 16, 24, 37, 94)


def check_positive(seed: int) -> None:
    """The program of a seed is compiled, and right on its examples."""
    program = draw(np.random.default_rng(seed))
    x = program.examples
    made = jali.compile(program, x[0], calibration=x, precision_bits=6)
    made.verify()
    want = np.stack([program(v) for v in x])
    got = np.asarray(made.simulate(x, rng=1)).reshape(want.shape)
    assert np.abs(got - want).max() <= 2.0**-6 * np.abs(want).max(), str(program)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_on_positive_numbers(seed: int) -> None:
    check_positive(seed)


@pytest.mark.long
def test_random_programs_on_positive_numbers() -> None:
    """None is refused or wrong."""
    for seed in range(1000, 1200):
        try:
            check_positive(seed)
        except jali.Unsupported as error:
            # What takes more levels than there are: several long functions in a row.
            assert "levels" in str(error), (seed, str(draw(np.random.default_rng(seed))))
