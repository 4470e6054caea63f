"""Course 3: moving slots, sums, matrix-vector products, and functions by polynomials."""

import numpy as np

from jali import ckks

params = ckks.Params.create(depth=6, scale_bits=40)
client = ckks.Client(params)
rng = np.random.default_rng()

# --- rotations and sums ---------------------------------------------------------------------------
# Every rotation needs a key of its own, which takes several hundred kilobytes or some megabytes.
# Ask only for the keys that the computation needs. Their size is known before they are made.
rotations = [1, -2, *ckks.sum_rotations(64)]
print(f"keys for {len(set(rotations))} rotations: {params.key_bytes(rotations) / 1e6:.1f} MB")
server = ckks.Evaluator(params, client.evaluation_keys(rotations, conjugate=True))

values = rng.uniform(-1, 1, params.slots)
x = server.bind(client.encrypt(values))
assert np.allclose(
    client.decrypt(x.rotate(1)), np.roll(values, -1), atol=1e-6
)  # slot i is slot i + 1
assert np.allclose(client.decrypt(x.rotate(-2)), np.roll(values, 2), atol=1e-6)
assert np.isclose(client.decrypt(x[:64].sum()), values[:64].sum(), atol=1e-5)

waves = np.exp(1j * rng.uniform(0, 2 * np.pi, params.slots))
z = server.bind(client.encrypt(waves))
assert np.allclose(client.decrypt(z * z.conj()), 1, atol=1e-6)
print("rotations, sums and conjugates agree")

# --- two dense layers -----------------------------------------------------------------------------
# A plan is made from the matrix and the parameters, before there are keys. It chooses which slots
# hold the vector and which rotations to use. The second layer takes its input from the slots in
# which the first one leaves it.
first = rng.normal(size=(32, 100)) / 10
second = rng.normal(size=(10, 32)) / 5
bias = rng.normal(size=32) / 5
layer1 = ckks.MatVec(first, params, bias=bias)
layer2 = ckks.MatVec(second, params, level=params.depth - 2, layout=layer1.output_layout)
rotations = [*layer1.rotations, *layer2.rotations]
print(
    f"two layers: {len(set(rotations))} rotations, {params.key_bytes(rotations) / 1e6:.1f} MB of keys"
)
server = ckks.Evaluator(params, client.evaluation_keys(rotations))

vector = rng.uniform(-1, 1, 100)
packed = [server.bind(client.encrypt(slots)) for slots in layer1.pack(vector)]
hidden = server.matvec(layer1, packed)
output = server.matvec(layer2, hidden * hidden)
expected = second @ (first @ vector + bias) ** 2
error = np.abs(client.decrypt(output) - expected).max()
print(
    f"second (first v + bias)^2: level {output.level} of {params.depth}, largest error {error:.1e}"
)
assert error < 1e-5

# --- functions ------------------------------------------------------------------------------------
# Any function that is not made of sums and products is approximated by a polynomial. This is the
# logistic function on [-8, 8], in the Chebyshev basis. It takes the fewest levels that its degree
# allows.
logistic = ckks.Polynomial.approximate(lambda t: 1 / (1 + np.exp(-t)), 31, (-8.0, 8.0))
print(f"degree {logistic.degree}: {logistic.depth} levels, {logistic.multiplications} products")
arguments = rng.uniform(-8, 8, params.slots)
sigma = server.polynomial(server.bind(client.encrypt(arguments, peak=8)), logistic)
error = np.abs(client.decrypt(sigma) - 1 / (1 + np.exp(-arguments))).max()
print(f"logistic function: largest error {error:.1e}")
assert error < 1e-3
