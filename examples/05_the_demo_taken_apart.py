"""Course 5: the encrypted digit classifier of `jali demo digits`, one layer at a time."""

import dataclasses

import numpy as np

from jali import ckks
from jali.demo import roles
from jali.demo.data import load_digits
from jali.demo.network import load
from jali.demo.packing import Square, simulate

# The plain model has a convolution, a square, a dense layer, a square and a dense layer. It was trained on plain
# images. Squares take the place of ReLU, because CKKS computes sums and products.
network = load("digits")
digits = load_digits().first(4)
print(
    f"{network.maps} maps of {network.kernel} x {network.kernel}, {len(network.dense1_bias)} hidden neurons"
)

# A program is the network on slots: linear maps given by diagonals, each followed by sums of rotated
# copies and a bias, and squares. It can be run on plain numbers too.
program = roles.plan(network)
packed = program.pack(digits.images)
assert np.allclose(program.unpack(simulate(program, packed)), network.logits(digits.images))

# Each step takes one level. At N = 2^13 the security table allows log2 PQ <= 214.
params = roles.make_params(program)
print(
    f"depth {params.depth} at N = 2^{params.log_n}, log2 PQ = {params.log_qp:.1f}, {params.security} bits"
)
assert params.log_qp <= 214

# Each linear map is planned for the level at which it will be used, which gives the rotations that
# need keys.
plans = {}
for number, step in enumerate(program.steps):
    if not isinstance(step, Square):
        diagonals = dict(step.diagonals)
        plans[number] = ckks.LinearTransform(params, diagonals, level=params.depth - number)
rotations = {r for plan in plans.values() for r in plan.rotations}
rotations |= {r for n in plans for r in program.steps[n].sum_rotations()}
client = ckks.Client(params)
keys = client.evaluation_keys(sorted(rotations))
server = ckks.Evaluator(params, keys)
print(f"{len(rotations)} rotation keys, {keys.nbytes / 1e6:.1f} MB, sent once")

# The server's work. After each step the client looks inside, which only the key holder can.
#
# Every value has a bound on its numbers, and an operation whose result might not fit its level is refused. Pixels are at
# most GAINS[0] here. From that, interval arithmetic allows logits of 80,000, which no image reaches. So the last layer claims a
# smaller bound, and decryption compares the numbers with it.
x = server.bind(client.encrypt(packed, magnitude=roles.MAGNITUDE, peak=roles.GAINS[0]))
for number, step in enumerate(program.steps):
    if isinstance(step, Square):
        x = x * x
    else:
        largest = roles.LARGEST_LOGIT if step is program.steps[-1] else None
        x = server.linear_transform(plans[number], x, peak=largest)
        for rotation in step.sum_rotations():
            x = x + x.rotate(rotation)
            if largest is not None:
                x = x.with_magnitude(largest / 8, peak=largest)
        x = x + step.bias
    so_far = dataclasses.replace(program, steps=program.steps[: number + 1])
    expected = simulate(so_far, packed)
    error = np.abs(client.decrypt(x, complex=False) - expected).max()
    print(
        f"{type(step).__name__:6} level {x.level}, largest value {np.abs(expected).max():6.2f}, error {error:.1e}"
    )
    assert error < 1e-2 * max(1.0, np.abs(expected).max())

logits = program.unpack(client.decrypt(x, complex=False))
plain = network.logits(digits.images)
for encrypted, clear, label in zip(logits, plain, digits.labels, strict=True):
    print(f"label {label}: encrypted says {encrypted.argmax()}, the plain model {clear.argmax()}")
assert (logits.argmax(axis=1) == plain.argmax(axis=1)).all()

# The demo does the same with the explicit evaluator, which shares more of the key switching, and
# exchanges bytes between two roles.
owner = roles.Client(program)
service = roles.Server(program, *owner.public_bytes())
answer = owner.decrypt(service(owner.encrypt(digits.images)))
assert np.abs(answer - plain).max() < 0.05 * np.abs(plain).max()
assert (answer.argmax(axis=1) == plain.argmax(axis=1)).all()
print("the demo's own client and server agree")
