"""Lowers a trace to machine steps with their dependences."""

from __future__ import annotations

from typing import Any

from jali.errors import InvalidArgument
from jali.simulate import lower_ckks, lower_tfhe
from jali.simulate.steps import Steps
from jali.simulate.trace import Trace

__all__ = ["lower"]


def lower(
    trace: Trace, *, by_iteration: bool = True, epoch: int | None = None, tiles: int = 1
) -> Steps:
    """The steps of a trace, in the order in which its operations began.

    trace: jali.simulate.trace.read(path). The column record of a step is an index in trace.records.
    by_iteration: of TFHE, whether every iteration of a blind rotation has steps of its own. If not,
        each stage is one step for all iterations, and nothing in it waits: fewer steps, and a bound
        from below.
    epoch: of TFHE, how many ciphertexts of a batch are rotated together, each time with the whole
        bootstrapping key; by default all of them.
    tiles: of TFHE, in how many parts a key-switching key is loaded. `fitted` chooses both for a
        machine.

    A step waits for the steps that made what its loads overlap. Twiddle factors are operands of
    their own. Multiplications of the steps of a record add up to its `mults`, and bytes of loads
    and stores to its operands, twiddle factors and keys of further epochs apart. Raises CorruptData
    for a record that does not agree with its operation.
    """
    if not isinstance(trace, Trace):
        raise InvalidArgument("lower takes a Trace: jali.simulate.trace.read(path)")
    operations: dict[str, Any]
    if trace.header.scheme == "ckks":
        lowering: Any = lower_ckks.CkksLowering(trace.header)
        operations = dict(lower_ckks.OPERATIONS)
    else:
        lowering = lower_tfhe.TfheLowering(trace.header, by_iteration, epoch, tiles)
        operations = dict(lower_tfhe.OPERATIONS)
    order = sorted(range(len(trace.records)), key=lambda i: trace.records[i].start)
    for index in order:
        record = trace.records[index]
        lowering.lower(index, record, operations[record.op])
    steps: Steps = lowering.builder.build()
    return steps
