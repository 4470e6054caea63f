"""The digit classifier of `jali demo digits`, one layer at a time."""

import numpy as np

import jali
from jali import nn
from jali.demo.data import load_digits
from jali.demo.network import PRECISION_BITS, load

# The plain model has a convolution, a square, a dense layer, a square and a dense layer. It was
# trained on plain images. Squares take the place of ReLU, because CKKS computes sums and products.
network = load("digits")
known, digits = load_digits(test=False), load_digits().first(4)
maps, _, kernel, _ = network.graph()["convolution"].attrs["weight"].shape
print(f"{maps} maps of {kernel} x {kernel}, {len(network.dense1_bias)} hidden neurons")

# The compiler takes the model as a graph, and images that say which numbers occur in it. Nothing
# here is encrypted.
pixels = network.pixels(known.images)
program = jali.compile(
    network.graph(),
    pixels[:1],
    calibration=pixels,
    input_range=(0.0, 1.0),
    precision_bits=PRECISION_BITS,
)

# Every stage can be read. First, each array is scaled: the largest number that the images gave, and
# a margin, become 1.
for node in program.stages["approximate"]:
    print(f"{node.name:14} {node.op:8} is within {node.attrs['largest']:.3g} on these images")

# The layouts say in which slot of a ciphertext each number lies. A matrix then is a few diagonals,
# and sums of rotated copies. An image is sent as one ciphertext: the client puts every pixel where
# the convolution needs it.
for node in program.stages["lower"]:
    terms = ", ".join(map(str, node.attrs.get("terms", ()))) or node.op
    print(f"{node.name:14} {node.attrs['layout']}: {terms}")

# Each layer takes one level. The scale is the smallest that leaves enough precision, and the ring
# the smallest that is secure with it: at N = 2^13 the security table allows log2 PQ <= 214.
params = program.params
print(f"depth {params.depth} at N = 2^{params.log_n}, log2 PQ = {params.log_qp:.1f}")
assert params.security == 128

# After every layer the model is compiled once more, with that layer as its end, so that the client
# can look at what the server would have there. Only the holder of the key can do that.
graph = network.graph()
tests = network.pixels(digits.images)
for k, node in enumerate(graph.nodes[1:], 1):
    part = nn.Graph(graph.nodes[: k + 1], (node.name,))
    so_far = jali.compile(
        part, pixels[:1], calibration=pixels, input_range=(0.0, 1.0), precision_bits=PRECISION_BITS
    )
    client = so_far.client()
    server = so_far.server(client.evaluation_keys())
    values = client.decrypt(server(client.encrypt(tests)))
    clear = so_far.clear(tests)
    error, largest = np.abs(values - clear).max(), np.abs(clear).max()
    print(
        f"{node.name:14} levels {so_far.params.depth}, largest value {largest:6.2f}, error {error:.1e}"
    )
    assert error < 2.0**-PRECISION_BITS * np.abs(so_far.clear(pixels)).max()

# The demo's two parties exchange bytes. The client is made from the manifest, which holds no
# weights; the server from the program and public keys.
manifest = nn.Manifest.from_bytes(program.manifest.to_bytes())
owner = nn.Client(manifest)
keys = owner.evaluation_keys()
print(f"{len(manifest.demand.rotations)} rotation keys, {keys.nbytes / 1e6:.1f} MB, sent once")
service = program.server(keys)
request = owner.encrypt(tests).to_bytes()
reply = service(nn.Message.request(request, program.manifest)).to_bytes()
logits = owner.decrypt(nn.Message.reply(reply, manifest))
plain = network.logits(digits.images)
for encrypted, clear, label in zip(logits, plain, digits.labels, strict=True):
    print(f"label {label}: encrypted says {encrypted.argmax()}, the plain model {clear.argmax()}")
assert (logits.argmax(axis=1) == plain.argmax(axis=1)).all()

# How precise that is was known before there was a key: the noise of every number is drawn at
# random.
expected = np.abs(program.simulate(tests) - program.clear(tests)).max()
print(f"error of a logit: {np.abs(logits - plain).max():.1e}, with simulated noise {expected:.1e}")
