"""The stages of the compiler: each can be read, and each has a verifier that finds what is
broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_nn_bootstraps import cost_of, oracle
from test_nn_graph import residual_network
from test_nn_restored import network as bootstrapped
from test_nn_restored import program_of, quadratic

import jali
from jali import nn
from jali.compiler.cost.elimination import NEVER
from jali.compiler.ir.graph import Graph, Node
from jali.compiler.ir.linear_ops import Dense
from jali.compiler.planning.bootstrap_placement import problem_of
from jali.compiler.planning.bootstrap_search import placed
from jali.compiler.program.program import STAGES
from jali.nn import scalar


def network(rng: np.random.Generator) -> Any:
    """Two inputs, a weight that is used twice, and a branch that joins again."""
    shared, last = rng.normal(size=(4, 4)) / 3, rng.normal(size=(2, 4)) / 2

    def f(x: Any, y: Any) -> Any:
        a, b = shared @ x, shared @ y
        return last @ (scalar.sigmoid(a) * b + a), (a - b).mean()

    return f


@pytest.fixture(scope="module")
def program() -> nn.Program:
    rng = np.random.default_rng(7)
    x, y = rng.uniform(-1, 1, (2, 60, 4))
    options = {"calibration": (x, y), "batch": 4, "precision_bits": 8}
    return jali.compile(network(rng), (x[0], y[0]), **options)  # type: ignore[arg-type]


def test_there_are_eleven_stages(program: nn.Program) -> None:
    assert STAGES == (
        "trace",
        "simplify",
        "fold",
        "calibrate",
        "approximate",
        "layout",
        "lower",
        "levels",
        "parameters",
        "report",
        "program",
    )
    with pytest.raises(
        jali.InvalidArgument, match=r"the stages are trace, .*, program, not 'plan'"
    ):
        program.explain("plan")


READABLE: dict[str, tuple[str, ...]] = {
    "trace": (
        "x: 4 = input(",
        "dense(x, weight=array(4, 4)",
        "dense(y, weight=array(4, 4)",
        "return",
    ),
    "simplify": ("dense(x, weight=array(4, 4)", "sigmoid", "return"),
    "fold": ("affine(x,", "affine(y,", "sigmoid: 4 = function(", "multiply("),
    "calibrate": ("low=", "high=", "proven="),
    "approximate": ("approximated(", "by=sigmoid of degree", "radius="),
    "layout": ("layout=1 x ", "slots"),
    "lower": ("transform(", "diagonals in"),
    "levels": ("level=0", "level="),
    "parameters": ("N = 2^", "bits of security", "log2 QP", "keys:", "rotations:", "products from"),
    "report": ("operation", "sigmoid", "diagonals", "in all"),
    "program": ("input x: 4 from", "input y: 4 from", "output ", "4 examples in a ciphertext"),
}


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_can_be_read(stage: str, program: nn.Program) -> None:
    text = program.explain(stage)
    for words in READABLE[stage]:
        assert words in text, text
    assert text.splitlines()[0].endswith(f"after '{stage}'")
    assert "<" not in text.replace("<=", "")  # no object without a text of its own
    names = {node.name for node in program.stages["levels"]}
    if stage in ("layout", "lower", "levels", "report"):
        assert all(any(name in line for line in text.splitlines()) for name in names)


def test_the_report_adds_up(program: nn.Program) -> None:
    lines = program.explain("report").splitlines()
    place = lines[1].index(program.costs.unit)
    costs = [int(line[place:].split()[0].replace(",", "")) for line in lines[2:-1]]
    assert sum(costs) == int(lines[-1].split()[2].replace(",", "")) > 0
    keys = program.client(threads=1).evaluation_keys()
    assert f"  {keys.count} keys:" in program.explain("parameters")


def test_programs_are_verified(program: nn.Program) -> None:
    program.verify()
    nn.Program.from_bytes(program.to_bytes()).verify()


def test_programs_of_many_kinds_are_verified(rng: np.random.Generator) -> None:
    """Images with branches, gathered inputs, products of encrypted matrices, ReLU, and
    bootstraps."""
    image = rng.uniform(-1, 1, (30, 2, 8, 8))
    jali.compile(residual_network(rng), image[:1], calibration=image, batch=2).verify()
    x, q = rng.uniform(-1, 1, (40, 2, 3)), rng.normal(size=(3, 3)) / 3
    jali.compile(lambda v: (v @ q) @ v.T, x[0], calibration=x).verify()
    w, y = rng.normal(size=(4, 4)) / 3, rng.uniform(-1, 1, (40, 4))
    jali.compile(lambda v: scalar.relu(w @ v), y[0], calibration=y, precision_bits=4).verify()
    deep = program_of(bootstrapped(rng, 6, quadratic), rng.uniform(-1, 1, (40, 8)), 6, 4)
    assert any(node.op == "bootstrap" for node in deep.stages["levels"])
    deep.verify()
    assert "bootstraps from level" in deep.explain("parameters")


def test_loops_are_verified(rng: np.random.Generator) -> None:
    w, x = rng.normal(size=(3, 3)) / 3, rng.uniform(-1, 1, (40, 3))
    made = jali.compile(
        lambda v: nn.loop(lambda h: np.square(w @ h), v, count=3), x[0], calibration=x
    )
    made.verify()
    broken = {**made.stages, "approximate": _changed(made.stages["approximate"], "loop", _emptied)}
    with pytest.raises(jali.InternalError, match=r"after approximate, matmul .*has no scale"):
        replace(made, stages=broken).verify()


def _emptied(node: Node) -> Node:
    body = node.attrs["body"]
    emptied = _changed(body, body.nodes[1].name, lambda n: n.with_scaling(radius=0))
    return node.with_operation(body=emptied)


def _changed(graph: Graph, name: str, change: Callable[[Node], Node]) -> Graph:
    return replace(graph, nodes=tuple(change(n) if n.name == name else n for n in graph))


def _first(graph: Graph, op: str) -> str:
    return next(node.name for node in graph if node.op == op)


BROKEN: list[tuple[str, str, Callable[[Node], Node], str]] = [
    ("trace", "dense", lambda n: replace(n, shape=(9,)), "shape is"),
    (
        "fold",
        "multiply",
        lambda n: replace(n, operation=Dense(np.eye(3), None)),
        "is dense, which this stage",
    ),
    ("fold", "affine", lambda n: n.with_operation(bias=np.zeros(9)), "bias of another size"),
    ("calibrate", "function", lambda n: n.with_range(low=np.nan), "no finite range"),
    ("calibrate", "affine", lambda n: n.with_range(low=n.range.high + 1), "empty range"),
    ("approximate", "affine", lambda n: n.with_scaling(radius=0.0), "no scale"),
    ("approximate", "affine", lambda n: n.with_scaling(high=3.0), r"leaves \[-1, 1\]"),
    ("layout", "affine", lambda n: n.with_facts(layout=None), "no layout"),
    ("lower", "transform", lambda n: n.with_operation(terms=()), "a matrix for each"),
    ("levels", "multiply", lambda n: n.with_facts(level=n.level + 9), "has too few"),
    ("levels", "transform", lambda n: n.with_facts(level=-1), "no level"),
]


@pytest.mark.parametrize(("stage", "op", "change", "says"), BROKEN)
def test_verifiers_find_what_is_broken(
    stage: str, op: str, change: Callable[[Node], Node], says: str, program: nn.Program
) -> None:
    graph = program.stages[stage]
    broken = _changed(graph, _first(graph, op), change)
    with pytest.raises(jali.InternalError, match=f"after {stage}, .*{says}"):
        replace(program, stages={**program.stages, stage: broken}).verify()


def test_verifiers_compare_the_stages_with_parameters_and_client(program: nn.Program) -> None:
    shallow = jali.compile(lambda x: 2 * x, np.ones(4), calibration=np.ones((20, 4)))
    with pytest.raises(jali.InternalError, match="the parameters have no level"):
        replace(program, manifest=shallow.manifest).verify()
    port = replace(program.manifest.inputs[0], level=0)
    manifest = replace(program.manifest, inputs=(port, program.manifest.inputs[1]))
    with pytest.raises(jali.InternalError, match="the client has x otherwise"):
        replace(program, manifest=manifest).verify()
    with pytest.raises(jali.InternalError, match="says that it is one after fold"):
        replace(program, stages={**program.stages, "trace": program.stages["fold"]}).verify()


def test_the_levels_are_those_of_the_exact_solver(program: nn.Program) -> None:
    """A graph with a branch, shared weights and two inputs, with the costs of its own matrices and
    polynomials."""
    graph, params = program.stages["lower"], program.params
    problem = problem_of(graph, params, program.costs)
    small = replace(
        problem,
        stages=tuple(
            replace(s, costs=tuple(c if c >= NEVER else -(-c // 4096) for c in s.costs))
            for s in problem.stages
        ),
    )
    plan = placed(small)
    assert plan is not None and plan.cost == plan.bound == oracle(small)
    lowest = {node.name: node.attrs["level"] for node in program.stages["levels"]}
    assert cost_of(small, replace(plan, levels=lowest, restored={})) == plan.cost


def test_the_plan_is_drawn_and_priced(program: nn.Program) -> None:
    pytest.importorskip("matplotlib")
    summary = program.summary(threads=1)
    names = [layer.name for layer in summary.layers]
    assert {"sigmoid", "multiply"} <= set(names)
    assert program.plot() is not None


def test_the_title_of_a_small_plan_is_not_cut_off() -> None:
    pytest.importorskip("matplotlib")
    examples = np.linspace(-1, 1, 60).reshape(20, 3)
    program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    figure = program.plot()
    title = figure._suptitle.get_window_extent()
    assert figure.bbox.x0 <= title.x0 and title.x1 <= figure.bbox.x1
