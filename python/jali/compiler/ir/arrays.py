"""The types of clear arrays and of shapes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Array", "Shape"]

Array = npt.NDArray[np.float64]
Shape = tuple[int, ...]  # of one example, without the axis of the batch
