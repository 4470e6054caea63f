"""Numbers that move round, and products with whole numbers: neither takes a level."""

from __future__ import annotations

import numpy as np
import pytest
from slot_interpreter import WEIGHTS
from test_nn_workloads import cell_of

import jali
from jali import ckks
from jali.compiler.frontends import workloads
from jali.compiler.ir.execute import execute
from jali.compiler.ir.layouts import Layout, fitted, packed, skewed, unpacked
from jali.compiler.ir.loop_graph import MOST_WHOLE, is_whole, multiple_of
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.layout.axes import rolled
from jali.compiler.layout.choose_layouts import lay_out
from jali.compiler.layout.execute_lowered import every_slot
from jali.compiler.layout.lower import lower
from jali.compiler.layout.terms import Term
from jali.compiler.passes.approximate import approximated
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.passes.unroll import two_iterations
from jali.compiler.runtime.ciphertext_ops import times
from jali.compiler.runtime.interpreter import Interpreter
from jali.nn import loop, trace


def moved(size: int, step: int, factor: float = 1.0) -> SparseMap:
    return SparseMap.gather((np.arange(size) + step) % size, size).scaled(factor)


@pytest.mark.parametrize("shift", [0, 1, -3, 8, 29])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_traced_rolls_are_those_of_numpy(
    shift: int, axis: int | None, rng: np.random.Generator
) -> None:
    x = rng.normal(size=(5, 4, 6))
    graph = trace(lambda v: np.roll(v, shift, axis), x[0])
    want = np.stack([np.roll(v, shift, axis) for v in x])
    assert np.array_equal(execute(graph, x)[0], want)


@pytest.mark.parametrize("shift", [1.5, True, (1, 2)])
def test_traced_rolls_move_by_whole_numbers(shift: object) -> None:
    with pytest.raises(jali.InvalidArgument, match="shift must be a whole number"):
        trace(lambda v: np.roll(v, shift), np.zeros(4))  # type: ignore[call-overload]


def test_a_roll_of_an_array_that_fills_its_period_is_a_rotation() -> None:
    layout = fitted((8,), 32)
    for step in range(1, 8):
        term = Term.of(moved(8, step), layout, layout, True, WEIGHTS)
        assert (term.copy_rotations, term.is_free, term.count) == ((step,), True, 0)
    tripled = Term.of(moved(8, 3, 3.0), layout, layout, True, WEIGHTS)
    assert tripled.is_free and tripled.factor == 3
    assert not Term.of(moved(8, 3, 2.5), layout, layout, True, WEIGHTS).is_free
    assert rolled(moved(8, 3), layout, layout) == 3


def test_other_moves_are_no_rotations() -> None:
    """Beside an array that does not fill its period lie zeros, which a rotation would move between
    its numbers."""
    layout = fitted((8,), 32)
    wide, short = Layout((8,), 32, 16), fitted((6,), 32)
    assert not rolled(moved(8, 3), wide, wide)
    assert not rolled(moved(8, 3), layout, wide)
    assert not rolled(moved(6, 1), short, short)
    part = SparseMap.gather(np.r_[np.arange(3, 8), [-1] * 3], 8)
    assert not rolled(part, layout, layout)
    swapped = SparseMap.gather(np.r_[1, 0, 2:8], 8)
    assert not rolled(swapped, layout, layout)
    uneven = moved(8, 3).scaled(np.r_[2.0, np.ones(7)])
    assert not rolled(uneven, layout, layout)
    several = fitted((64,), 32)
    assert not rolled(moved(64, 3), several, several)
    rows = skewed((32, 8), 64)
    assert rows is not None and not rolled(moved(256, 3), rows, rows)


def test_multiples() -> None:
    assert multiple_of(moved(8, 3, 2.5)) == 2.5 and multiple_of(SparseMap.identity(4)) == 1
    assert multiple_of(SparseMap.gather(np.array([0, 1, -1]), 3)) is None
    assert multiple_of(SparseMap.gather(np.array([1, 0, 2]), 3)) is None
    whole = [is_whole(x) for x in (1, 2.0, MOST_WHOLE)]
    others = [is_whole(x) for x in (0, -1, 0.5, 1.5, 2 + 2**-40, MOST_WHOLE + 1)]
    assert all(whole) and not any(others)


def test_whole_factors_take_no_level(rng: np.random.Generator) -> None:
    params = ckks.Params.create(2, 30, log_n=12, security=0, name="insecure_test")
    client = ckks.Client(params, threads=1)
    server = ckks.Evaluator(params, client.evaluation_keys(), threads=1, device="cpu")
    values = rng.uniform(-0.01, 0.01, params.slots)
    x = server.bind(client.encrypt(values))
    for factor, level in ((1.0, 2), (3.0, 2), (64.0, 2), (2.5, 1)):
        y = times(server, x, factor)
        assert client.decrypt(y) == pytest.approx(factor * values, abs=2.0**-10)
        assert (y * y).level == level - 1


@pytest.mark.long
def test_rolls_and_whole_factors_encrypted(rng: np.random.Generator) -> None:
    """Gates in one array, with rolls, whole factors, and terms of one sum that lie at different
    levels."""
    # Some weights and examples, about one draw in a hundred, need no whole factor that takes no
    # level.
    fixed = np.random.default_rng(0)
    weights = cell_of(8, 4, 8, fixed)
    functions = {"gate": (0.5, 0.2, 0.0, -0.006), "activation": (0.0, 0.8, 0.0, -0.096)}
    f = lambda x: workloads.lstm(x, *weights, **functions)  # noqa: E731
    x = fixed.uniform(-1, 1, (60, 4, 8))
    program = jali.compile(f, x[0], calibration=x, precision_bits=8, batch=4)
    terms = [t for n in program.stages["lower"] for t in n.attrs.get("terms", ())]
    assert any(t.copy_rotations for t in terms)
    assert any(t.factor is not None and t.factor > 1 and t.is_free for t in terms)
    mixed = [
        n
        for n in program.stages["lower"]
        if len({t.is_free for t in n.attrs.get("terms", ())}) == 2
    ]
    assert mixed
    client = program.client(threads=1)
    server = program.server(client.evaluation_keys(), threads=1, device="cpu")
    given = rng.permutation(x)[:4]
    off = client.decrypt(server(client.encrypt(given))) - np.stack([f(v) for v in given])
    assert np.abs(off).max() <= 2.0**-8 * np.abs(np.stack([f(v) for v in x])).max()
    program.verify()


def test_one_row_of_sums_behind_overlays_serves_several_matrices(rng: np.random.Generator) -> None:
    a, b = rng.normal(size=(2, 16, 16)) / 8
    x, y = rng.uniform(-1, 1, (2, 40, 16))
    f = lambda u, v: a @ u + b @ v  # noqa: E731
    pair = jali.compile(lambda u: (a @ u, b @ u), x[0], calibration=x, precision_bits=8)
    two = jali.compile(f, (x[0], y[0]), calibration=(x, y), precision_bits=8)
    (node,) = (n for n in two.stages["lower"] if n.op == "transform")
    turns = {t.turns for t in node.attrs["terms"]}
    assert len(node.attrs["terms"]) == 2 and len({len(t) for t in turns}) == 1
    assert turns == {t.turns for n in pair.stages["lower"] for t in n.attrs.get("terms", ())}
    behind = len(next(iter(turns)))
    interpreter: Interpreter = two._interpreter()
    assert (
        sum(interpreter.rotations.values()) == sum(pair._interpreter().rotations.values()) - behind
    )
    client = two.client(threads=1)
    server = two.server(client.evaluation_keys(), threads=1, device="cpu")
    got = client.decrypt(server(client.encrypt(x[:1], y[:1])))
    want = np.stack([f(*pair) for pair in zip(x, y, strict=True)])
    assert np.abs(got - want[:1]).max() <= 2.0**-8 * np.abs(want).max()
    inputs = [n.attrs for n in two.stages["lower"].inputs]
    given = [
        packed(n.attrs["layout"], (v - i["centre"]) / i["radius"])
        for n, v, i in zip(two.stages["lower"].inputs, (x, y), inputs, strict=True)
    ]
    (name,) = two.stages["lower"].outputs
    out = two.stages["lower"][name].attrs
    clear = unpacked(node.attrs["layout"], every_slot(two.stages["lower"], given)[name])
    assert np.allclose(clear * out["radius"] + out["centre"], want, atol=1e-9)


def test_copies_of_an_iteration_stand_for_all(rng: np.random.Generator) -> None:
    """The search of layouts weighs a matrix of a loop with the number of its iterations, beside a
    slice of the input for each of them."""
    w = rng.normal(size=(8, 8)) / 8
    x = rng.uniform(-1, 1, (40, 30, 8))

    def f(v: np.ndarray) -> np.ndarray:
        state: np.ndarray = loop(lambda h, u: (w @ (h + u)) * 0.5, v[0], v[1:])
        return state

    graph = approximated(calibrate(fold(trace(f, x[0])), [x]), 1e-3)
    short = two_iterations(graph)
    last = [n for n in short if n.attrs.get("step", ("", -1))[1] == 1]
    assert last and {n.attrs["times"] for n in last} == {28}
    assert {n.origin.times for n in short if n.attrs.get("step", ("", -1))[1] == 0} == {1}
    names = [n.name for n in short]
    first = min(k for k, n in enumerate(short) if n.attrs.get("step", ("", -1))[1] == 1)
    assert names.index(max(names, key=names.index)) > first  # elements of others are at the end
    assert lower(lay_out(short, 512, WEIGHTS), WEIGHTS).stage == "lower"
