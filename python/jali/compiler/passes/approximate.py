"""Approximation: functions become polynomials on [-1, 1], and every array is scaled into [-1, 1].

An array of the new graph holds (true - centre) / radius, where centre and radius are in the Scaling
of its node. The matrices and polynomials absorb the factors, so they cost nothing. A polynomial on
[-1, 1] takes one level less than on another interval, and numbers of size 1 lose the least to
noise.

In: a calibrated graph. Out: the graph, whose nodes have a Scaling in the place of their Range, and
whose functions are Approximated.

>>> examples = np.linspace(-1, 1, 20).reshape(10, 2)
>>> ranged = calibrate(fold(nn.trace(np.tanh, examples[0])), [examples])
>>> x, y = approximated(ranged, 1e-2)
>>> y.op, y.operation.by.depth, y.operation.error <= 1e-2, -1 <= y.scaling.low
('approximated', 3, True, True)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jali import ckks
from jali.compiler.ir.execute import every_value
from jali.compiler.ir.facts import Facts, Scaling
from jali.compiler.ir.folded_ops import Affine, Approximated, Approximation, error_of
from jali.compiler.ir.graph import Array, Graph, Node
from jali.compiler.ir.loop_graph import Loop, StepMap, has_loops, is_whole
from jali.compiler.ir.operation import Input
from jali.compiler.ir.products import MatrixProduct
from jali.compiler.ir.scalar import (
    ABOVE_ZERO,
    APPROXIMATED,
    AROUND_ZERO,
    COMPOSITIONS,
    DECIDING,
    HOMOGENEOUS,
)
from jali.compiler.ir.sparse import SparseMap
from jali.compiler.ir.traced_ops import Function, Multiply, PowerSeries, function_of
from jali.compiler.passes.composite import sign
from jali.compiler.passes.execute_approximated import expected, scaled
from jali.compiler.passes.limits import LEAST_RADIUS, MOST_FACTOR, divisible, too_large
from jali.compiler.passes.loop_scales import (
    LoopRadii,
    better_radii,
    fixed_by_loops,
    inputs_at_start,
    multiplies,
)
from jali.compiler.passes.roots import LEVEL, RESTORED_LEVEL, is_near_zero
from jali.compiler.passes.staged_roots import bootstraps, polynomial_root, staged_root
from jali.compiler.passes.widened_ranges import TooCoarse, widened
from jali.errors import InvalidArgument

__all__ = ["NOISE_SHARE", "Measured", "approximate", "approximated", "promised", "scaled"]

#: Which part of the error is left to the noise. The rest is for approximations, and for numbers
#: that have more noise than the average.
NOISE_SHARE = 1 / 8
_CORNER_DEGREES = (2, 6, 14, 30, 62, 126, 254)
LEAST_RMS = 2.0**-20  # a declared root mean square is above 0
_MOST_CHOICES = 16  # how often the radii of loops are chosen again
_LEAST_GAP = 2.0**-20  # beside the largest number, that a sign tells from 0
_ROUNDS = 24  # the errors of the functions are halved at most so many times
_AT_ONCE = 1 << 22  # numbers in all arrays of the examples whose errors are measured at a time


def approximate(
    graph: Graph,
    examples: Sequence[Array],
    precision_bits: float,
    *,
    traced: Graph | None = None,
    exact: Mapping[str, Array] | None = None,
) -> tuple[Graph, float]:
    """The graph on [-1, 1] with approximated functions, for a calibrated one, and the functions'
    error.

    precision_bits: on the examples, no output is off by more than 7/8 of 2^-precision_bits of the
        output's largest number. The rest is left to the noise, of which a bit costs less. Every
        function has the same error in units of its largest value; only the compositions of
        scalar.COMPOSITIONS have their own.
    traced: the graph before folding, which computes the same in less time.
    exact: the value of its outputs for the examples, if they are known.

    Raises InvalidArgument, which names the function, where no approximation is found.
    """
    exact = every_value(graph, examples) if exact is None else exact
    traced = traced or graph
    parts = Measured.of(traced, examples, [exact[name] for name in graph.outputs])
    limit = error = (1 - NOISE_SHARE) * 2.0**-precision_bits
    for round_ in range(_ROUNDS):
        try:
            made = approximated(graph, error)
        except TooCoarse:
            if round_ + 1 == _ROUNDS:
                raise
            error /= 2
            continue
        functions = {
            node.name: node.operation.by
            for node in _every_node(made)
            if isinstance(node.operation, Approximated) and node.operation.by.error
        }
        if not functions:
            return promised(made, precision_bits), error
        fixed = all(by.fixed for by in functions.values())
        off = parts.largest_error(traced, made, math.inf if fixed else limit)
        if off <= limit:
            return promised(made, precision_bits), error
        if fixed:
            raise InvalidArgument(
                f"the polynomials of {next(iter(functions.values())).name} leave errors of {off:.2g} of the largest output, or "
                f"{-math.log2(off):.1f} bits: ask for fewer than {precision_bits:g} precision_bits, or take relu"
            )
        error /= 2
    names = ", ".join(functions)
    raise InvalidArgument(
        f"no approximation of {names} keeps the outputs within {precision_bits:g} bits: ask for a smaller precision_bits"
    )


def _every_node(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph and of the bodies of its loops."""
    for node in graph:
        yield node
        if isinstance(node.operation, Loop):
            yield from _every_node(node.operation.body)


def promised(graph: Graph, precision_bits: float) -> Graph:
    """The graph whose outputs may lie beyond their ranges by the error that was promised."""
    nodes = []
    for node in graph:
        if node.name in graph.outputs:
            off = 2.0**-precision_bits * node.scaling.largest / float(np.min(node.scaling.radius))
            node = node.with_scaling(beyond=node.scaling.beyond + off)
        nodes.append(node)
    return Graph(tuple(nodes), graph.outputs, graph.stage)


@dataclass
class Measured:
    """Examples on which errors are measured, a few at a time: examples of every input, and the
    exact values of every output."""

    parts: list[tuple[list[Array], list[Array]]]

    @classmethod
    def of(cls, graph: Graph, examples: Sequence[Array], exact: Sequence[Array]) -> Measured:
        """Examples of the graph's inputs, and the values of its outputs for them."""
        step = max(1, _AT_ONCE // sum(node.size for node in graph))
        starts = range(0, len(examples[0]), step)
        return cls(
            [
                ([x[k : k + step] for x in examples], [y[k : k + step] for y in exact])
                for k in starts
            ]
        )

    def largest_error(self, traced: Graph, graph: Graph, enough: float) -> float:
        """The largest error of an output, in units of the output's largest number. If it is above
        `enough`, the examples that follow are left out. The next call then begins with those that
        had it, which are likely to have large errors again."""
        largest = 0.0
        for k, (examples, exact) in enumerate(self.parts):
            values = expected(traced, graph, examples)
            for name, got, want in zip(graph.outputs, values, exact, strict=True):
                off = float(np.abs(got.ravel() - want.ravel()).max()) / graph[name].scaling.largest
                # Far outside of its interval, a polynomial may have no value.
                largest = max(largest, off if math.isfinite(off) else math.inf)
            if largest > enough:
                self.parts.insert(0, self.parts.pop(k))
                break
        return largest


def approximated(graph: Graph, error: float) -> Graph:
    """The graph on [-1, 1] whose functions are off by at most `error` of their largest value,
    which may be Errors. Raises TooCoarse, and InvalidArgument for numbers that are too small or too
    large beside those of which they are made."""
    graph = widened(graph, error)
    if has_loops(graph):
        made = _with_fewest_products(graph, error, sums=True)
        if multiplies(made):
            made = _with_fewest_products(graph, error, sums=False)
    else:
        made = _approximated(graph, error, {})
    large = too_large(made, MOST_FACTOR)
    if large is not None:
        raise InvalidArgument(
            f"{large} multiply what is taken by more than 2^100, in units of the largest numbers: nothing would be left of it beside the noise. Multiply "
            "by constants in the model, so that the numbers of all arrays are near 1"
        )
    return made


def _with_fewest_products(graph: Graph, error: float, *, sums: bool) -> Graph:
    """The graph whose loops have radii with which the fewest states are multiplied: they are chosen
    again as long as that changes anything.

    sums: see loop_scales.better_radii.
    """
    radii: dict[str, LoopRadii] = {}
    made = _approximated(graph, error, radii)
    for _ in range(_MOST_CHOICES):
        better = better_radii(made, radii, sums=sums)
        if better == radii:
            break
        made, radii = _approximated(graph, error, better), better
    return made


def _approximated(
    graph: Graph,
    error: float,
    radii: dict[str, LoopRadii],
    fixed: Mapping[str, float] | None = None,
    given: Mapping[str, tuple[Array | float, Array | float]] | None = None,
    path: str = "",
) -> Graph:
    """fixed: radii of some nodes, with centre 0.
    given: (centre, radius) of the inputs of a body."""
    nodes: dict[str, Node] = {}
    fixed = dict(fixed or {})
    if has_loops(graph):
        fixed |= fixed_by_loops(graph, radii, path)

    def scale(node: Node) -> tuple[Array | float, Array | float]:
        if given and node.name in given:
            return given[node.name]
        return (0.0, fixed[node.name]) if node.name in fixed else _scale(node, graph)

    def product(node: Node, inputs: Sequence[Node]) -> float:
        radius = float(inputs[0].scaling.radius * inputs[1].scaling.radius)
        if radius < LEAST_RADIUS:
            raise InvalidArgument(
                f"{node.name}: its numbers are below {LEAST_RADIUS:.0e}: multiply by a constant before the product, so that the largest is near 1"
            )
        return radius

    for node in graph:
        inputs = [nodes[name] for name in node.inputs]
        if isinstance(node.operation, Affine):
            argument = any(function_of(user) in ABOVE_ZERO for user in graph.users(node.name))
            if argument:  # its interval does not touch 0
                fixed.pop(node.name, None)
            centre, radius = scale(node)
            kept = None if argument or node.name in fixed else _copied_radius(node, inputs)
            if kept is not None:
                centre, radius = 0.0, kept
            made = _affine(node, inputs, centre, radius)
            made = made if kept is None else _beyond(made)
            nodes[node.name] = _snapped(made) if node.name in fixed or kept else made
        elif isinstance(node.operation, Multiply):
            nodes[node.name] = _beyond(_in_scale(node, 0.0, product(node, inputs)))
        elif isinstance(node.operation, MatrixProduct):
            largest = fixed.get(node.name) or _largest(node)
            largest = divisible(0.0, largest)
            gain = node.operation.gain * (product(node, inputs) / largest)
            made = _in_scale(node, 0.0, largest, free=True)
            nodes[node.name] = made.with_operation(gain=gain)
        elif isinstance(node.operation, Input):
            nodes[node.name] = _in_scale(node, *scale(node))
        elif isinstance(node.operation, Loop):
            body, outputs = node.operation.body, radii[path + node.name]
            ports = zip(body.inputs, inputs_at_start(node, inputs), strict=True)
            scales = {p.name: (n.scaling.centre, n.scaling.radius) for p, n in ports}
            inside = _approximated(
                body, error, radii, outputs.of_body(body), scales, f"{path}{node.name}."
            )
            made = _in_scale(node, 0.0, outputs.of_result(node))
            nodes[node.name] = made.with_operation(body=inside)
        elif function_of(node) in COMPOSITIONS:
            nodes |= {n.name: n for n in _composition(node, inputs[0])}
        else:
            own, given_radius = error_of(error, path + node.name), fixed.get(node.name)
            root = None
            if function_of(node) == "sqrt" and not path:
                level = RESTORED_LEVEL if bootstraps(graph) else LEVEL
                root = staged_root(node, inputs[0], own, level, given_radius)
            if root is None:
                nodes[node.name] = _function(node, inputs[0], own, graph, given_radius)
            else:
                nodes |= {n.name: n for n in root.parts}
                made = replace(node, operation=Multiply(), inputs=root.inputs)
                nodes[node.name] = _in_scale(made, 0.0, root.radius)
    return Graph(tuple(nodes.values()), graph.outputs, "approximate")


def _in_scale(node: Node, centre: Array | float, radius: Array | float, free: bool = False) -> Node:
    """The node with its scale, and its range and root mean square in that scale.

    free: whether the radius may be chosen larger.
    """
    known = node.range
    square = known.square - 2 * centre * known.mean + np.square(centre)
    moved = np.mean(square / np.square(radius))
    scaling = Scaling(
        centre=centre,
        radius=radius,
        low=float(np.min((known.low - centre) / radius)),
        high=float(np.max((known.high - centre) / radius)),
        rms=min(1.0, max(math.sqrt(max(float(moved), 0.0)), LEAST_RMS)),
        largest=known.largest,
        proven=known.proven,
        beyond=float(np.max(known.beyond / radius)),
        free=free,
    )
    return node.with_facts(range=None, scaling=scaling)


def _largest(node: Node) -> float:
    """No number of the node is larger in modulus, in the model's units."""
    return max(abs(float(node.range.low)), abs(float(node.range.high)))


def _scale(node: Node, graph: Graph) -> tuple[Array | float, Array | float]:
    """(centre, radius) of an array. Functions and matrices take any centre, products and ReLU take
    0."""
    if _shifts(node, graph):
        return _scale(graph[node.inputs[0]], graph)
    users = graph.users(node.name)
    alike = [node, *(user for user in users if _shifts(user, graph))]
    low, high = (
        np.array([n.range.low for n in alike]).min(axis=0),
        np.array([n.range.high for n in alike]).max(axis=0),
    )
    takes, is_input = [user.operation for user in users], isinstance(node.operation, Input)
    if not (is_input and all(isinstance(one, Affine) for one in takes)):
        low, high = np.min(low), np.max(high)  # all but matrices need one scale for all numbers
    corners = any(function_of(user) in AROUND_ZERO for user in users)
    only_functions = bool(takes) and all(isinstance(o, Function | PowerSeries) for o in takes)
    centred = any(isinstance(one, Multiply | MatrixProduct | Loop) for one in takes)
    if corners or centred or not (is_input or only_functions):
        centre, radius = 0.0, np.maximum(abs(low), abs(high))
    else:
        centre, radius = (low + high) / 2, (high - low) / 2
    return centre, radius if is_input else divisible(float(centre), float(radius))


def _shifts(node: Node, graph: Graph) -> bool:
    """Whether it only adds constants to the result of matrices. In the same scale, that takes no
    level: x (x + b) takes one then."""
    if not isinstance(node.operation, Affine) or len(node.inputs) > 1:
        return False
    source = graph[node.inputs[0]]
    if not (node.operation.maps[0].is_identity and isinstance(source.operation, Affine)):
        return False
    users = [graph.users(one.name) for one in (node, source)]
    return all(any(isinstance(u.operation, Multiply) for u in of_one) for of_one in users)


def _affine(
    node: Node, inputs: Sequence[Node], centre: Array | float, radius: Array | float
) -> Node:
    affine = Affine.of(node)
    bias = affine.bias - centre
    maps = []
    for source, single in zip(inputs, affine.maps, strict=True):
        theirs = np.broadcast_to(source.scaling.centre, (source.size,))
        if np.any(theirs):
            bias = bias + single(theirs[None])[0]
        if np.ndim(radius) == np.ndim(source.scaling.radius) == 0:  # equal radii give exactly 1
            maps.append(single.scaled(source.scaling.radius / radius))
        else:
            maps.append(single.scaled(1 / np.asarray(radius), source.scaling.radius))
    made = _in_scale(node, centre, radius)
    return made.with_operation(maps=tuple(maps), bias=bias / radius)


def _copied_radius(node: Node, inputs: Sequence[Node]) -> float | None:
    """The radius of copies of all numbers of an array, or of a part of a loop's result, times a
    number: with the scale that these numbers have, the copies cost no level."""
    affine = Affine.of(node)
    if len(inputs) != 1 or np.any(affine.bias):
        return None
    (single,), (source,) = affine.maps, inputs
    scaling = source.scaling
    arrays = bool(np.ndim(scaling.radius) or np.ndim(scaling.centre))
    if single.count != single.shape[0] or single.count != single.used_rows:
        return None
    if arrays and not isinstance(source.operation, Loop):
        return None
    first = float(single.values[0])
    if not np.all(single.values == first) or first <= 0:
        return None
    radius, centre = (
        np.unique(np.broadcast_to(numbers, source.size)[single.cols])
        for numbers in (scaling.radius, scaling.centre)
    )
    if len(radius) > 1 or np.any(centre):
        return None
    whole = single.used_cols == source.size
    if isinstance(source.operation, Loop):
        ends = np.cumsum(source.operation.sizes)
        part = int(np.searchsorted(ends, single.cols.min(), "right"))
        start = ends[part - 1] if part else 0
        whole = single.cols.max() < ends[part] and single.used_cols == ends[part] - start
    return float(radius[0]) * first if whole else None


def _beyond(node: Node) -> Node:
    """A node whose radius is that of what it copies or multiplies. This may lie beyond it, by the
    errors of functions, and so does the node."""
    low, high = node.scaling.low, node.scaling.high
    off = max(0.0, high - 1.0, -1.0 - low)
    if not off:
        return node
    beyond = off + node.scaling.beyond
    return node.with_scaling(low=max(low, -1.0), high=min(high, 1.0), beyond=beyond)


def _snapped(node: Node) -> Node:
    """The node; maps that multiply by one whole number up to rounding multiply by it, which takes
    no level."""
    maps = []
    for single in Affine.of(node).maps:
        first = next((piece.values[0] for piece in single.pieces() if piece.count), 0.0)
        whole = float(np.rint(first))
        if is_whole(whole) and not isinstance(single, StepMap) and _near(single, whole):
            single = single.listed()
            values = np.full(single.count, whole)
            single = SparseMap(single.rows, single.cols, values, single.shape)
        maps.append(single)
    return node.with_operation(maps=tuple(maps))


def _near(single: SparseMap, whole: float) -> bool:
    """Whether all entries are this number, up to rounding."""
    return all(np.all(np.abs(x.values - whole) < 2.0**-40 * whole) for x in single.pieces())


def _function(
    node: Node, source: Node, error: float, graph: Graph, fixed: float | None = None
) -> Node:
    """A function or polynomial of (centre + reach t), for t in [-1, 1], in the result's scale.

    fixed: a radius that the result must have, which is at least as large as its own.
    """
    centre, reach = float(source.scaling.centre), float(source.scaling.radius)
    name = function_of(node) or "polynomial"
    by: ckks.Polynomial | ckks.functions.Function
    middle, radius = map(float, _scale(node, graph))
    if name in HOMOGENEOUS:
        (by, off), middle, radius = _with_a_corner(name, error), 0.0, reach
    elif name in DECIDING:
        (by, off), middle, radius = _deciding(node, error), 0.0, 1.0
    else:
        largest = divisible(0.0, _largest(node))
        radius = max(radius, largest * 2.0**-20) + error * largest
        if fixed is not None and fixed >= radius:
            middle, radius = 0.0, fixed
        coefficients, off = _chebyshev(node, centre, reach, error * largest)
        coefficients[0] -= middle
        by, off = _on_unit(coefficients / radius), off / radius
    made = _in_scale(node, middle, radius, free=name not in AROUND_ZERO)
    return replace(made, operation=Approximated(Approximation(name, by, off)))


def _composition(node: Node, source: Node) -> list[Node]:
    """ReLU as x (1 + sign(x)) / 2: a node for each polynomial of the sign, and a product. So every
    one of them may be bootstrapped."""
    name, reach = function_of(node), source.scaling.radius
    composite = sign(COMPOSITIONS[name])
    made: list[Node] = []
    for k, coefficients in enumerate(composite.stages, 1):
        last = k == len(composite.stages)
        series = coefficients / 2 if last else coefficients.copy()
        series[0] += 0.5 * last  # the last one gives 0 or 1
        error = composite.error / 2 if last else 0.0
        by = Approximation(name, _on_unit(series), error, fixed=True)
        scaling = Scaling(
            centre=0.0,
            radius=1.0,
            low=0.0 if last else -1.0,
            high=1.0,
            rms=1.0,
            largest=1.0,
            proven=source.scaling.proven,
        )
        before = made[-1].name if made else source.name
        facts = Facts(scaling=scaling)
        made.append(Node(f"{node.name} sign {k}", Approximated(by), (before,), node.shape, facts))
    product = _in_scale(node, 0.0, reach)
    product = replace(product, operation=Multiply(), inputs=(source.name, made[-1].name))
    low, high, off = product.scaling.low, product.scaling.high, composite.relu_error
    return [*made, product.with_scaling(low=low - off, high=high + off)]


def _chebyshev(node: Node, centre: float, reach: float, error: float) -> tuple[Array, float]:
    """The Chebyshev coefficients of a function or polynomial on centre +- reach, and how far they
    are off."""
    if isinstance(node.operation, PowerSeries):
        inner = np.polynomial.Polynomial([centre, reach])
        power = np.polynomial.Polynomial(node.operation.coefficients)(inner)
        return np.asarray(np.polynomial.chebyshev.poly2cheb(power.coef), np.float64), 0.0
    name = Function.of(node).function
    if name == "inverse" and centre < 0:  # 1 / x = -(1 / -x), and T_k(-t) = (-1)^k T_k(t)
        mirrored, off = _chebyshev(node, -centre, reach, error)
        return mirrored * -((-1.0) ** np.arange(len(mirrored))), off
    interval = float(centre - reach), float(centre + reach)
    if name == "sqrt" and is_near_zero(interval):
        root = polynomial_root(node.name, interval, error)
        return root.coefficients.copy(), root.error
    try:
        found = APPROXIMATED[name](interval, error=error)
    except InvalidArgument as refused:
        says = str(refused)
        if (
            "larger" in says
        ):  # advice to choose a larger error, which follows from the precision here
            says = (
                f"{name} on [{interval[0]:g}, {interval[1]:g}] has no approximation that is exact enough: keep its numbers in a smaller interval, or ask for "
                "fewer precision_bits"
            )
        raise InvalidArgument(f"{node.name}: {says}") from None
    if found.polynomial is None:
        raise InvalidArgument(
            f"{node.name}: {name} on [{interval[0]:g}, {interval[1]:g}] takes several polynomials: keep its "
            "numbers in a smaller interval"
        )
    return np.real(np.asarray(found.polynomial.coefficients)), found.max_error


def _with_a_corner(
    name: str, error: float
) -> tuple[ckks.Polynomial | ckks.functions.Function, float]:
    """ReLU or the modulus on [-1, 1], and its error.

    One minimax polynomial of degree n is off by about 0.14 / n for ReLU. Up to degree 254 it takes
    fewer levels and products than the composition of polynomials that has the same error.
    """
    least = (0.26 if name == "absolute" else 0.13) / error
    for degree in filter(lambda n: n >= least, _CORNER_DEGREES):
        single = ckks.Polynomial.approximate(
            lambda t: abs(t) if name == "absolute" else max(t, 0.0), degree, minimax=True
        )
        assert single.measured_error is not None
        if single.measured_error <= error:
            return single, single.measured_error
    composed = APPROXIMATED[name](1.0, error=error)
    assert isinstance(composed, ckks.functions.Function)
    return composed, composed.max_error


def _deciding(node: Node, error: float) -> tuple[ckks.functions.Function, float]:
    """The sign or the step on [-1, 1], and its error for numbers of modulus from `error`. Nearer to
    0 it is between the values on both sides."""
    name = function_of(node)
    if error < _LEAST_GAP:
        raise InvalidArgument(
            f"{node.name}: some examples of the calibration compare numbers that are equal, or too near to each other for polynomials to tell: compare "
            "with another number, such as x > 0.01 instead of x > 0, or leave these examples out"
        )
    found = APPROXIMATED[name](1.0, gap=error, error=error)
    assert isinstance(found, ckks.functions.Function)
    return found, found.max_error


def _on_unit(coefficients: Array) -> ckks.Polynomial:
    """The polynomial with these Chebyshev coefficients on [-1, 1]."""
    return ckks.Polynomial(coefficients, "chebyshev", (-1.0, 1.0))
