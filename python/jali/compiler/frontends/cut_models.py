"""Models whose clients compute a part of them in the clear."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jali._core import checks
from jali.compiler.frontends.client_ranges import Ends
from jali.compiler.frontends.from_onnx import fixed_inputs, loaded, trace_onnx
from jali.compiler.frontends.model_source import is_module, is_onnx
from jali.compiler.frontends.onnx_cut import Cut, cut_of
from jali.compiler.frontends.replacements import KEPT
from jali.compiler.ir.execute import execute
from jali.compiler.ir.graph import Array, Graph
from jali.errors import InvalidArgument, Unsupported
from jali.program.clear.parts import Parts

Ranges = tuple[Ends, ...] | None

__all__ = ["check_end", "cut_model", "trace_in_parts"]

_CHECKED = 64  # examples whose results a client's end must be able to compute


def cut_model(
    module: Any, example: Any, constants: Mapping[str, Any] | None = None
) -> tuple[Graph, Parts, Ranges] | None:
    """The graph of the part of a model that is encrypted, what its client computes, and (low, high)
    of the numbers that are encrypted, as far as the model says it; None if the client computes
    nothing. Models in ONNX are cut, and modules of PyTorch.

    example, constants: as of jali.compile.

    Raises Unsupported if a part cannot be traced.
    """
    if is_module(module):
        found, parts, ends = _trace_module(module, example, client_side=True)
        return None if parts is None else (found, parts, ends)
    cut = _cut(module, example, constants)
    if cut is None:
        return None
    arrays = _arrays(example)
    if cut.before is not None:
        arrays = Parts(cut.before, None).sent(arrays)[0]
    examples = [np.asarray(x, np.float64)[:1] for x in arrays]
    graph = trace_onnx(cut.encrypted, examples)
    after = cut.after([graph[name].shape for name in graph.outputs])
    return graph, Parts(cut.before, after), cut.ranges


def trace_in_parts(
    module: Any,
    example: Any,
    constants: Mapping[str, Any] | None,
    client_side: bool,
    trace: Callable[[], Graph],
) -> tuple[Graph, Parts | None, Ranges]:
    """The graph of what is encrypted of a model, what its client computes, and the ranges of what
    it encrypts as far as that says them.

    client_side: whether the client may compute a part.
    trace: what traces the whole model.

    Raises Unsupported if neither the parts can be traced, nor the whole.
    """
    if is_module(module):
        return _trace_module(module, example, client_side)
    if client_side:
        try:
            found = cut_model(module, example, constants)
        except Unsupported as refused:
            try:
                return trace(), None, None
            except Unsupported:
                raise refused from None
        return found or (trace(), None, None)
    try:
        return trace(), None, None
    except Unsupported as error:
        if _cut(module, example, constants) is None:
            raise
        raise Unsupported(f"{error}. {KEPT}") from None


def check_end(graph: Graph, parts: Parts, examples: Sequence[Array]) -> None:
    """Raises InvalidArgument if what the client computes at the end is no number for one of the
    first examples, although what it decrypts is one.

    examples: of the calibration, a batch for every input of the graph.
    """
    some = [x[:_CHECKED] for x in examples]
    decrypted = execute(graph, *some)
    if not all(np.isfinite(x).all() for x in decrypted):
        return  # calibration names the node
    with np.errstate(all="ignore"):
        results = parts.results(decrypted, check=False)
    wrong = [np.isnan(np.asarray(y)).reshape(len(some[0]), -1).any(axis=1) for y in results]
    examples_of = np.flatnonzero(np.any(wrong, axis=0))
    if len(examples_of):
        raise InvalidArgument(
            f"what the client computes of decrypted numbers is no number (NaN) for {len(examples_of)} of the first {len(some[0])} examples of the calibration, "
            f"first for example {examples_of[0]}: it takes a function, such as a logarithm, of numbers for which that is not defined. Leave that function out, or give other examples"
        )


def _trace_module(
    module: Any, example: Any, client_side: bool
) -> tuple[Graph, Parts | None, Ranges]:
    from jali.compiler.frontends.from_torch import trace_in_parts as trace_parts

    given = example if isinstance(example, tuple) else (example,)
    return trace_parts(module, given, client_side)


def _arrays(example: Any) -> list[Any]:
    given = example if isinstance(example, tuple) else (example,)
    return [checks.as_array(checks.dense(x), "an example is an array of numbers") for x in given]


def _cut(module: Any, example: Any, constants: Mapping[str, Any] | None) -> Cut | None:
    if not is_onnx(module):
        return None
    arrays = _arrays(example)
    if any(x.ndim < 2 or x.dtype.kind not in "biuf" for x in arrays):
        return None  # without a batch
    if len({len(x) for x in arrays}) > 1:
        return None  # whose batch is not the first axis of every input
    model = loaded(module)
    return cut_of(model, arrays, fixed_inputs(model, constants))
