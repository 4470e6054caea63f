"""Course 8: a convolution, an activation and a dense layer on an encrypted image, as in NumPy."""

import numpy as np

from jali import ckks

rng = np.random.default_rng(8)
image = rng.uniform(0, 1, (28, 28))
kernel, dense = rng.normal(size=(7, 7)) / 7, rng.normal(size=(10, 64)) / 8

params = ckks.Params.create(depth=5)
client = ckks.Client(params)
powers = [1 << k for k in range(params.log_n - 1)]  # any movement is composed of these
server = ckks.Evaluator(params, client.evaluation_keys([*powers, *(-p for p in powers)]))


def network(x):
    """28 x 28 pixels: a 7 x 7 kernel at every third place, squares, 10 scores."""
    maps = sum(
        kernel[i, j] * x[i : i + 22 : 3, j : j + 22 : 3] for i in range(7) for j in range(7)
    )
    return ((maps * maps)[None] * dense.reshape(10, 8, 8)).sum(axis=(1, 2))


scores = network(server.bind(client.encrypt(image, peak=1)))
error = np.abs(client.decrypt(scores) - network(image)).max()
print(f"10 scores, largest error {error:.1e}")
assert error < 1e-4
