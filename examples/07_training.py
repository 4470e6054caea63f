"""Course 7: logistic regression trained on encrypted data. The server sees no number, no label and
no weight."""

import numpy as np

from jali import ckks

rng = np.random.default_rng(7)
features = np.c_[np.ones(500), rng.uniform(-1, 1, (500, 6))]
labels = features @ [0.3, 2, -1, 1.5, 0, -2, 0.7] + rng.logistic(size=500) / 4 > 0

params = ckks.Params.create(depth=8)
client = ckks.Client(params)
server = ckks.Evaluator(params, client.evaluation_keys(rotations="powers"))

table = server.bind(client.encrypt(np.c_[features, labels], peak=1))
x, y = table[:, :7], table[:, 7]
sigmoid = ckks.functions.sigmoid((-8, 8), degree=3)

weights = np.zeros(7)
for _ in range(6):
    w = server.bind(client.encrypt(weights, peak=4))  # a fresh encryption restores the levels
    error = sigmoid(x @ w, within=(-8, 8)) - y
    w -= (error[:, None] * x).mean(axis=0) * 4
    weights = client.decrypt(w)

accuracy = np.mean((features @ weights > 0) == labels)
print(f"accuracy after 6 steps: {accuracy:.3f}, weights {weights.round(2)}")
assert accuracy > 0.9
