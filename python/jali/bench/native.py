"""The extension that measures below the level of ciphertexts.

It is built beside the package's own extension, which holds none of it.
"""

from __future__ import annotations

from jali.errors import Unsupported

try:
    from jali._jali_bench import (
        CallLoop,
        EngineBench,
        TfheBench,
        butterfly_rate,
        complex_butterfly_rate,
        cuda_peak,
        read_rate,
        stream_rate,
    )
except ModuleNotFoundError as error:
    if error.name != "jali._jali_bench":
        raise
    raise Unsupported(
        "this installation was built without the benchmarks: in a checkout of the sources, run "
        "CMAKE_ARGS=-DJALI_BENCH_MODULE=ON pip install ."
    ) from None

__all__ = [
    "CallLoop",
    "EngineBench",
    "TfheBench",
    "butterfly_rate",
    "complex_butterfly_rate",
    "cuda_peak",
    "read_rate",
    "stream_rate",
]
