"""A residual network on encrypted images: blocks of ResNet at a small size, with squares in the
place of ReLU.

`jali demo cifar` is ResNet-20 (He et al. 2016) on colour images, with trained weights. It goes
through the same jali.compile.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import jali
from jali import nn
from jali.nn.execute import execute
from jali.nn.layers import convolution, padded

rng = np.random.default_rng(1)
images, labels = load_digits(return_X_y=True)
images = images.reshape(-1, 1, 8, 8) / 16


def kernel(outer, inner):
    return rng.normal(size=(outer, inner, 3, 3)) / np.sqrt(9 * inner)


# Your weights belong here. These convolutions are drawn, and the last layer alone is trained, so
# that the example takes seconds.
first = kernel(8, 1)
blocks = [(kernel(8, 8), kernel(8, 8)), (kernel(16, 8), kernel(16, 16))]


def convolved(x, weight, stride=1):
    steps, around = (stride, stride), ((1, 1), (1, 1))
    return convolution(x, weight, None, stride=steps, padding=around, dilation=(1, 1), groups=1)


def square(x):
    return 0.25 * x * x + 0.5 * x


def features(image):
    """The mean of every channel (16,), of an image (1, 8, 8)."""
    y = square(convolved(image, first))
    for inner, outer in blocks:
        stride, past = len(inner) // inner.shape[1], y
        if stride == 2:  # the shortcut takes every second pixel, and zeros for new channels
            past = padded(y[:, ::2, ::2], ((4, 4), (0, 0), (0, 0)), "constant")
        y = square(convolved(square(convolved(y, inner, stride)), outer) + past)
    return y.mean((1, 2))


found = execute(nn.trace(features, images[0]), images[:1200])[0]  # in the clear
head = LogisticRegression(C=1e4, max_iter=5000).fit(found, labels[:1200])


def network(image):
    """The scores (10,) of an image (1, 8, 8)."""
    return head.coef_ @ features(image) + head.intercept_


# From here on, it is encrypted. Sixteen images share a ciphertext.
program = jali.compile(network, images[0], calibration=images[:1200], precision_bits=6, batch=16)
print(f"{program.params.depth} levels at N = 2^{program.params.log_n}")
expected = program.simulate(images[1200:]).argmax(axis=1)
clear = program.clear(images[1200:])
print(
    f"{np.mean(expected == clear.argmax(axis=1)):.1%} of {len(clear)} images will get the answer of the clear network"
)

client = program.client()
server = program.server(client.evaluation_keys())
scores = client.decrypt(server(client.encrypt(images[1200:1216])))

print(f"encrypted: {scores.argmax(axis=1)}")
print(f"in clear:  {clear[:16].argmax(axis=1)}")
print(f"labels:    {labels[1200:1216]}")
assert (
    np.abs(scores - clear[:16]).max() < 2.0**-6 * 1.5 * np.abs(program.clear(images[:1200])).max()
)
