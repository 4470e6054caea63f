"""A layer of a transformer's encoder: attention with softmax, GELU and normalisations, on encrypted
vectors.

`jali demo encoder` is a trained network of two such layers, 128 features and 128 words, whose
encrypted run is for a GPU.
"""

import numpy as np

import jali
from jali import nn
from jali.nn import encoders
from jali.nn.parameters import Ring
from jali.nn.program import compiled

WIDTH, TOKENS, HEADS, HIDDEN = 8, 4, 2, 16
rng = np.random.default_rng(12)
sizes = dict.fromkeys(("query", "key", "value", "mixed"), (WIDTH, WIDTH))
sizes |= {"inner": (HIDDEN, WIDTH), "outer": (WIDTH, HIDDEN)}
# Your weights belong here: matrices (outputs, inputs) and biases, as encoders.encoder_layer names
# them.
weights = {name: rng.normal(size=size) / np.sqrt(2 * size[1]) for name, size in sizes.items()}
weights |= {f"{name}_bias": np.zeros(size[0]) for name, size in sizes.items()}
weights |= {name: np.ones(WIDTH) for name in ("norm1", "norm2")}
weights |= {f"{name}_bias": np.zeros(WIDTH) for name in ("norm1", "norm2")}

x = rng.normal(size=(200, WIDTH, TOKENS))
x = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)


def layer(vectors):
    """Attention with its softmax, GELU and two normalisations, of vectors (WIDTH, TOKENS)."""
    return encoders.encoder_layer(vectors, weights, HEADS)


# What it takes with secure parameters, and how exact it will be: in the clear, without keys.
program = jali.compile(layer, x[0], calibration=x, precision_bits=5, margin=0.2)
clear, expected = program.clear(x), program.simulate(x)
print(f"{program.params.depth} levels at N = 2^{program.params.log_n}, with bootstrapping")
print(
    f"expected to be off by {np.abs(expected - clear).max():.3f} of {np.abs(clear).max():.2f} at most"
)
assert np.abs(expected - clear).max() < 2.0**-5 * 1.5 * np.abs(clear).max()

# The same plan on a ring that is TOO SMALL TO BE SECURE, so that it runs here in seconds. With
# jali.compile's program, the lines are the same.
small = compiled(
    nn.trace(layer, x[0]),
    [x],
    precision_bits=5,
    lanes=1,
    margin=0.2,
    memory=float("inf"),
    insecure_ring=Ring(10, 10),
)
client = small.client()
server = small.server(client.evaluation_keys())
result = client.decrypt(server(client.encrypt(x[:1])))
print(f"encrypted, it is off by {np.abs(result - clear[:1]).max():.3f}")
assert np.abs(result - clear[:1]).max() < 2.0**-5 * 1.5 * np.abs(clear).max()
