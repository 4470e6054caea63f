"""Modules of PyTorch, by torch.export (the extra jali[torch]). PyTorch is imported by the functions
of this file alone.

The module is exported for a batch of one example, and its graph is read with that axis. So the
program computes for every example what the module computes for it alone; ``_compare`` holds it to
what the module gives for a batch.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jali._core import packages
from jali._core.console import one_text
from jali.compiler.frontends.client_ranges import Ends
from jali.compiler.frontends.replacements import KEPT
from jali.compiler.frontends.torch_arguments import name_of
from jali.compiler.frontends.torch_client import OPERATIONS
from jali.compiler.frontends.torch_cut import cut_of
from jali.compiler.frontends.torch_reader import OPERATORS, Reader
from jali.compiler.frontends.torch_refusals import reason
from jali.compiler.ir.execute import execute
from jali.compiler.ir.graph import Array, Graph
from jali.errors import InvalidArgument, Unsupported
from jali.program.clear.parts import Parts

__all__ = ["trace_in_parts", "trace_module"]

_ROUNDS = 4  # operators are decomposed at most so many times
_TOLERANCE = {"float64": 1e-6, "float32": 1e-3}  # of the largest number; 0.1 for other types
_TRIALS = 4  # computations of whole numbers from decrypted numbers that are off by the tolerance


def trace_module(module: Any, example: tuple[Any, ...]) -> Graph:
    """The graph of a torch.nn.Module for examples like these: batches, of any size, as the module
    takes them.

    A module in training mode is compiled as in eval mode; a warning says so if it has layers that
    differ. The module itself is not changed.

    Raises Unsupported, which names the part of the module, for what cannot be compiled.
    """
    with _exporting(module, example) as opened:
        _refuse_whole_numbers(opened.tensors)
        return _whole(opened, opened.exported())


def trace_in_parts(
    module: Any, example: tuple[Any, ...], client_side: bool
) -> tuple[Graph, Parts | None, tuple[Ends, ...] | None]:
    """The graph of what is encrypted of a module, what its client computes, and the ranges of what
    it encrypts, as far as that says them; None for nothing.

    client_side: whether the client may compute a part.
    """
    with _exporting(module, example) as opened:
        exported = opened.exported()
        cut = cut_of(opened.torch, exported, opened.module)
        if not client_side:
            try:
                _refuse_whole_numbers(opened.tensors)
                return _whole(opened, exported), None, None
            except Unsupported as error:
                if cut is None:
                    raise
                raise Unsupported(f"{error}. {KEPT}") from None
        if cut is None:
            _refuse_whole_numbers(opened.tensors)
            return _whole(opened, exported), None, None
        try:
            found = cut()
            opened.check(found.graph, found.parts)
        except Unsupported:
            if any(not x.is_floating_point() for x in opened.tensors):
                raise
            with contextlib.suppress(Unsupported):
                return _whole(opened, exported), None, None
            raise
        return found.graph, found.parts, found.ranges


@dataclass(frozen=True)
class _Opened:
    """A module that is being traced, and its examples as tensors."""

    torch: Any
    module: Any
    tensors: Sequence[Any]

    def exported(self) -> Any:
        """The exported program, for one example."""
        return _exported(self.torch, self.module, tuple(x[:1] for x in self.tensors))

    def check(self, graph: Graph, parts: Parts) -> None:
        """Raises Unsupported if a graph and its client do not compute what the module does."""
        run = _parted(graph, parts, _tolerance(self.module))
        names = (
            graph.outputs
            if parts.after is None
            else [type(self.module).__name__] * len(parts.after.outputs)
        )
        _compare(self.torch, self.module, run, names, self.tensors)


@contextlib.contextmanager
def _exporting(module: Any, example: tuple[Any, ...]) -> Iterator[_Opened]:
    """The module in eval mode, without gradients, and its examples as tensors. Raises Unsupported
    and InvalidArgument for what is no module, and for examples that it does not take."""
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
        _check_call(torch, module, tensors)
        yield _Opened(torch, module, tensors)


def _whole(opened: _Opened, exported: Any) -> Graph:
    """The graph of a whole module."""
    graph = Reader(opened.torch, exported, opened.module).graph()
    opened.check(graph, Parts(None, None))
    return graph


# --- what goes in ---------------------------------------------------------------------------------


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


def _check_call(torch: Any, module: Any, tensors: Sequence[Any]) -> None:
    one = [x[:1] for x in tensors]
    try:
        module(*one)
    except Exception as error:  # whatever the module raises
        if _takes(module, [x if x.is_floating_point() else x.to(torch.float32) for x in one]):
            _refuse_whole_numbers(tensors)
        said = str(error).strip().splitlines()
        shapes = ", ".join(str(tuple(x.shape)) for x in one)
        raise InvalidArgument(
            f"{type(module).__name__}: the module does not take arrays of the shapes {shapes}. Give a batch of examples as it takes "
            "them, with the batch as the first axis, and a tuple for several arguments. It says: "
            f"{said[0] if said else type(error).__name__}"
        ) from error


def _takes(module: Any, tensors: Sequence[Any]) -> bool:
    """Whether a module computes something of tensors."""
    try:
        module(*tensors)
    except Exception:  # whatever the module raises
        return False
    return True


def _tensor(torch: Any, module: Any, place: int, value: Any) -> Any:
    """An example as a tensor, real numbers of the module's type, on its device."""
    tensor = (
        value.detach() if isinstance(value, torch.Tensor) else torch.as_tensor(np.asarray(value))
    )
    if tensor.is_complex():
        raise Unsupported(
            f"input {place} of the module is complex: give real and imaginary parts as two numbers"
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
    dtype = like.dtype if tensor.is_floating_point() else tensor.dtype
    return tensor.to(dtype=dtype, device=like.device)


def _refuse_whole_numbers(tensors: Sequence[Any]) -> None:
    """Raises Unsupported for inputs that a server cannot take."""
    for place, tensor in enumerate(tensors):
        if not tensor.is_floating_point():
            raise Unsupported(
                f"input {place} of the module holds numbers of the type {tensor.dtype}, by which no server looks up or counts. If they are indices "
                "of words, let the client look up the embedding, as it does for jali.compile if layers follow for the server; if they are pixels, give them as floats"
            )


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
            stacklevel=7,
        )
    module.eval()
    try:
        yield
    finally:
        for part, training in before.items():
            part.training = training


def _exported(torch: Any, module: Any, tensors: tuple[Any, ...]) -> Any:
    """The exported program, without operators that can be taken apart into those that there are."""
    try:
        with warnings.catch_warnings():
            # Torch warns of its own layers, and of its own use of what it deprecates.
            warnings.filterwarnings("ignore", "The tensor attributes? .*_flat_weights", UserWarning)
            warnings.filterwarnings("ignore", ".*treespec, LeafSpec", FutureWarning)
            exported = torch.export.export(module, tensors).run_decompositions({})
            for _ in range(_ROUNDS):
                names = {n.target: name_of(n.target) for n in _depending(exported)}
                unknown = [
                    target
                    for target, name in names.items()
                    if name not in OPERATORS and not (_stays(name) or reason(name))
                ]
                norms = {torch.ops.aten.linalg_vector_norm.default: _vector_norm}
                table = {**norms, **torch.export.default_decompositions()} if unknown else {}
                apart = {target: table[target] for target in unknown if target in table}
                if not apart:
                    break
                exported = exported.run_decompositions(apart)
    except Exception as error:  # torch raises many kinds, also for mistakes in the module
        said = str(error).strip().splitlines()
        raise Unsupported(
            f"{type(module).__name__}: torch.export cannot trace it. A module has fixed shapes and no condition that depends on the numbers in its "
            f"input: write such a condition as arithmetic. torch says: {said[0] if said else type(error).__name__}"
        ) from error
    return exported


def _stays(name: str) -> bool:
    """Whether a client computes an operator as it is. Methods of Python, such as __and__, are taken
    apart to the operators that they are."""
    return name in OPERATIONS and not name.startswith("__")


def _vector_norm(
    x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """torch.linalg.vector_norm by other operators, where PyTorch itself does not take it apart."""
    along = list(range(x.dim())) if dim is None else dim
    if ord == 2:
        return (x * x).sum(along, keepdim).sqrt()
    if ord == 1:
        return x.abs().sum(along, keepdim)
    if ord == math.inf:
        return x.abs().amax(along, keepdim)
    raise Unsupported(f"norms are those of order 1, 2 and infinity, not {ord:g}")


def _depending(exported: Any) -> list[Any]:
    """The calls that depend on the inputs."""
    inputs = set(exported.graph_signature.user_inputs)
    found: dict[Any, bool] = {}
    for node in exported.graph.nodes:
        found[node] = node.name in inputs or any(found[n] for n in node.all_input_nodes)
    return [n for n, depends in found.items() if depends and n.op == "call_function"]


# --- the check ------------------------------------------------------------------------------------

#: A result, and which of its numbers stay if what is decrypted is off by a little.
Checked = tuple[Array, Any]


def _parted(graph: Graph, parts: Parts, off: float) -> Callable[[list[Array]], list[Checked]]:
    """A function that computes the results of a module that is cut.

    off: how far decrypted numbers may be off, in units of the largest of them.
    """

    def run(arrays: list[Array]) -> list[Checked]:
        given = arrays if parts.before is None else parts.sent(arrays)[0]
        decrypted = execute(graph, *given)
        results = parts.results(decrypted, check=False)
        stays: list[Any] = [True] * len(results)
        rng = np.random.default_rng(1)
        for _ in range(_TRIALS if any(x.dtype.kind != "f" for x in results) else 0):
            noisy = [x + off * np.abs(x).max() * rng.uniform(-1, 1, x.shape) for x in decrypted]
            others = parts.results(noisy, check=False)
            stays = [
                keep if x.dtype.kind == "f" else keep & (x == other)
                for keep, x, other in zip(stays, results, others, strict=True)
            ]
        return list(zip(results, stays, strict=True))

    return run


def _compare(
    torch: Any,
    module: Any,
    run: Callable[[list[Array]], Sequence[Checked]],
    names: Sequence[str],
    tensors: Sequence[Any],
) -> None:
    """Raises Unsupported if `run` does not give what the module gives for a batch of the
    example."""
    given = list(tensors)
    if len(tensors[0]) == 1:  # a second example, of the same numbers in another order
        given = [torch.cat([x, x.flatten().flip(0).reshape(x.shape)]) for x in tensors]
    try:
        results, found = module(*given), run(_arrays(given))
    except Exception:  # a module of a fixed batch, or one that does not take the second example
        given = [x[:1] for x in tensors]
        results, found = module(*given), run(_arrays(given))
    leaves = [x for x in torch.utils._pytree.tree_leaves(results) if isinstance(x, torch.Tensor)]
    for name, (got, stays), wanted in zip(names, found, leaves, strict=True):
        want = wanted.double().cpu().numpy()
        off = min(_distance(got, want, axis, stays) for axis in range(max(1, want.ndim)))
        most = 0.5
        if wanted.is_floating_point():
            most = _tolerance(module, wanted) * max(
                np.abs(want[np.isfinite(want)]).max(initial=0.0), 1e-30
            )
        if off > most:
            raise Unsupported(
                f"{name}: the module gives other numbers for a batch than for each of its examples alone: it mixes the examples, for example by "
                "a mean over the batch, or is random. Write it so that an example's result depends on that example"
            )


def _arrays(tensors: Sequence[Any]) -> list[Any]:
    return [(x.double() if x.is_floating_point() else x).cpu().numpy() for x in tensors]


def _tolerance(module: Any, *tensors: Any) -> float:
    """How far results may be apart, in units of the largest number, by the types in which the
    module computes."""
    kinds = [str(x.dtype) for x in (*tensors, *module.parameters()) if x.is_floating_point()]
    return max([_TOLERANCE.get(kind.removeprefix("torch."), 0.1) for kind in kinds] or [1e-3])


def _distance(got: Array, want: Array, axis: int, stays: Any) -> float:
    """How far numbers are apart if this axis of what is wanted is the batch; infinity if it cannot
    be."""
    if want.size != got.size or (axis and want.shape[axis] != len(got)):
        return np.inf
    want = (np.moveaxis(want, axis, 0) if axis else want).reshape(got.shape)
    seen = np.isfinite(want) & np.isfinite(got)  # calibration tells of others
    off = np.abs(got.astype(np.float64) - want)
    return float(off[seen & stays].max(initial=0.0))
