"""Operations of ONNX whose definition is made of others: functions of the model, and those that
ONNX defines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jali.compiler.frontends.onnx_values import Value, is_traced

__all__ = ["as_typed", "body_of"]


def body_of(
    node: Any, inputs: Sequence[Value], opsets: Mapping[str, int], functions: Sequence[Any]
) -> Any:
    """The definition of an operation as a FunctionProto, with the values of its attributes; None if
    there is none."""
    for function in functions:
        if (function.domain, function.name) == (node.domain, node.op_type):
            return _with_attributes(function, node, {a.name: a for a in function.attribute_proto})
    import onnx

    version = opsets.get(node.domain, opsets[""] if node.domain in ("", "ai.onnx") else 1)
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return None
    defaults = {
        name: a.default_value for name, a in schema.attributes.items() if a.default_value.name
    }
    if schema.has_context_dependent_function:
        types = [_type(x).SerializeToString() for x in inputs]
        made = schema.get_context_dependent_function(node.SerializeToString(), types)
        body = onnx.FunctionProto.FromString(made) if made else None
    else:
        body = schema.function_body if schema.has_function else None
    return None if body is None or not body.node else _with_attributes(body, node, defaults)


def _type(x: Value) -> Any:
    """ONNX's type of a value. Traced arrays are of 32 bits, which every operation takes."""
    from onnx import TensorProto, TypeProto, helper

    if x is None:
        return TypeProto()
    if is_traced(x):
        shape = x.shape if hasattr(x, "shape") else None
        return helper.make_tensor_type_proto(TensorProto.FLOAT, shape)
    array = as_typed([x])[0]
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def as_typed(inputs: Sequence[Value]) -> list[Value]:
    """The inputs with real numbers in 32 bits, as that which is traced has in such a definition."""
    return [_typed(x) for x in inputs]


def _typed(x: Value) -> Value:
    if x is None or is_traced(x):
        return x
    array = np.asarray(x)
    real = array.dtype.kind == "f" or array.dtype.name == "bfloat16"
    return array.astype(np.float32) if real else array


def _with_attributes(body: Any, node: Any, defaults: Mapping[str, Any]) -> Any:
    """The definition in which attributes that name one of the operation have its value."""
    from onnx import FunctionProto

    given = {**defaults, **{a.name: a for a in node.attribute}}
    full = FunctionProto()
    full.CopyFrom(body)
    for inside in full.node:
        _fill(inside, given)
    return full


def _fill(node: Any, given: Mapping[str, Any]) -> None:
    kept = []
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            for inside in attribute.g.node:
                _fill(inside, given)
            kept.append(attribute)
        elif attribute.ref_attr_name in given:
            named = type(attribute)()
            named.CopyFrom(given[attribute.ref_attr_name])
            named.name = attribute.name
            kept.append(named)
    copies = []
    for attribute in kept:
        copy = type(attribute)()
        copy.CopyFrom(attribute)
        copies.append(copy)
    del node.attribute[:]
    node.attribute.extend(copies)
