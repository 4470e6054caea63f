"""Models in ONNX, read with the package onnx (the extra jali[onnx])."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jali._core import checks, packages
from jali._core.console import counted_text
from jali.compiler.frontends.onnx_batches import graph_of
from jali.compiler.ir.graph import Array, Graph
from jali.errors import FileError, InvalidArgument, Unsupported

__all__ = ["fixed_inputs", "loaded", "trace_onnx"]


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


def trace_onnx(
    model: Any, examples: Sequence[Array], constants: Mapping[str, Any] | None = None
) -> Graph:
    """The graph of a loaded model, for examples of its inputs.

    constants: the values of other inputs, by their names.
    """
    ports, fixed = _ports(model), fixed_inputs(model, constants)
    names = [name for name in ports if name not in fixed]
    if len(names) != len(examples):
        raise InvalidArgument(
            f"the model takes {counted_text(len(names), 'array')}, and was given {len(examples)}"
        )
    for name, x in zip(names, examples, strict=True):
        _check_rank(ports[name], x)
    declared = {name: _first(ports[name]) for name in names}
    return graph_of(model, dict(zip(names, examples, strict=True)), fixed, declared)


def fixed_inputs(model: Any, constants: Mapping[str, Any] | None) -> dict[str, Any]:
    """The values of inputs that are no secret, in the model's types. Raises InvalidArgument for
    names that the model does not have, and for values that do not fit."""
    ports, values = _ports(model), dict(constants or {})
    unknown = [name for name in values if name not in ports]
    if unknown:
        raise InvalidArgument(
            f"the model has no input {checks.shown(unknown[0])} for constants=: it has {', '.join(ports)}"
        )
    return {name: _constant(ports[name], value) for name, value in values.items()}


def _ports(model: Any) -> dict[str, Any]:
    """The inputs of a model by their names."""
    known = {tensor.name for tensor in model.graph.initializer}
    return {port.name: port for port in model.graph.input if port.name not in known}


def _dims(port: Any) -> Sequence[Any] | None:
    """The axes of an input, if the model says them."""
    kind = port.type.tensor_type
    return list(kind.shape.dim) if kind.HasField("shape") else None


def _first(port: Any) -> int | None:
    """The size of the first axis, if the model fixes it."""
    dims = _dims(port)
    return int(dims[0].dim_value) or None if dims else None


def _check_rank(port: Any, x: Array) -> None:
    dims = _dims(port)
    if dims is not None and len(dims) != x.ndim:
        raise InvalidArgument(
            f"the input {port.name} of the model has {counted_text(len(dims), 'axis', 'axes')}, and its example the shape {x.shape}: "
            "the example of a model in ONNX has all of its axes, the batch as the first, as X[:1] has"
        )


def _constant(port: Any, value: Any) -> Any:
    """A value for an input, in the model's type."""
    from onnx import helper

    kind = port.type.tensor_type.elem_type
    try:
        given = np.asarray(checks.dense(value))
        with np.errstate(invalid="ignore"):  # of NaN, which no whole number is
            array = given.astype(helper.tensor_dtype_to_np_dtype(kind))
        whole = array.dtype.kind not in "iub" or np.array_equal(given.astype(np.float64), array)
    except (TypeError, ValueError, KeyError):
        raise InvalidArgument(
            f"constants= has for {port.name} {checks.shown(value)}, which is no array of numbers"
        ) from None
    if not whole:
        raise InvalidArgument(
            f"constants= has for {port.name} {checks.shown(value)}, and the model takes {array.dtype} there: give numbers of this type"
        )
    dims = _dims(port)
    if dims is not None and array.size == 1:
        return array.reshape((1,) * len(dims))
    if dims is not None and len(dims) != array.ndim:
        raise InvalidArgument(
            f"the input {port.name} of the model has {counted_text(len(dims), 'axis', 'axes')}, and constants= has for it the shape {array.shape}"
        )
    return array
