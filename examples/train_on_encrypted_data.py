"""Logistic regression trained on encrypted rows, by Nesterov's gradient (HELR, Han et al. 2019).

`jali demo helr` is the real size: 32 iterations on batches of 1,024 images, with bootstrapping.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import jali
from jali.nn import workloads

ROWS, COLUMNS, ITERATIONS = 64, 8, 3
X, y = load_breast_cancer(return_X_y=True)
x = StandardScaler().fit_transform(X[:, : COLUMNS - 1]).clip(-2, 2) / 2
# A row is an example with a 1 for the bias, times its label. A power of two of columns makes sums
# of rows cheap.
rows = np.c_[x, np.ones(len(x))] * np.where(y == 1, 1.0, -1.0)[:, None]
rng = np.random.default_rng(19)
rows = rng.permutation(rows)
own, public, held = rows[:ROWS], rows[ROWS:400], rows[400:]


def train(batch):
    """The weights (COLUMNS,) after some iterations on encrypted rows (ROWS, COLUMNS)."""
    return workloads.logistic_regression(batch, ITERATIONS, rate=2.0)


# The ranges of all numbers come from batches that are not secret: here, samples of other rows.
samples = np.stack([public[rng.choice(len(public), ROWS)] for _ in range(60)])
program = jali.compile(train, samples[0], calibration=samples, precision_bits=8)
print(f"{program.params.depth} levels for {ITERATIONS} iterations, N = 2^{program.params.log_n}")

client = program.client()  # the owner of the rows
server = program.server(client.evaluation_keys())  # sees neither rows, labels nor weights
weights = client.decrypt(server(client.encrypt(own)))

clear = train(own)  # the same function on arrays of NumPy
accuracy = [np.mean(held @ w > 0) for w in (weights, clear)]
print(
    f"encrypted training: {accuracy[0]:.1%} of {len(held)} other rows, in the clear {accuracy[1]:.1%}"
)
print(f"weights differ by {np.abs(weights - clear).max():.1e} at most")
assert np.abs(weights - clear).max() < 2**-8 * np.abs(program.clear(samples)).max()
assert accuracy[0] > 0.85
