"""Course 10: a trained network of PyTorch, compiled."""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import jali
from jali import nn

# tools/train/digits_network.py trained a small network in PyTorch, with convolutions, batch
# normalisation, SiLU and a linear layer, on the first 1,200 images, and recorded it:
# nn.graph_file.save(nn.trace(module, example), path). With PyTorch installed, the module itself can
# stand in the place of the recorded graph below.
network = nn.graph_file.load(Path(__file__).parent / "weights" / "digits_network.jali")
images, labels = load_digits(return_X_y=True)
images = images.reshape(-1, 1, 8, 8) / 16

# The compiler folds layers into matrices, finds the range of every array on the calibration,
# approximates SiLU there, and chooses the parameters. Sixteen images share a ciphertext.
program = jali.compile(
    network, images[:1], calibration=images[:600], input_range=(0, 1), precision_bits=6, batch=16
)
print(f"{len(network)} layers became {program.params.depth} levels at N = 2^{program.params.log_n}")

# What to expect of encrypted images that the network has not seen, computed in the clear, with the
# approximations and noise.
expected = program.simulate(images[1200:]).argmax(axis=1)
print(f"{np.mean(expected == labels[1200:]):.1%} of {len(expected)} images will be right")

# The client needs the manifest alone, the server has the network.
client = program.client()
server = program.server(client.evaluation_keys())
scores = client.decrypt(server(client.encrypt(images[1200:1216])))

clear = program.clear(images[1200:1216])
print(f"encrypted: {scores.argmax(axis=1)}")
print(f"in clear:  {clear.argmax(axis=1)}")
assert np.abs(scores - clear).max() < 2.0**-6 * 1.5 * np.abs(clear).max()
assert np.mean(expected == labels[1200:]) > 0.95
