"""Operations of ONNX on constants, computed by ONNX's own evaluator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["constants_of"]

_RENAMED = {"Scatter": "ScatterElements"}  # operations that ONNX calls otherwise since


def constants_of(
    node: Any, feeds: Mapping[str, Any], opsets: Mapping[str, int], functions: Sequence[Any]
) -> dict[str, Any]:
    """The values of an operation's outputs, by their names. Raises what the evaluator raises, which
    are errors of many kinds.

    feeds: the values of what it takes, by their names.
    opsets: the versions of the model's operations, by domain.
    functions: of the model.
    """
    from onnx import TensorProto, helper
    from onnx.reference import ReferenceEvaluator

    outputs = [name for name in node.output if name]
    ports, ends = (
        [helper.make_tensor_value_info(name, TensorProto.UNDEFINED, None) for name in names]
        for names in (feeds, outputs)
    )
    versions = {**opsets, node.domain: opsets.get(node.domain, 1)}
    if node.op_type in _RENAMED:
        node, versions[""] = _renamed(node), max(versions[""], 11)
    graph = helper.make_graph([node], "constants", ports, ends)
    with np.errstate(all="ignore"):
        runner = ReferenceEvaluator(graph, opsets=versions, functions=list(functions))
        return dict(zip(outputs, runner.run(None, dict(feeds)), strict=True))


def _renamed(node: Any) -> Any:
    copy = type(node)()
    copy.CopyFrom(node)
    copy.op_type = _RENAMED[node.op_type]
    return copy
