"""ONNX models, read with the package onnx (the extra jali[onnx]). The first axis of every input is
the batch. Of an output, it may be another one in the model, and is the first one in the program."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from jali._core import packages
from jali._core.console import counted_text
from jali.compiler.frontends.layers import MISPLACED, Masked
from jali.compiler.frontends.onnx_batch_axis import TURNED, Turned
from jali.compiler.frontends.onnx_layers import LAYERS
from jali.compiler.frontends.onnx_ops import COMPUTING, INSTEAD, Attrs, Value
from jali.compiler.frontends.onnx_recurrent import RECURRENT
from jali.compiler.frontends.onnx_shapes import MOVING
from jali.compiler.frontends.replacements import OTHER
from jali.compiler.frontends.tracing import Builder, Traced
from jali.compiler.ir.graph import Graph, Shape
from jali.compiler.ir.operation import Input
from jali.errors import FileError, InvalidArgument, Unsupported

__all__ = ["loaded", "trace_onnx"]

OPERATIONS = {**COMPUTING, **LAYERS, **MOVING, **RECURRENT, "Transpose": TURNED["Transpose"]}


def loaded(model: Any) -> Any:
    """A model, or that of the file at a path."""
    try:
        import onnx
    except ImportError:
        raise Unsupported(
            f"models in ONNX need the package onnx: {packages.install('onnx')}"
        ) from None
    if isinstance(model, (str, os.PathLike)):
        try:
            read = onnx.load(os.fspath(model))
            if not read.graph.node:
                raise ValueError("it has no operators")
            return read
        except OSError as error:
            raise FileError(f"{os.fspath(model)} cannot be read: {error.strerror}") from None
        except Exception as error:  # onnx raises errors of the protobuf library, too
            raise InvalidArgument(f"{os.fspath(model)} is no model in ONNX: {error}") from None
    return model


def trace_onnx(model: Any, shapes: Sequence[Shape]) -> Graph:
    """The graph of a loaded model, for inputs whose examples have these shapes."""
    from onnx import helper, numpy_helper

    values: dict[str, Value] = {
        tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer
    }
    builder = Builder()
    given = [port.name for port in model.graph.input if port.name not in values]
    if len(given) != len(shapes):
        raise InvalidArgument(
            f"the model takes {counted_text(len(given), 'array')}, and was given {len(shapes)}"
        )
    for name, shape in zip(given, shapes, strict=True):
        values[name] = Traced(builder, builder.add(name, Input(shape=shape), []))
    version = max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0)
    batches = _batches(model)
    for node in model.graph.node:
        builder.label = node.name or node.output[0]
        unknown = [name for name in node.input if name and name not in values]
        if unknown:
            raise InvalidArgument(
                f"{builder.label}: nothing in the model computes its input {unknown[0]}: export the model again"
            )
        inputs = [values[name] if name else None for name in node.input]
        if (
            any(isinstance(value, (Traced, Masked, Turned)) for value in inputs)
            and node.op_type != "Shape"
        ):
            attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            attrs |= {"opset": version, "outputs": len(node.output), "batches": batches}
            found = _computed(builder.label, node.op_type, inputs, attrs)
        else:
            found = _constants(builder.label, node, inputs)
        values |= dict(zip(node.output, found, strict=False))
    builder.label = None
    missing = [port.name for port in model.graph.output if port.name not in values]
    if missing:
        raise InvalidArgument(
            f"nothing in the model computes its output {missing[0]}: export the model again"
        )
    outputs = [values[port.name] for port in model.graph.output]
    outputs = [value.x if isinstance(value, Turned) else value for value in outputs]
    for port, value in zip(model.graph.output, outputs, strict=True):
        if not isinstance(value, Traced):
            raise InvalidArgument(
                f"the output {port.name} of the model does not depend on its inputs: leave it out of the model"
            )
    return builder.graph([value.node for value in outputs])


def _constants(name: str, node: Any, inputs: Sequence[Value]) -> list[Value]:
    """The results of an operation that does not depend on the model's inputs, by ONNX's own
    evaluator."""
    shaped = node.op_type == "Shape"  # of one example, as a batch
    clear = [_one(x) if shaped else x for x in inputs]
    from onnx.reference import ReferenceEvaluator

    try:
        feeds = {n: x for n, x in zip(node.input, clear, strict=True) if n}
        return list(ReferenceEvaluator(node).run(None, feeds))
    except Exception as error:  # of many kinds
        raise Unsupported(
            f"{name}: {node.op_type} of constants could not be computed: fold the constants when you export. onnx says: {error}"
        ) from None


def _one(x: Value) -> Value:
    """An array of the shape that a batch of one has."""
    if isinstance(x, Traced):
        return np.zeros((1, *x.shape))
    return np.zeros(x.shape) if isinstance(x, Turned) else x


def _batches(model: Any) -> set[int]:
    """The numbers of examples for which the model was exported, of inputs that say it."""
    shapes = [port.type.tensor_type.shape.dim for port in model.graph.input]
    return {int(shape[0].dim_value) for shape in shapes if shape} - {0}


def _computed(name: str, op: str, inputs: Sequence[Value], attrs: Attrs) -> list[Value]:
    if op not in OPERATIONS:
        raise Unsupported(
            f"{name}: {op} cannot be compiled: {INSTEAD.get(op, OTHER)}. There are {', '.join(sorted(OPERATIONS))}"
        )
    try:
        if op != "Softmax" and any(isinstance(value, Masked) for value in inputs):
            raise Unsupported(MISPLACED)
        table = OPERATIONS
        if op not in RECURRENT and any(isinstance(value, Turned) for value in inputs):
            table = TURNED
            if op not in table:
                raise Unsupported(
                    f"{op} of an array whose batch is not its first axis: transpose the batch to the front first"
                )
        found = table[op](inputs, attrs)
    except (Unsupported, InvalidArgument) as error:
        text = str(error)
        raise type(error)(text if text.startswith(name) else f"{name}: {text}") from None
    return list(found) if isinstance(found, (list, tuple)) else [found]
