"""The time of ``import jali``, each in a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from jali.bench.measure import Row, row
from jali.bench.registry import Options, benchmark

_TIMED = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


@benchmark("import", "import of jali into a fresh interpreter, NumPy's beside it")
def importing(options: Options) -> Iterator[Row]:
    """The package with everything that it imports; and NumPy alone, which takes most of that
    time."""
    for module in ("jali", "numpy"):
        times: list[float] = []
        end = time.perf_counter() + options.seconds
        while not times or time.perf_counter() < end:
            done = subprocess.run(
                [sys.executable, "-c", _TIMED.format(module)],
                capture_output=True,
                text=True,
                check=True,
            )
            times.append(float(done.stdout))
        yield row("import", "cpu", {"module": module}, times)
