"""Course 1: encrypt two vectors, add and multiply them without seeing them, decrypt the result."""

import numpy as np

from jali import ckks

# Parameters say how deep a computation may go (here one product) and how precise it is. Jali picks
# the smallest ring that the 128-bit security table allows, and refuses parameters below 128 bits.
params = ckks.Params.create(depth=1, scale_bits=40)
print(
    f"N = 2^{params.log_n}, log2 PQ = {params.log_qp:.0f}, {params.slots} slots, {params.security} bits"
)
assert params.security >= 128

# The client makes the secret key and never gives it away. It does give away the evaluation keys,
# which let others compute. Their size is known before they are made.
client = ckks.Client(params)
keys = client.evaluation_keys()
assert keys.nbytes == params.key_bytes([])

# The server has the parameters, the public keys, and ciphertexts.
server = ckks.Evaluator(params, keys)

rng = np.random.default_rng()
heights = rng.uniform(-1, 1, params.slots)
weights = rng.uniform(-1, 1, params.slots)
x = server.bind(client.encrypt(heights))
y = server.bind(client.encrypt(weights))

# Encrypted arrays are added and multiplied like NumPy arrays: with each other, with arrays and with
# numbers.
results = {
    "x + y": (x + y, heights + weights),
    "x - 2 y": (x - 2 * y, heights - 2 * weights),
    "x * y": (x * y, heights * weights),
    "0.5 * x + array": (0.5 * x + weights, 0.5 * heights + weights),
}
for name, (encrypted, expected) in results.items():
    # decrypt is for the key holder: the last bits of its result are noise that depends on the
    # secret key. If you want to share a value, use release instead (docs/security.md).
    error = np.abs(client.decrypt(encrypted) - expected).max()
    print(f"{name:16} largest error {error:.1e} = 2^{np.log2(error):.1f}")
    assert error < 1e-6
