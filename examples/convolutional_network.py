"""The convolutional network of LoLa, FxHENN and GIF-FHE, compiled: a convolution, a square, a dense
layer, a square, a dense layer.

`jali demo mnist --images FILE` is this network on MNIST's images of 28 x 28, and `jali demo digits`
on those of scikit-learn, as here.
"""

import numpy as np
from sklearn.datasets import load_digits

import jali
from jali.demo import network
from jali.nn.layers import convolution

w = network.load("digits")  # trained weights, which are part of Jali; yours can be any arrays
left, right, top, bottom = w.pad
images, labels = load_digits(return_X_y=True)
images = images.reshape(-1, 1, 8, 8) / 16


def scores(image):
    """The scores (10,) of an image (1, 8, 8)."""
    maps = convolution(
        image,
        w.conv_weight[:, None],
        w.conv_bias,
        stride=(w.stride, w.stride),
        padding=((top, bottom), (left, right)),
        dilation=(1, 1),
        groups=1,
    )
    hidden = w.dense1_weight @ (maps * maps).reshape(-1) + w.dense1_bias
    return w.dense2_weight @ (hidden * hidden) + w.dense2_bias


program = jali.compile(
    scores, images[0], calibration=images[:400], input_range=(0, 1), precision_bits=10
)
print(f"{program.params.depth} levels at N = 2^{program.params.log_n}")
print(program.summary("cpu"))  # the price list, before any key exists

client = program.client()
server = program.server(client.evaluation_keys())
answers = [client.decrypt(server(client.encrypt(image))) for image in images[400:408]]

encrypted, clear = np.stack(answers), w.logits(images[400:408, 0] * w.pixel_max)
print(f"encrypted: {encrypted.argmax(axis=1)}")
print(f"in clear:  {clear.argmax(axis=1)}")
print(f"labels:    {labels[400:408]}")
assert np.abs(encrypted - clear).max() < 2.0**-10 * 1.5 * np.abs(program.clear(images[:400])).max()
assert np.array_equal(encrypted.argmax(axis=1), clear.argmax(axis=1))
