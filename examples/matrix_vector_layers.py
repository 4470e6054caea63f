"""Single matrices times encrypted vectors: the seven layers of the matrix-vector paper's Table IV,
at a sixteenth of their size.

`jali bench matvec_compiled` has them in their size. It is the same line of jali.compile; the
largest, 4,096 x 25,088, takes some gigabytes.
"""

import numpy as np

import jali
from jali.bench.matvec import LAYERS

rng = np.random.default_rng(3)
for name, (outputs, inputs) in LAYERS.items():
    matrix = rng.uniform(-1, 1, (outputs // 16, inputs // 16)) / np.sqrt(inputs / 16)
    x = rng.uniform(-1, 1, (50, inputs // 16))

    program = jali.compile(lambda v, m=matrix: m @ v, x[0], calibration=x, input_range=(-1, 1))
    client = program.client()
    server = program.server(client.evaluation_keys())
    result = client.decrypt(server(client.encrypt(x[0])))

    error, size = np.abs(result - matrix @ x[0]).max(), f"{outputs // 16} x {inputs // 16}"
    print(f"{name:10} {size:10} off by {error:.1e} at most, N = 2^{program.params.log_n}")
    assert error < 2.0**-10 * 1.5 * np.abs(x @ matrix.T).max()
