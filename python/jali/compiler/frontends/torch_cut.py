"""Cuts an exported module of PyTorch along its operators, as jali.compiler.frontends.cutter says.
PyTorch is imported by no function of this file; its caller gives it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jali.compiler.frontends.client_masks import Mask
from jali.compiler.frontends.client_ranges import Ends, ranges_of
from jali.compiler.frontends.client_steps import reshaped
from jali.compiler.frontends.client_values import Clear, argument, constant, kind_of, steps_of
from jali.compiler.frontends.cutter import Cutter
from jali.compiler.frontends.layers import MISPLACED
from jali.compiler.frontends.torch_arguments import (
    given_arguments,
    is_node,
    label_of,
    leaves_of,
    mapped,
    name_of,
    takes_of,
)
from jali.compiler.frontends.torch_client import (
    COMPARING,
    MERGES,
    MOVES,
    OPERATIONS,
    is_head,
    translated,
)
from jali.compiler.frontends.torch_client_moves import LOOKING_UP
from jali.compiler.frontends.torch_client_values import Like
from jali.compiler.frontends.torch_reader import Port, Reader, constant_of, results_of
from jali.compiler.frontends.torch_rewrites import join_bags, with_products
from jali.compiler.ir.graph import Graph
from jali.errors import Unsupported
from jali.program.clear.parts import Parts
from jali.program.clear.steps import Argument

__all__ = ["TorchCut", "cut_of"]

#: Operators whose results depend on the shape and the type of what they take, and not on numbers.
_OF_SHAPES = frozenset(
    {f"{name}_like" for name in ("zeros", "ones", "full", "empty")}
    | {f"new_{name}" for name in ("zeros", "ones", "full", "empty")}
)
#: Of operators that look up, the argument with the places, which must be numbers of rows.
_PLACES = {"embedding": "indices", "embedding_bag": "indices", "one_hot": "x"}
_ANY = constant(0.0)  # stands for any value that depends on the inputs


@dataclass(frozen=True, eq=False)
class TorchCut:
    """A module that is cut.

    graph: of what is encrypted.
    parts: what the client computes.
    ranges: as of jali.compiler.frontends.onnx_cut.Cut.
    """

    graph: Graph
    parts: Parts
    ranges: tuple[Ends, ...] | None


def cut_of(torch: Any, exported: Any, module: Any) -> Callable[[], TorchCut] | None:
    """A function that cuts an exported module, or raises Unsupported; None if the client would have
    nothing to compute, or the server.

    The exported graph is written in other operators that compute the same, see
    jali.compiler.frontends.torch_rewrites.
    """
    join_bags(exported)
    cutter = _Cutter(torch, exported, module)
    cutter.forward()
    if cutter.with_products():
        cutter = _Cutter(torch, exported, module)
        cutter.forward()
    return cutter.cut()


class _Cutter(Cutter):
    """An exported module that is being cut. Values are named as the nodes of the exported graph.

    known: tensors that depend on no input, by their nodes.
    light: values that whole numbers and flags alone decide, with none of the model's weights.
    reasons: why a client does not compute what it could be given, by the names of nodes.
    """

    def __init__(self, torch: Any, exported: Any, module: Any) -> None:
        super().__init__()
        self.torch, self.exported, self.module = torch, exported, module
        self.known: dict[Any, Any] = {}
        self.by_name: dict[str, Any] = {}
        self.light: set[str] = set()
        self.reasons: dict[str, str] = {}
        self.arguments: list[Clear] = []
        self.ports: list[str] = []
        self.kept: list[Any] = []
        self.gives_values = True  # whether every result is a value of the graph
        self.leaves = leaves_of(module)

    # --- what is known, and what the client could compute -----------------------------------------

    def forward(self) -> None:
        """Finds constants and clear values."""
        inputs = set(self.exported.graph_signature.user_inputs)
        self.by_name = {node.name: node for node in self.exported.graph.nodes}
        for node in self.exported.graph.nodes:
            if node.op == "placeholder" and node.name in inputs:
                self._port(node)
            elif node.op == "placeholder":
                self.known[node] = constant_of(self.exported, node)
            elif node.op == "get_attr":
                self.known[node] = getattr(self.exported.graph_module, node.target)
            elif node.op == "call_function" and not name_of(node.target).startswith("_assert"):
                self._operator(node)
        results = results_of(self.exported)
        self.gives_values = all(map(is_node, results))
        self.outputs = [x.name for x in results if is_node(x)]
        self.kept = [n for n in self.nodes if not any(x in self.clear for x in self.given(n))]

    def _port(self, node: Any) -> None:
        like = self._like(node)
        assert like is not None
        made = argument(node.name, like.shape[1:], like.dtype)
        if made.kind != "real":
            self.light.add(node.name)
            made = replace(made, source=_bounded(made.source, node))
        self.clear[node.name] = made
        self.arguments.append(made)
        self.ports.append(node.name)

    def _operator(self, node: Any) -> None:
        name = name_of(node.target)
        if all(source in self.known for source in node.all_input_nodes):
            args, kwargs = (mapped(v, self.known.__getitem__) for v in (node.args, node.kwargs))
            self.known[node] = node.target(*args, **kwargs)
            return
        if name in _OF_SHAPES:
            self.known[node] = self._of_shape(node)
            return
        if node.target is operator.getitem:
            return  # a name of one of several results
        self.nodes.append(node)
        if name in OPERATIONS and all(n in self.clear for n in self.varying(node)):
            try:
                self._translate(node, name)
            except Unsupported as error:
                self.reasons[node.name] = str(error)

    def _of_shape(self, node: Any) -> Any:
        """The tensor that an operator makes of a shape."""
        made = node.meta["val"]
        shape, device = node.args[0].meta["val"].shape, made.device
        shaped = self.torch.zeros(shape, dtype=made.dtype, device=device)
        rest, named = (mapped(v, self.known.__getitem__) for v in (node.args[1:], node.kwargs))
        args, kwargs = (shaped, *rest), {**named, "dtype": made.dtype}
        return node.target(*args, **kwargs)

    def _translate(self, node: Any, name: str) -> None:
        """Adds an operator's results to the clear values. Raises Unsupported."""
        results = self._results(node, name, self.clear)
        given = self.given(node)
        places = {n: self._place(n) for n in given}
        if any(results[k] is None for k in places.values()):
            raise Unsupported("a result that no client computes")
        self.clear |= {n: results[k] for n, k in places.items()}
        sizes = [self._float_size(source) for source in node.all_input_nodes]
        if all(n in self.light for n in self.varying(node)) and max(sizes) <= 1:
            self.light |= set(given)

    def _float_size(self, source: Any) -> int:
        """How many real numbers a node is, if it is one of the model's: 1 if all are equal. 0 if it
        depends on the inputs, or has whole numbers or flags."""
        value = self.known.get(source)
        if value is None or not value.is_floating_point() or not value.numel():
            return 0
        return 1 if bool((value == value.flatten()[0]).all()) else value.numel()

    def _place(self, name: str) -> int:
        """Which of its operator's results a value is."""
        node = self.by_name[name]
        return int(node.args[1]) if node.target is operator.getitem else 0

    def _results(self, node: Any, name: str, values: Mapping[str, Any]) -> list[Any]:
        """The results of an operator, of the values of what it takes."""
        given = node.meta.get("val")
        several = isinstance(given, (tuple, list))
        like = [self._like_of(x) for x in (given if several else [given])]
        if like[0] is None:
            raise Unsupported("a result that is complex, or whose shape depends on numbers")
        bound = self._bound(node, name, values)
        if "like" in takes_of(OPERATIONS[name]):
            bound["like"] = like[0]
        return translated(name, bound, like)

    def _bound(self, node: Any, name: str, values: Mapping[str, Any] | None) -> dict[str, Any]:
        """The arguments of an operator: clear values, and arrays of the model.

        values: the clear values, by the names of nodes; None puts _ANY in their place.
        """

        def loaded(source: Any) -> Any:
            if source in self.known:
                return self._array(self.known[source])
            return _ANY if values is None else values[source.name]

        takes, found = takes_of(OPERATIONS[name]), dict[str, Any]()
        for key, value, other in given_arguments(node.target, node.args, node.kwargs):
            if isinstance(value, self.torch.dtype) or key == "dtype":
                continue  # the result's type is known from the graph
            if key in takes:
                found[key] = mapped(value, loaded)
            elif other:
                raise Unsupported(f"{name} with {key}={value}")
        return found

    def _array(self, tensor: Any) -> Any:
        if not isinstance(tensor, self.torch.Tensor):
            return tensor
        plain = tensor.detach().cpu()
        return (plain.double() if plain.is_floating_point() else plain).numpy()

    def _like(self, node: Any) -> Like | None:
        return self._like_of(node.meta.get("val"))

    def _first_like(self, node: Any) -> Like | None:
        given = node.meta.get("val")
        return self._like_of(given[0] if isinstance(given, (tuple, list)) else given)

    def _like_of(self, value: Any) -> Like | None:
        if not isinstance(value, self.torch.Tensor) or value.dtype.is_complex:
            return None
        if not all(isinstance(n, int) for n in value.shape):
            return None  # it depends on numbers
        name = str(value.dtype).removeprefix("torch.")
        dtype = np.float64 if value.dtype.is_floating_point else np.dtype(name)
        return Like(tuple(int(n) for n in value.shape), dtype)

    def with_products(self) -> bool:
        """Writes the server's divisions and look-ups by what the client knows as products, and
        tells whether there were any."""

        def constant_array(node: Any) -> Any:
            return self._array(self.known[node]) if node in self.known else None

        args = (self.torch, self.exported, self.kept, self.light, constant_array)
        return with_products(*args)

    # --- what operations are, for Cutter ----------------------------------------------------------

    def taken(self, node: Any) -> list[str]:
        """All that a node takes."""
        return [source.name for source in node.all_input_nodes]

    def given(self, node: Any) -> list[str]:
        """A node's results: of several, those that are taken out of them."""
        if not isinstance(node.meta.get("val"), (tuple, list)):
            return [node.name]
        return [user.name for user in node.users if user.target is operator.getitem]

    def is_known(self, name: str) -> bool:
        """Whether it depends on no input."""
        return self.by_name[name] in self.known

    def starts(self, node: Any) -> bool:
        """Whether the client computes a node before it encrypts: whole numbers and flags decide it
        alone, or it compares, or looks up by numbers that are no constants."""
        name, varying = name_of(node.target), self.varying(node)
        if all(self.clear[n].kind != "real" or n in self.light for n in varying):
            return True
        if name in ("where", "masked_fill", *LOOKING_UP):
            return self.is_head(node)
        return name in COMPARING

    def goes_through(self, node: Any) -> bool:
        """Whether a node moves numbers or compares them, makes fewer numbers, or is a sum or a
        product of several values or with a single number of the model."""
        name = name_of(node.target)
        sizes = [self._float_size(source) for source in node.all_input_nodes]
        merges = len(set(self.varying(node))) > 1 or max(sizes) <= 1
        return name in MOVES or (name in MERGES and merges)

    def may_end(self, node: Any) -> bool:
        """Whether a client can compute the operator with these arguments."""
        name = name_of(node.target)
        try:
            return name in OPERATIONS and self._bound(node, name, None) is not None
        except Unsupported:
            return False

    def is_head(self, node: Any) -> bool:
        """Whether a server does not compute it, or approximates it."""
        name = name_of(node.target)
        return is_head(name, self._bound(node, name, None), self._first_like(node))

    # --- the parts --------------------------------------------------------------------------------

    def cut(self) -> Callable[[], TorchCut] | None:
        """See cut_of."""
        self.connect()
        before, after = self.before(), self.after(self.kept)
        ends = self.ends(after)
        middle = self.middle(ends, before, after)
        of_numbers = all(x.kind == "real" for x in self.arguments)
        if not middle or not (before or after or not of_numbers) or not self.gives_values:
            return None
        return lambda: self._cut(before, after, ends, middle)

    def _cut(
        self,
        before: Mapping[str, Any],
        after: Sequence[Any],
        ends: Sequence[str],
        middle: Sequence[Any],
    ) -> TorchCut:
        for name in ends:
            if name in self.clear and self.clear[name].kind != "real":
                raise Unsupported(
                    f"the result {name} of the module depends on its inputs alone: leave it out, the client has it"
                )
        names, steps = self.ports, None
        if before or any(x.kind != "real" for x in self.arguments):
            taken = {name for node in middle for name in self.taken(node)} | set(ends)
            names = [name for name in [*self.ports, *before] if name in taken]
            steps = steps_of(self.arguments, [_encrypted(self.clear[name]) for name in names])
        ranges = None if steps is None else ranges_of(steps)
        _check_far(names, ranges)
        ports = {self.by_name[n]: self._port_of(n) for n in names}
        reader = Reader(self.torch, self.exported, self.module, self.known, self.reasons)
        wanted = set(middle)
        self._check_whole(middle)
        nodes = [n for n in self.exported.graph.nodes if n in wanted or _picks(n, wanted)]
        results = [self.by_name[n] for n in (ends if after else self.outputs)]
        graph = reader.part(ports, nodes, results)
        return TorchCut(graph, Parts(steps, self._after(after, ends, graph)), ranges)

    def _check_whole(self, middle: Sequence[Any]) -> None:
        """Raises Unsupported if a server would compute with whole numbers as with real ones, which
        do not wrap around."""
        for node in middle:
            like = self._first_like(node)
            if like is not None and kind_of(like.dtype) == "whole" and node.name in self.reasons:
                label = label_of(node, self.leaves)
                raise Unsupported(f"{label}: {self.reasons[node.name]}")

    def _port_of(self, name: str) -> Port:
        value = self.clear[name]
        kind = "mask" if isinstance(value, Mask) else value.kind
        return Port(name, value.shape, "real" if kind == "whole" else kind)

    def _after(self, after: Sequence[Any], ends: Sequence[str], graph: Graph) -> Any:
        """What the client computes of the decrypted arrays; None for nothing."""
        if not after:
            return None
        values: dict[str, Any] = {}
        taken = []
        for name, output in zip(ends, graph.outputs, strict=True):
            port = argument(name, graph[output].shape, np.float64)
            like = self._like(self.by_name[name])
            taken.append(port)
            values[name] = port if like is None else reshaped(port, like.shape)
        for node in after:
            label = label_of(node, self.leaves)
            try:
                results = self._results(node, name_of(node.target), values)
            except Unsupported as error:
                raise Unsupported(f"{label}: {error}") from None
            values |= {n: results[self._place(n)] for n in self.given(node)}
        outputs = [values[name] for name in self.outputs]
        if any(isinstance(x, Mask) or x is None for x in outputs):
            raise Unsupported(f"a result of the module: {MISPLACED}")
        return steps_of(taken, outputs)


def _picks(node: Any, wanted: set[Any]) -> bool:
    """Whether a node picks one of the results of a wanted operator."""
    return node.target is operator.getitem and node.args[0] in wanted


def _bounded(source: Any, node: Any) -> Argument:
    """An argument of the client, with the least and the largest number with which all operators
    that look up by it have a row."""
    found: Argument = source
    for user in node.users:
        name = name_of(user.target)
        if name not in _PLACES:
            continue
        bound = {
            key: value for key, value, _ in given_arguments(user.target, user.args, user.kwargs)
        }
        if bound.get(_PLACES[name]) is node:
            rows = (
                bound["num_classes"] if name == "one_hot" else bound["weight"].meta["val"].shape[0]
            )
            found = replace(found, low=max(found.low, 0), high=min(found.high, int(rows) - 1))
    return found


def _encrypted(value: Any) -> Clear:
    """What is encrypted of a clear value: of a mask, its flags."""
    found: Clear = value.keep if isinstance(value, Mask) else value
    return found


def _check_far(names: Sequence[str], ranges: Any) -> None:
    """Raises Unsupported if numbers would be encrypted that stand for minus infinity."""
    for name, ends in zip(names, ranges or (), strict=False):
        if ends is not None and np.any(ends[0] <= -1e30):
            raise Unsupported(f"{name}: {MISPLACED}")
