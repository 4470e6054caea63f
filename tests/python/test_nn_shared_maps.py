"""Maps that keep what their places share, against lists of the same entries and against NumPy; and
compositions that are not made because they would be larger than their parts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from map_lists import check_against_list, listed
from slot_interpreter import WEIGHTS, check

from jali.compiler.ir import compositions, linear_ops, windows
from jali.compiler.ir.compositions import composed
from jali.compiler.ir.execute import execute
from jali.compiler.ir.folded_ops import Affine
from jali.compiler.ir.graph import Graph
from jali.compiler.ir.layouts import fitted
from jali.compiler.ir.linear_ops import Dense, Sum
from jali.compiler.ir.operation import Input, Linear
from jali.compiler.ir.shared_map import SharedMap
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.ir.traced_ops import Multiply, made
from jali.compiler.ir.windows import Convolution
from jali.compiler.layout.terms import Term
from jali.compiler.passes import fold as folding
from jali.compiler.passes.fold import fold

Shape = tuple[int, ...]


def drawn(rng: np.random.Generator, shape: Shape, zeros: float) -> np.ndarray:
    return rng.normal(size=shape) * (rng.random(shape) >= zeros)


def convolution(
    weight: np.ndarray,
    stride: Shape = (1, 1),
    padding: tuple[tuple[int, int], ...] = ((1, 1), (1, 1)),
    dilation: Shape = (1, 1),
    groups: int = 1,
) -> Convolution:
    return Convolution(weight, None, stride, padding, dilation, groups)


#: Operations with the shape of what they take.
CASES: dict[str, Callable[[np.random.Generator], tuple[Linear, Shape]]] = {
    "convolution": lambda r: (convolution(drawn(r, (5, 4, 3, 3), 0.0)), (4, 6, 7)),
    "zeros": lambda r: (convolution(drawn(r, (5, 4, 3, 3), 0.4)), (4, 6, 7)),
    "stride": lambda r: (
        convolution(drawn(r, (5, 4, 3, 2), 0.0), (2, 3), ((0, 2), (1, 0))),
        (4, 6, 7),
    ),
    "dilation": lambda r: (
        convolution(drawn(r, (5, 4, 2, 3), 0.0), dilation=(3, 2)),
        (4, 6, 7),
    ),
    "groups": lambda r: (convolution(drawn(r, (6, 2, 3, 3), 0.1), groups=2), (4, 5, 6)),
    "depthwise": lambda r: (convolution(drawn(r, (4, 1, 3, 3), 0.0), groups=4), (4, 8, 9)),
    "pointwise": lambda r: (
        convolution(drawn(r, (8, 9, 1, 1), 0.0), padding=((0, 0), (0, 0))),
        (9, 5, 4),
    ),
    "dense": lambda r: (Dense(drawn(r, (7, 8), 0.0), None), (6, 5, 8)),
    "dense with zeros": lambda r: (Dense(drawn(r, (7, 8), 0.3), None), (30, 8)),
}


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small maps are kept as shared ones, too."""
    for module in (linear_ops, windows):
        monkeypatch.setattr(module, "SHARED", 0)


def shared_and_matrix(name: str, rng: np.random.Generator) -> tuple[SharedMap, np.ndarray]:
    operation, shape = CASES[name](rng)
    (found,) = operation.maps([shape])
    assert isinstance(found, SharedMap)
    units = np.eye(found.shape[1]).reshape(-1, *shape)
    return found, operation.compute([units]).reshape(len(units), -1).T


def are_alike(found: SparseMap, matrix: np.ndarray, rng: np.random.Generator) -> None:
    """A map is that of a matrix, in all that is asked of it."""
    want, (m, n) = listed(matrix), matrix.shape
    check_against_list(found, want, rng)
    assert np.allclose(found.matrix(), matrix)
    assert np.allclose(found.bounds(-0.3, 0.7), want.bounds(-0.3, 0.7))
    for most in (7, 60, 10**6):
        few, those = found.sample(most), want.sample(most)
        assert np.array_equal(few.rows, those.rows) and np.array_equal(few.cols, those.cols)
        assert np.allclose(few.values, those.values, rtol=1e-12)
    rows, cols = np.flatnonzero(rng.random(m) < 0.7), np.flatnonzero(rng.random(n) < 0.4)
    assert np.allclose(found.part(rows).matrix()[rows], matrix[rows])
    some = np.zeros_like(matrix)
    for piece in found.pieces(rows, cols) if isinstance(found, SharedMap) else ():
        assert piece.count and np.all(np.diff(piece.rows.astype(np.int64) * n + piece.cols) > 0)
        some += piece.matrix()
    chosen = np.outer(np.isin(np.arange(m), rows), np.isin(np.arange(n), cols))
    assert not isinstance(found, SharedMap) or np.allclose(some, matrix * chosen)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("shared")
def test_a_shared_map_is_its_list(name: str, rng: np.random.Generator) -> None:
    """As it is, and behind factors of rows and columns."""
    found, matrix = shared_and_matrix(name, rng)
    are_alike(found, matrix, rng)
    left, right = rng.normal(size=len(matrix)), rng.normal(size=matrix.shape[1])
    scaled = found.scaled(left).scaled(2.0, right)
    assert isinstance(scaled, SharedMap)
    are_alike(scaled, 2 * left[:, None] * matrix * right, rng)
    zeros = np.where(rng.random(len(matrix)) < 0.5, 0.0, 2.0)
    assert np.allclose(found.scaled(zeros).matrix(), zeros[:, None] * matrix)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("shared")
def test_moves_around_a_shared_map(name: str, rng: np.random.Generator) -> None:
    """Permutations with factors, on both sides, are taken in."""
    found, matrix = shared_and_matrix(name, rng)
    m, n = matrix.shape
    before = SparseMap.gather(rng.permutation(n), n).scaled(rng.normal(size=n))
    behind = SparseMap.gather(rng.permutation(m), m).scaled(rng.normal(size=m))
    once = composed(found, before, 0)
    assert isinstance(once, SharedMap)
    are_alike(once, matrix @ before.matrix(), rng)
    twice = composed(behind, once, 0)
    assert isinstance(twice, SharedMap)
    are_alike(twice, behind.matrix() @ matrix @ before.matrix(), rng)
    more = composed(behind, composed(twice, before, 0) or before, 0)
    assert isinstance(more, SharedMap)
    want = behind.matrix() @ behind.matrix() @ matrix @ before.matrix() @ before.matrix()
    are_alike(more, want, rng)


@pytest.mark.usefixtures("shared")
def test_moves_that_drop_numbers(rng: np.random.Generator) -> None:
    """Whole channels and whole places stay shared maps; other parts become lists."""
    found, matrix = shared_and_matrix("zeros", rng)
    x, y = np.arange(168).reshape(4, 6, 7), np.arange(210).reshape(5, 6, 7)

    def gathered(places: np.ndarray, size: int) -> SparseMap:
        return SparseMap.gather(places.ravel(), size)

    padded = np.pad(y[1:4, 1:-1, ::2], ((0, 1), (0, 0), (1, 1)), constant_values=-1)
    cropped = gathered(padded, 210)
    kept = composed(cropped, found, 0)
    assert isinstance(kept, SharedMap)
    are_alike(kept, cropped.matrix() @ matrix, rng)

    source = np.full((4, 6, 7), -1)  # of an array of 2 channels of 4 x 5
    source[1:3, 1:5, 2:] = np.arange(40).reshape(2, 4, 5)
    embedded = gathered(source, 40)
    kept = composed(found, embedded, 0)
    assert isinstance(kept, SharedMap)
    are_alike(kept, matrix @ embedded.matrix(), rng)

    ragged = np.where(rng.random(168) < 0.5, x.ravel(), -1)
    uneven = gathered(ragged, 168)
    assert composed(found, uneven, 0) is None
    made_ = composed(found, uneven, 10**6)
    assert made_ is not None
    are_alike(made_, matrix @ uneven.matrix(), rng)
    repeated = gathered(np.repeat(y, 2), 210)
    assert composed(repeated, found, 0) is None


@pytest.mark.usefixtures("shared")
def test_bounds_of_numbers_without_bounds(rng: np.random.Generator) -> None:
    found, matrix = shared_and_matrix("zeros", rng)
    low = np.full(matrix.shape[1], -1.0)
    low[5] = -np.inf
    least, most = found.bounds(low, np.ones_like(low))
    takes = matrix[:, 5] != 0
    assert takes.any() and not takes.all()
    assert np.all(np.isneginf(least[takes])) and np.all(np.isposinf(most[takes]))
    want = np.abs(matrix).sum(1)
    assert np.allclose(least[~takes], -want[~takes]) and np.allclose(most[~takes], want[~takes])


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("shared")
def test_diagonals_of_a_shared_map_are_those_of_its_list(
    name: str, rng: np.random.Generator
) -> None:
    single, matrix = shared_and_matrix(name, rng)
    m, n = matrix.shape
    for slots in (64, 512):
        source, target = fitted((n,), slots), fitted((m,), slots)
        found, want = (Term.of(x, source, target, True, WEIGHTS) for x in (single, listed(matrix)))
        assert found.diagonals.keys() == want.diagonals.keys() == found.digests.keys()
        assert all(np.array_equal(found.diagonals[k], d) for k, d in want.diagonals.items())
        for to in range(target.ciphertexts):
            pairs = zip(found.vectors(to, 2), want.vectors(to, 2), strict=True)
            for (mine, vectors), (theirs, others) in pairs:
                assert mine == theirs and vectors.keys() == others.keys()
                assert all(np.allclose(vectors[d], others[d]) for d in others)


@pytest.mark.usefixtures("shared")
def test_networks_of_shared_maps(rng: np.random.Generator) -> None:
    """What the diagonals compute in slots is what the model computes."""
    x = made("x", Input(shape=(3, 8, 8)), [])
    first = made("h", convolution(drawn(rng, (4, 3, 3, 3), 0.1) / 4), [x])
    squared = made("s", Multiply(), [first, first])
    last = made("c", convolution(drawn(rng, (8, 4, 3, 3), 0.0) / 8, (2, 2)), [squared])
    outcome = made("y", Multiply(), [last, last])
    graph = Graph((x, first, squared, last, outcome), ("y",))
    for slots in (128, 512):
        low = check(graph, slots, 2, rng)
        assert isinstance(low["c"].attrs["terms"][0].single, SharedMap)


def counts(graph: Graph) -> dict[str, int]:
    return {
        n.name: sum(m.count for m in n.operation.maps)
        for n in graph
        if isinstance(n.operation, Affine)
    }


@pytest.mark.parametrize("keeps_shared", [False, True])
def test_maps_are_composed_only_if_that_is_no_larger(
    keeps_shared: bool, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """64 -> 8 -> 64 channels have fewer entries than 64 -> 64. 64 -> 8 -> 4 have more than 64 ->
    4."""
    monkeypatch.setattr(folding, "_ANYWAY", 0)
    if keeps_shared:
        monkeypatch.setattr(windows, "SHARED", 0)
    x = made("x", Input(shape=(64, 3, 3)), [])

    def graph(last: int) -> Graph:
        none = ((0, 0), (0, 0))
        narrow = convolution(drawn(rng, (8, 64, 1, 1), 0.0) / 8, padding=none)
        wide = convolution(drawn(rng, (last, 8, 1, 1), 0.0) / 8, padding=none)
        inner = made("inner", narrow, [x])
        return Graph((x, inner, made("outer", wide, [inner])), ("outer",))

    apart, together = graph(64), graph(4)
    assert counts(fold(apart)) == {"inner": 8 * 64 * 9, "outer": 64 * 8 * 9}
    if not keeps_shared:
        assert counts(fold(together)) == {"outer": 4 * 64 * 9}
    examples = rng.normal(size=(3, 64, 3, 3))
    for one in (apart, together):
        (found,), (want,) = execute(fold(one), examples), execute(one, examples)
        assert np.allclose(found, want)


def test_a_sum_of_shared_maps_of_one_source_is_made_of_two_nodes(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    weights = drawn(rng, (2, 6, 6, 3, 3), 0.0) / 8
    x = made("x", Input(shape=(6, 8, 8)), [])
    one, other = (made(f"c{k}", convolution(w), [x]) for k, w in enumerate(weights))
    both = made("y", linear_ops.Combine((1.0, -2.0)), [one, other])
    graph = Graph((x, one, other, both), ("y",))
    assert [n.name for n in fold(graph)] == ["x", "y"]
    monkeypatch.setattr(folding, "_ANYWAY", 0)
    monkeypatch.setattr(windows, "SHARED", 0)
    folded = fold(graph)
    assert [n.name for n in folded] == ["x", "c0", "c1", "y"]
    examples = rng.normal(size=(3, 6, 8, 8))
    (found,), (want,) = execute(folded, examples), execute(graph, examples)
    assert np.allclose(found, want)


def test_compositions_are_counted_before_they_are_made(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """A convolution of 5 x 5 is one of two of 3 x 3; and what is made some rows after the other is
    what is made at once."""
    shape = (4, 12, 12)
    (inner,) = convolution(drawn(rng, (4, 4, 3, 3), 0.0)).maps([shape])
    (outer,) = convolution(drawn(rng, (4, 4, 3, 3), 0.0)).maps([shape])
    whole = outer.after(inner)
    assert np.allclose(whole.matrix(), outer.matrix() @ inner.matrix())
    estimate = compositions._entries(outer, inner, 1000)
    assert whole.count > inner.count + outer.count
    assert 0.8 * whole.count < estimate < 1.2 * whole.count
    assert composed(outer, inner, inner.count + outer.count) is None
    again = composed(outer, inner, 2 * whole.count)
    assert again is not None and np.array_equal(again.values, whole.values)
    (pool,) = Sum((1, 2), 1 / 144, True).maps([shape])
    assert compositions._entries(pool, inner, 100) <= 1.01 * pool.after(inner).count
    monkeypatch.setattr("jali.compiler.ir.sparse._PRODUCTS", 1000)
    parts = outer.after(inner)
    assert np.array_equal(parts.rows, whole.rows) and np.array_equal(parts.cols, whole.cols)
    assert np.array_equal(parts.values, whole.values)


def test_a_large_convolution_is_kept_in_the_size_of_its_weights(rng: np.random.Generator) -> None:
    weight = drawn(rng, (32, 32, 3, 3), 0.0)
    x = made("x", Input(shape=(32, 40, 40)), [])
    graph = Graph((x, made("conv", convolution(weight), [x])), ("conv",))
    (single,) = Affine.of(fold(graph)["conv"]).maps
    assert isinstance(single, SharedMap)
    assert single.held == weight.size + 2 * 32 * 40 * 40 < single.count / 100
