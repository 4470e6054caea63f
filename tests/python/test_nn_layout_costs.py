"""The weights by which layouts are chosen come from the costs of the device and from nowhere else,
and a program pins them."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slot_interpreter import WEIGHTS

import jali
from jali.ckks import Params
from jali.compiler.cost import measured
from jali.compiler.cost.costs import Costs, counted
from jali.compiler.cost.layout_costs import LayoutCosts, layout_costs_of
from jali.compiler.frontends.tracing import trace_function
from jali.compiler.ir.graph import Graph
from jali.compiler.ir.layouts import fitted
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.layout.choose_layouts import _Search
from jali.compiler.layout.overlay import overlaid, price
from jali.compiler.layout.product_factors import spread
from jali.compiler.passes.approximate import approximated
from jali.compiler.passes.calibrate import calibrate
from jali.compiler.passes.fold import fold
from jali.compiler.pipeline import lowered
from jali.compiler.program.program import Program
from jali.program import container

#: Of stored matrices, in thousandths of a product with a resident diagonal.
STORED: dict[str, Any] = {"expanded": 2000, "streamed": 3000, "made": 20_000}


def costs(rotation: int = 1000, plain: int = 60, **others: Any) -> Costs:
    """The same at all of five levels."""
    rows = {"rotation": (rotation,) * 5, "plain": (plain,) * 5, "product": (1500,) * 5}
    rows["added"] = (300,) * 5
    return Costs("nanoseconds", **(rows | STORED | others))


def small() -> Params:
    return Params.create(4, 30.0, log_n=10, security=0, name="insecure_test")


def made(f: Any, x: np.ndarray) -> Graph:
    return approximated(calibrate(fold(trace_function(f, [x[0]])), [x]), 1e-3)


def matrix(rng: np.random.Generator) -> Graph:
    weight = rng.normal(size=(16, 64)) / 64
    return made(lambda v: weight @ v, rng.uniform(-1, 1, (20, 64)))


def diagonals(graph: Graph) -> int:
    return sum(term.count for node in graph for term in node.attrs.get("terms", ()))


def turns(graph: Graph) -> int:
    terms = [term for node in graph for term in node.attrs.get("terms", ())]
    return sum(len(term.sums) + 2 * term.around for term in terms)


def test_weights_are_the_costs_in_the_middle_of_the_levels() -> None:
    params = small()
    rows = {
        kind: tuple(range(first, first + 50, 10))
        for kind, first in (("rotation", 1000), ("plain", 60), ("product", 1500), ("added", 200))
    }
    found = layout_costs_of(Costs("nanoseconds", **rows, **STORED, fused=500, together=600), params)
    middle = (params.depth + 1) // 2
    assert (found.rotation, found.behind) == (
        rows["rotation"][middle],
        rows["rotation"][middle - 1],
    )
    assert (found.switch, found.diagonal) == (found.rotation // 2, rows["plain"][middle] // 2)
    assert (found.mask, found.product) == (rows["plain"][middle], rows["product"][middle])
    assert found.added == rows["added"][middle]
    assert found.level == found.rotation - found.behind and found.several == 600
    assert LayoutCosts.of_document(found.document) == found
    for wrong in ({"rotation": -1}, {"mask": 1.5}, {"level": True}, {"several": "600"}):
        with pytest.raises(ValueError, match="must be a whole number"):
            LayoutCosts.of_document({**found.document, **wrong})


def test_a_level_costs_its_part_of_a_bootstrapping() -> None:
    params = Params.create(
        bootstrap=True,
        precision_bits=12,
        levels_after=4,
        log_n=10,
        security=0,
        name="insecure_test",
    )
    of_bytes = counted(params)
    found = layout_costs_of(of_bytes, params)
    assert found.level == of_bytes.real[-1] // (params.depth - params.bootstrap_level)
    assert layout_costs_of(of_bytes.slowed(3.0), params).level == pytest.approx(
        3 * found.level, abs=2
    )


def test_dear_diagonals_make_layouts_with_fewer_diagonals(rng: np.random.Generator) -> None:
    """And dear rotations those with fewer rotations."""
    graph, params = matrix(rng), small()
    found = {
        name: lowered(graph, 512, layout_costs_of(one, params))["lower"]
        for name, one in (
            ("diagonals", costs(plain=5000)),
            ("rotations", costs(rotation=50_000)),
        )
    }
    assert diagonals(found["diagonals"]) < diagonals(found["rotations"])
    assert turns(found["diagonals"]) > turns(found["rotations"])


def test_several_ciphertexts_cost_their_share(
    rng: np.random.Generator,
) -> None:
    """Layout costs count for every ciphertext of an array, and less if these are computed at once."""
    graph = made(np.square, rng.uniform(-1, 1, (20, 1024)))
    alone, shared = (
        _Search(graph, 256, replace(WEIGHTS, several=share)).cheapest().cost
        for share in (1000, 500)
    )
    assert alone == 4 * WEIGHTS.product and shared == alone / 2


def test_numbers_that_move_round_take_no_level(
    rng: np.random.Generator,
) -> None:
    """The numbers of an array that fills its period move round: a rotation takes no level, and a
    matrix takes one."""
    graph = made(lambda v: np.roll(v * v, 3) * v, rng.uniform(-1, 1, (20, 64)))
    one = _Search(graph, 64, replace(WEIGHTS, level=0)).cheapest().cost
    other = _Search(graph, 64, replace(WEIGHTS, level=1_000_000)).cheapest().cost
    assert one == other  # as a rotation is the cheaper one by far


def network(x: Any) -> Any:
    """A matrix, products of matrices, sums along an axis, a roll and a polynomial."""
    y = x @ (np.arange(64).reshape(8, 8) / 64 - 0.5)
    z = np.matmul(y, y.T) + x
    total = (z * z).sum(axis=1, keepdims=True)
    return np.roll(total * z, 1, axis=1)


def test_no_cost_is_left_in_the_code() -> None:
    """Where all weights are zero, every choice costs nothing; and twice the weights make twice the
    cost. A constant in the code would break one or the other."""
    nothing = replace(WEIGHTS, **{f.name: 0 for f in fields(LayoutCosts)})
    double = replace(
        WEIGHTS,
        **{
            f.name: 2 * getattr(WEIGHTS, f.name) for f in fields(LayoutCosts) if f.name != "several"
        },
    )
    x = np.random.default_rng(3).uniform(-1, 1, (20, 8, 8))
    layout = fitted((16, 16), 256)
    copies = SparseMap.gather(np.repeat(np.arange(16) * 16 + 5, 16), 256)

    def all_costs(weights: LayoutCosts) -> list[float]:
        graphs = ((made(network, x), slots) for slots in (32, 64, 512))
        searches = [_Search(graph, slots, weights).cheapest().cost for graph, slots in graphs]
        return [
            *searches,
            price([72, 9], 4, weights),
            price([5], 0, weights),
            spread(copies, layout, layout, weights).cost,
        ]

    once, twice = all_costs(WEIGHTS), all_costs(double)
    assert all(cost > 0 for cost in once)
    assert all_costs(nothing) == [0.0] * len(once)
    assert twice == pytest.approx([2 * cost for cost in once], rel=1e-12)


def test_a_turn_that_hardly_saves_anything_is_not_made() -> None:
    """Overlays add noise, of which a table of times knows nothing."""
    grid = np.arange(8)
    free = replace(WEIGHTS, rotation=0, behind=0)
    assert overlaid({(0, 0): grid}, 64, 8, free)[0] != ()
    saved = price([8], 0, free) - price([8], 1, free)
    assert saved > 0
    # The turns cost as much as they save, but for less than a rotation.
    close = replace(WEIGHTS, rotation=math.floor(saved / 2), behind=math.floor(saved / 2))
    assert overlaid({(0, 0): grid}, 64, 1, close)[0] == ()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of costs of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def keep(rotation: int, plain: int) -> None:
    points: measured.Points = [(2, 1000), (40, 20_000)]
    table: measured.Table = dict.fromkeys(measured.NEEDED, points)
    table |= {"rotation": [(2, rotation), (40, rotation)], "plain": [(2, plain), (40, plain)]}
    for word in ("w32", "w52", "w64"):
        for log_n in (12, 13):
            measured.keep("cpu", word, log_n, table)


def test_measured_costs_choose_the_layouts_and_a_program_keeps_them(
    cache: Path, rng: np.random.Generator
) -> None:
    """What another machine measured does not change a program that it loads, and two machines with
    the same table make the same program."""
    weight = rng.normal(size=(16, 64)) / 64
    x = rng.uniform(-1, 1, (40, 64))

    def compiled() -> Program:
        return jali.compile(lambda v: weight @ v, x[0], calibration=x, input_range=(-1, 1))

    keep(1000, 100_000)
    few = compiled()
    assert compiled().to_bytes() == few.to_bytes()
    keep(100_000, 1000)
    many = compiled()
    assert diagonals(few.stages["levels"]) < diagonals(many.stages["levels"])
    assert few.layout_costs != many.layout_costs
    for program in (few, many):
        again = Program.from_bytes(program.to_bytes())
        assert again.layout_costs == program.layout_costs and again.to_bytes() == program.to_bytes()
        assert again.explain("levels") == program.explain("levels")


def test_a_program_without_weights_or_with_wrong_ones_is_refused(rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, (40, 8))
    program = jali.compile(lambda v: 2.5 * v, x[0], calibration=x, input_range=(-1, 1))
    content, arrays = container.read("program", program.to_bytes())
    weights = content.pop("weights")
    with pytest.raises(jali.VersionError, match="compile the model again"):
        Program.from_bytes(container.written("program", content, arrays))
    known = content["costs"]
    for without in ("added", "expanded", "streamed", "made"):
        before = {kind: row for kind, row in known.items() if kind != without}
        old = content | {"weights": weights, "costs": before}
        with pytest.raises(jali.VersionError, match="planned by other costs: compile the model"):
            Program.from_bytes(container.written("program", old, arrays))
    for wrong in (None, [], {**weights, "switch": -5}, {"rotation": 5}):
        with pytest.raises(jali.CorruptData):
            Program.from_bytes(container.written("program", content | {"weights": wrong}, arrays))
