"""A recurrent network and an LSTM that read encrypted sequences: the rows of an image, one part
after the other.

`jali demo rnn` and `jali demo rnn --cell lstm` read sentences of up to 200 words with 128 units,
and bootstrap on their way.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import jali
from jali.nn import workloads

# Cubic polynomials near the sigmoid on [-4, 4] and near tanh on [-2, 2].
SIGMOID, TANH = (0.5, 0.2166, 0.0, -0.0066), (0.0, 0.8664, 0.0, -0.1056)
FEATURES, KNOWN = 16, 1200
images, labels = load_digits(return_X_y=True)
words = images.reshape(len(images), -1, FEATURES) / 16  # four words of two rows each
rng = np.random.default_rng(4)


def cell(units, gates):
    """Weights of a cell. Yours belong here; these are drawn, and the client's last layer alone is
    trained."""
    inner = rng.normal(size=(gates * units, units)) * 0.5 / np.sqrt(units)
    outer = rng.normal(size=(gates * units, FEATURES)) * 1.5 / np.sqrt(FEATURES)
    return inner, outer, np.zeros(gates * units)


plain, gated = cell(16, 1), cell(8, 4)


def recurrent(sequence):
    """The last state (16,) after words (steps, FEATURES): one loop, whatever its length is."""
    return workloads.recurrent(sequence, *plain, activation=TANH)


def lstm(sequence):
    """The last state (8,) of an LSTM with its four gates, in PyTorch's order."""
    return workloads.lstm(sequence, *gated, gate=SIGMOID, activation=TANH)


for network, steps in ((recurrent, 4), (lstm, 2)):
    x = words[:, :steps]
    clear = np.stack([network(sequence) for sequence in x])
    head = LogisticRegression(max_iter=1000, C=100).fit(clear[:KNOWN], labels[:KNOWN])

    program = jali.compile(network, x[0], calibration=x[:KNOWN], precision_bits=10, batch=16)
    client = program.client()  # it also keeps the last layer
    server = program.server(client.evaluation_keys())
    states = client.decrypt(server(client.encrypt(x[KNOWN : KNOWN + 16])))

    expected = head.predict(program.simulate(x[KNOWN:])) == head.predict(clear[KNOWN:])
    print(
        f"{network.__name__}: {steps} steps in {program.params.depth} levels, N = 2^{program.params.log_n}"
    )
    print(
        f"  {expected.mean():.1%} of {len(expected)} sequences will get the answer of the clear network"
    )
    print(
        f"  encrypted: {head.predict(states)}\n  in clear:  {head.predict(clear[KNOWN : KNOWN + 16])}"
    )
    assert np.abs(states - clear[KNOWN : KNOWN + 16]).max() < 2.0**-10 * np.abs(clear[:KNOWN]).max()
