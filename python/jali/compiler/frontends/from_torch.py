"""Modules of PyTorch, by torch.export (the extra jali[torch]). PyTorch is imported by the functions
of this file alone.

The module is exported for a batch of one example, and its graph is read with that axis. So the
program computes for every example what the module computes for it alone; ``_compare`` holds it to
what the module gives for a batch.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import operator
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jali._core import checks, packages
from jali._core.console import one_text
from jali.compiler.frontends.layers import MISPLACED, Masked
from jali.compiler.frontends.replacements import OTHER
from jali.compiler.frontends.torch_layers import LAYERS
from jali.compiler.frontends.torch_ops import COMPUTING, Value
from jali.compiler.frontends.torch_recurrent import RECURRENT
from jali.compiler.frontends.torch_refusals import reason
from jali.compiler.frontends.torch_shapes import MOVING
from jali.compiler.frontends.tracing import Builder, Traced
from jali.compiler.frontends.unbatched import unbatched
from jali.compiler.ir.execute import execute
from jali.compiler.ir.graph import Array, Graph
from jali.compiler.ir.operation import Input
from jali.errors import InvalidArgument, Unsupported

__all__ = ["trace_module"]

_OPERATORS = {**COMPUTING, **LAYERS, **MOVING, **RECURRENT}
#: Arguments that say where and how numbers are kept.
_STORAGE = frozenset(
    {"layout", "device", "pin_memory", "memory_format", "non_blocking", "copy", "implicit"}
    | {"cudnn_enable", "cudnn_enabled", "momentum", "generator"}
)
_TAKE_MASKS = ("softmax", "_softmax")
_ROUNDS = 4  # operators are decomposed at most so many times
_TOLERANCE = {"float64": 1e-6, "float32": 1e-3}  # of the largest number; 0.1 for other types


def trace_module(module: Any, example: tuple[Any, ...]) -> Graph:
    """The graph of a torch.nn.Module for examples like these: batches, of any size, as the module
    takes them.

    A module in training mode is compiled as in eval mode; a warning says so if it has layers that
    differ. The module itself is not changed.

    Raises Unsupported, which names the part of the module, for what cannot be compiled.
    """
    try:
        import torch
    except ImportError:
        raise Unsupported(
            f"{one_text(type(module).__name__)} needs the package torch, from which it comes: {packages.install('torch')}"
        ) from None
    module = getattr(module, "_orig_mod", module)  # what torch.compile wraps
    if not isinstance(module, torch.nn.Module) or isinstance(module, torch.jit.ScriptModule):
        raise Unsupported(
            f"{one_text(type(module).__name__)} cannot be compiled: give the torch.nn.Module from which it was made"
        )
    _check_parameters(torch, module)
    tensors = [_tensor(torch, module, k, x) for k, x in enumerate(example)]
    if len({len(x) for x in tensors}) > 1:
        raise InvalidArgument("give every input of the module the same number of examples")
    with _evaluating(torch, module), torch.no_grad():
        _check_call(module, tensors)
        exported = _exported(torch, module, tuple(x[:1] for x in tensors))
        graph = _Reader(torch, exported, module).graph()
        _compare(torch, module, graph, tensors)
    return graph


# --- what goes in
# -----------------------------------------------------------------------------------


def _check_parameters(torch: Any, module: Any) -> None:
    for kind, named in (
        ("parameter", module.named_parameters()),
        ("buffer", module.named_buffers()),
    ):
        for name, tensor in named:
            if tensor.is_complex():
                raise Unsupported(
                    f"the {kind} {name} is complex: keep real and imaginary parts as two of them"
                )
            if not tensor.is_floating_point():
                continue
            # A buffer may be a mask, which holds minus infinity.
            wrong = torch.isnan(tensor) if kind == "buffer" else ~torch.isfinite(tensor)
            if bool(wrong.any()):
                raise InvalidArgument(
                    f"the {kind} {name} holds NaN or infinity in {int(wrong.sum())} of its {tensor.numel()} numbers: train the "
                    "model again, or replace them"
                )


def _check_call(module: Any, tensors: Sequence[Any]) -> None:
    try:
        module(*(x[:1] for x in tensors))
    except Exception as error:  # whatever the module raises
        said = str(error).strip().splitlines()
        shapes = ", ".join(str(tuple(x[:1].shape)) for x in tensors)
        raise InvalidArgument(
            f"{type(module).__name__}: the module does not take arrays of the shapes {shapes}. Give a batch of examples as it takes "
            "them, with the batch as the first axis, and a tuple for several arguments. It says: "
            f"{said[0] if said else type(error).__name__}"
        ) from error


def _tensor(torch: Any, module: Any, place: int, value: Any) -> Any:
    """An example as a tensor of the module's type, on its device."""
    tensor = (
        value.detach() if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value))
    )
    if tensor.is_complex():
        raise Unsupported(
            f"input {place} of the module is complex: give real and imaginary parts as two numbers"
        )
    if not tensor.is_floating_point():
        raise Unsupported(
            f"input {place} of the module holds numbers of the type {tensor.dtype}. If they are indices of words, let the client look up "
            "the embedding, and compile the rest of the module, which takes the vectors; if they are pixels, give them as floats"
        )
    if not tensor.ndim:
        raise InvalidArgument(
            f"input {place} of the module has no axes: the first axis of an example is the batch"
        )
    if not len(tensor):
        raise InvalidArgument(f"input {place} of the module holds no example")
    if not bool(torch.isfinite(tensor).all()):
        raise InvalidArgument(
            f"input {place} of the module holds NaN or infinity: replace these numbers"
        )
    like = next((p for p in module.parameters() if p.is_floating_point()), tensor)
    return tensor.to(dtype=like.dtype, device=like.device)


@contextlib.contextmanager
def _evaluating(torch: Any, module: Any) -> Iterator[None]:
    """The module in eval mode, and afterwards as it was."""
    before = {part: part.training for part in module.modules()}
    differing = (torch.nn.modules.batchnorm._NormBase, torch.nn.modules.dropout._DropoutNd)
    names = [
        n for n, part in module.named_modules() if part.training and isinstance(part, differing)
    ]
    if names:
        warnings.warn(
            f"the module is in training mode, in which {', '.join(names[:3])}{' and others' if len(names) > 3 else ''} compute "
            "something else than in use. It is compiled as in eval mode: call eval() on it to say so",
            UserWarning,
            stacklevel=5,
        )
    module.eval()
    try:
        yield
    finally:
        for part, training in before.items():
            part.training = training


def _exported(torch: Any, module: Any, tensors: tuple[Any, ...]) -> Any:
    """The exported program, without operators that can be taken apart into those that there are."""
    name = type(module).__name__
    try:
        with warnings.catch_warnings():
            # Torch warns of its own layers, and of its own use of what it deprecates.
            warnings.filterwarnings("ignore", "The tensor attributes? .*_flat_weights", UserWarning)
            warnings.filterwarnings("ignore", ".*treespec, LeafSpec", FutureWarning)
            exported = torch.export.export(module, tensors).run_decompositions({})
            for _ in range(_ROUNDS):
                names = {n.target: _name(n.target) for n in _depending(exported)}
                unknown = [
                    t for t, known in names.items() if known not in _OPERATORS and not reason(known)
                ]
                table = torch.export.default_decompositions() if unknown else {}
                apart = {target: table[target] for target in unknown if target in table}
                if not apart:
                    break
                exported = exported.run_decompositions(apart)
    except Exception as error:  # torch raises many kinds, also for mistakes in the module
        said = str(error).strip().splitlines()
        raise Unsupported(
            f"{name}: torch.export cannot trace it. A module has fixed shapes and no condition that depends on the numbers in its "
            f"input: write such a condition as arithmetic. torch says: {said[0] if said else type(error).__name__}"
        ) from error
    return exported


def _name(target: Any) -> str:
    """The operator's name without its namespace and overload: relu of aten.relu.default."""
    packet = getattr(target, "_overloadpacket", target)
    return str(getattr(packet, "__name__", packet))


def _depending(exported: Any) -> list[Any]:
    """The calls that depend on the inputs."""
    inputs = set(exported.graph_signature.user_inputs)
    found: dict[Any, bool] = {}
    for node in exported.graph.nodes:
        found[node] = node.name in inputs or any(found[n] for n in node.all_input_nodes)
    return [n for n, depends in found.items() if depends and n.op == "call_function"]


# --- the graph
# --------------------------------------------------------------------------------------


class _Reader:
    """Walks an exported graph. Values are traced arrays where they depend on the inputs, and
    tensors elsewhere."""

    def __init__(self, torch: Any, exported: Any, module: Any) -> None:
        self._torch, self._exported, self._builder = torch, exported, Builder()
        self._leaves = {name for name, part in module.named_modules() if not any(part.children())}
        self._values: dict[Any, Any] = {}

    def graph(self) -> Graph:
        """The traced graph."""
        labels: dict[str, str] = {}
        for node in self._exported.graph.nodes:
            self._builder.label = None
            if node.op == "placeholder":
                self._values[node] = self._placeholder(node)
            elif node.op == "call_function":
                self._values[node] = self._call(node)
            elif node.op == "get_attr":
                self._values[node] = getattr(self._exported.graph_module, node.target)
            for made in itertools.islice(self._builder.nodes, len(labels), None):
                labels[made] = self._builder.label or made
        self._builder.label = None
        return unbatched(self._builder.graph([self._output(x) for x in self._results()]), labels)

    def _results(self) -> list[Any]:
        """The values of the outputs, without those that are None. Raises Unsupported if the module
        changes its state."""
        (node,) = (n for n in self._exported.graph.nodes if n.op == "output")
        found = []
        for spec, value in zip(
            self._exported.graph_signature.output_specs, node.args[0], strict=True
        ):
            if spec.kind.name != "USER_OUTPUT":
                raise Unsupported(
                    f"the module changes {spec.target or 'its input'} when it is called: a program has no state. Pass what changes as "
                    "an input, and return it"
                )
            if value is not None:
                found.append(self._values.get(value, value) if hasattr(value, "op") else value)
        return found

    def _output(self, value: Any) -> Any:
        """The node of an output, without the axis of the batch."""
        if isinstance(value, Masked):
            raise Unsupported(f"an output of the module: {MISPLACED}")
        if not isinstance(value, Traced):
            raise InvalidArgument(
                "an output of the module does not depend on its inputs: leave it out"
            )
        batched = value.ndim and value.shape[0] == 1
        return value.reshape(value.shape[1:]).node if batched else value.node

    def _placeholder(self, node: Any) -> Any:
        signature = self._exported.graph_signature
        if node.name in signature.user_inputs:
            shape = tuple(int(n) for n in node.meta["val"].shape)
            made = self._builder.add(node.name, Input(shape=shape[1:]), [])
            return Traced(self._builder, made).reshape(shape)
        for table in (signature.inputs_to_parameters, signature.inputs_to_buffers):
            if node.name in table:
                target = table[node.name]
                kept = self._exported.state_dict
                return (kept if target in kept else self._exported.constants)[target].detach()
        return self._exported.constants[signature.inputs_to_lifted_tensor_constants[node.name]]

    def _call(self, node: Any) -> Any:
        name = _name(node.target)
        args, kwargs = self._loaded(node.args), self._loaded(node.kwargs)
        if node.target is operator.getitem:
            whole, place = args
            several = isinstance(whole, (tuple, list))
            part = whole[place] if several else whole if place == 0 else None
            if part is None and node.users:
                raise Unsupported(
                    f"{node.args[0].name}: what it gives beside its numbers, such as the places of the largest numbers, is not computed: use its first result alone"
                )
            return part
        if name.startswith("_assert"):
            return None
        if not _any_traced((args, kwargs)):
            return node.target(*args, **kwargs)
        self._builder.label = label = self._label(node, name)
        if name not in _OPERATORS:
            raise Unsupported(f"{label}: {name} cannot be compiled: {reason(name) or OTHER}")
        try:
            result = _OPERATORS[name](**self._bound(node.target, name, args, kwargs))
            return self._clear_as_tensors(result, node.meta.get("val"))
        except (Unsupported, InvalidArgument) as error:
            text = str(error)
            raise type(error)(text if text.startswith(label) else f"{label}: {text}") from None

    def _clear_as_tensors(self, result: Any, like: Any) -> Any:
        """What an operator gave, with tensors in the place of NumPy's arrays: 0 x is in the clear,
        and PyTorch computes with it further.

        like: what the module has there.
        """
        if isinstance(result, np.ndarray):
            tensor = self._torch.from_numpy(np.ascontiguousarray(result))
            return tensor if like is None else tensor.to(like.dtype)
        if isinstance(result, (tuple, list)):
            each = like if isinstance(like, (tuple, list)) else [like] * len(result)
            return type(result)(map(self._clear_as_tensors, result, each))
        return result

    def _loaded(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return (
                type(value)(map(self._loaded, value))
                if type(value) is tuple
                else [*map(self._loaded, value)]
            )
        if isinstance(value, dict):
            return {k: self._loaded(v) for k, v in value.items()}
        return self._values[value] if hasattr(value, "op") and hasattr(value, "graph") else value

    def _label(self, node: Any, name: str) -> str:
        """The path of the module that calls the operator, and the operator's name unless the module
        has no parts."""
        stack = list((node.meta.get("nn_module_stack") or {"": ("", None)}).values())
        path = str(stack[-1][0]).split("@")[0]
        if path in self._leaves and path:
            return path
        return f"{path}.{name}" if path else name

    def _bound(
        self, target: Any, name: str, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> dict[str, Value]:
        """The arguments by PyTorch's names, in NumPy. Raises Unsupported for those that an operator
        does not have."""
        declared = target._schema.arguments
        given = {a.name: value for a, value in zip(declared, args, strict=False)} | kwargs
        takes = inspect.signature(_OPERATORS[name]).parameters
        found: dict[str, Value] = {}
        for argument in declared:
            if argument.name not in given or argument.name in _STORAGE:
                continue
            value, key = given[argument.name], argument.name
            if isinstance(value, self._torch.dtype):
                if not value.is_floating_point:
                    raise Unsupported(
                        f"a conversion to {value}: programs compute with real numbers, leave it out"
                    )
                continue
            key = "x" if key in ("self", "input") else key
            if key in takes:
                found[key] = value if name in _TAKE_MASKS else self._numbers(value)
            elif value is not None and value != argument.default_value and key != "dtype":
                raise Unsupported(f"{name} with {key}={checks.shown(value)}: leave {key} out")
        return found

    def _numbers(self, value: Any) -> Value:
        """Tensors as arrays."""
        if isinstance(value, self._torch.Tensor):
            tensor = value.detach().cpu()
            if tensor.is_floating_point():  # a copy: the module may be trained further
                return tensor.to(self._torch.float64, copy=True).numpy()
            return tensor.numpy()
        if isinstance(value, Masked):
            raise Unsupported(MISPLACED)
        return [self._numbers(v) for v in value] if isinstance(value, (list, tuple)) else value


def _any_traced(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(map(_any_traced, value))
    if isinstance(value, dict):
        return any(map(_any_traced, value.values()))
    return isinstance(value, (Traced, Masked))


# --- the check
# --------------------------------------------------------------------------------------


def _compare(torch: Any, module: Any, graph: Graph, tensors: Sequence[Any]) -> None:
    """Raises Unsupported if the graph does not compute what the module gives for a batch of the
    example."""
    if len(tensors[0]) == 1:  # a second example, of the same numbers in another order
        tensors = [torch.cat([x, x.flatten().flip(0).reshape(x.shape)]) for x in tensors]
    try:
        results = module(*tensors)
    except Exception:  # a module of a fixed batch
        tensors = [x[:1] for x in tensors]
        results = module(*tensors)
    leaves = [x for x in torch.utils._pytree.tree_leaves(results) if isinstance(x, torch.Tensor)]
    arrays: list[Array] = [x.double().cpu().numpy() for x in tensors]
    kind = str(tensors[0].dtype).split(".")[-1]
    for name, got, wanted in zip(graph.outputs, execute(graph, *arrays), leaves, strict=True):
        want = wanted.double().cpu().numpy()
        off = min(_distance(got, want, axis) for axis in range(max(1, want.ndim)))
        if off > _TOLERANCE.get(kind, 0.1) * max(
            np.abs(want[np.isfinite(want)]).max(initial=0.0), 1e-30
        ):
            raise Unsupported(
                f"{name}: the module gives other numbers for a batch than for each of its examples alone: it mixes the examples, for example by "
                "a mean over the batch, or is random. Write it so that an example's result depends on that example"
            )


def _distance(got: Array, want: Array, axis: int) -> float:
    """How far numbers are apart if this axis of what is wanted is the batch; infinity if it cannot
    be."""
    if want.size != got.size or (axis and want.shape[axis] != len(got)):
        return np.inf
    want = (np.moveaxis(want, axis, 0) if axis else want).reshape(got.shape)
    seen = np.isfinite(want) & np.isfinite(got)  # calibration tells of others
    return float(np.abs(got - want)[seen].max(initial=0.0))
