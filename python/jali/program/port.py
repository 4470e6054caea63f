"""An input or output of a compiled program, as its client knows it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._jali import program as _program

__all__ = ["Port"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Port:
    """An input or output: its numbers are sent as (number - centre) / radius, at this level.

    shape: of one example.
    layout: which slot holds which number.
    low, high: for each number, what an input may hold; for an output, what the examples of the
        calibration gave, with the margin.
    rms, peak: the root mean square and the largest modulus of what is sent.
    column_text: see columns; one name a line.
    """

    name: str
    shape: tuple[int, ...]
    layout: _program.Layout
    centre: Array
    radius: Array
    low: Array
    high: Array
    rms: float
    peak: float
    level: int
    column_text: str = ""

    @classmethod
    def of(cls, core: _program.PortCore) -> Port:
        """The port of the library's one. Its arrays have a number for each of an example."""
        size = int(np.prod(core.shape, dtype=np.int64))
        numbers = (core.centre, core.radius, core.low, core.high)
        centre, radius, low, high = (_each(x, size) for x in numbers)
        named, scaled = (core.name, core.shape, core.layout), (core.rms, core.peak, core.level)
        made = cls(*named, centre, radius, low, high, *scaled, core.columns)
        made.__dict__["_core"] = core
        return made

    @cached_property
    def _core(self) -> _program.PortCore:
        centre, radius, low, high = (
            np.ascontiguousarray(x, np.float64)
            for x in (self.centre, self.radius, self.low, self.high)
        )
        named, scaled = (self.name, self.shape, self.layout), (self.rms, self.peak, self.level)
        return _program.PortCore(*named, centre, radius, low, high, *scaled, self.column_text)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the numbers along the last axis, as the model's table had them: of an input,
        for example, the names of the features. Empty if they have none."""
        return tuple(self.column_text.split("\n")) if self.column_text else ()

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: the fields, without what was made of them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def outside(self, values: Array) -> str | None:
        """What is wrong with numbers (examples, size) of this input that lie outside of its range;
        None if none does.

        It says which of them it is, and not the number: that was to be encrypted.
        """
        return self._core.outside(np.ascontiguousarray(values, np.float64))

    def refused(self, values: Array, noise_bits: float) -> npt.NDArray[np.bool_]:
        """For each example, whether decryption refuses it: a number is beyond the range of the
        calibration by more than noise explains, or is NaN.

        values: of this output (examples, size), in the scale in which they are sent.
        noise_bits: -log2 of the standard deviation of their noise.
        """
        found = self._core.beyond(np.ascontiguousarray(values, np.float64), noise_bits)
        return np.frombuffer(found, np.bool_)

    def is_like(self, other: Port) -> bool:
        """Whether ciphertexts of one fit the other: see Manifest.is_like."""
        return self._core.is_like(other._core)


def _each(numbers: object, size: int) -> Array:
    """One number for each of so many, of as many numbers or of one for all."""
    return np.broadcast_to(np.asarray(numbers, np.float64), (size,))
