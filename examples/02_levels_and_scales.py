"""Course 2: levels, scales, and the precision that is left."""

import numpy as np

import jali
from jali import ckks

params = ckks.Params.create(depth=4, scale_bits=40)
client = ckks.Client(params)
server = ckks.Evaluator(params, client.evaluation_keys())

# A fresh ciphertext lies at the top level. Every level has a modulus and a canonical scale, the
# factor between numbers and the integers that are encrypted.
for level in range(params.depth, -1, -1):
    entry = params.level(level)
    print(f"level {level}: log2 Q = {entry.log_q:6.1f}, scale = 2^{np.log2(entry.scale):.4f}")

# Estimates of noise need to know how large the numbers are. Unless you declare another magnitude
# and peak, they assume a root mean square of 1 and no number above 8. Both travel with the
# ciphertext in the clear, so they must not depend on the data. These numbers are at most 1.1. If
# that were not declared, the estimate would have to allow for 8th powers as large as 8^8.
rng = np.random.default_rng()
values = rng.choice([-1, 1], params.slots) * rng.uniform(0.9, 1.1, params.slots)
x = server.bind(client.encrypt(values, peak=1.1))
assert x.level == params.depth

# A product takes one level. Its scale is the product of two scales, and rescaling divides it by the
# ratio of two levels' moduli. Sums take no level. A sum of products costs only one relinearisation
# and one rescaling.
square = x * x
assert square.level == params.depth - 1
total = x * x + x * 0.5 + 3
assert total.level == params.depth - 1

# Operands at different levels are brought to the lower level and to exactly the same scale.
cube = square * x
assert cube.level == params.depth - 2

# The order of products decides the depth. x^8 takes 3 levels as ((x^2)^2)^2, and 7 levels one
# factor at a time.
power = x
for _ in range(3):
    power = power * power
assert power.level == params.depth - 3

# Every operation adds noise. A formula estimates it (docs/noise.md), and the measured error agrees
# with the estimate.
for name, encrypted, expected in [
    ("x", x, values),
    ("x^2", square, values**2),
    ("x^2 + x/2 + 3", total, values**2 + values / 2 + 3),
    ("x^3", cube, values**3),
    ("x^8", power, values**8),
]:
    measured = -np.log2(np.std(client.decrypt(encrypted) - expected))
    print(
        f"{name:14} level {encrypted.level}, precision {encrypted.precision_bits:.1f} bits, measured {measured:.1f}"
    )
    assert abs(measured - encrypted.precision_bits) < 1

# When the levels are used up, the error says what would have been enough.
try:
    power * power * power
    raise AssertionError("this needs depth 5")
except jali.DepthExhausted as error:
    print(f"{type(error).__name__}: {error}")
