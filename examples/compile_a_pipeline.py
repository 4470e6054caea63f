"""A pipeline of scikit-learn, as it was fitted, on encrypted rows."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import jali

X, y = load_breast_cancer(return_X_y=True)
known, new = X[:400], X[400:464]
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(known, y[:400])

# From here on, it is encrypted.
program = jali.compile(model, known[:1], calibration=X, batch=64)
client = program.client()  # has the secret key, and no model
server = program.server(client.evaluation_keys())  # has the model, and no secret
scores = client.decrypt(server(client.encrypt(new)))

agree = np.mean((scores > 0) == model.predict(new))
print(f"{agree:.0%} of {len(new)} encrypted diagnoses are those of the model in the clear")
print(f"{program.params.depth} level, {np.mean((scores > 0) == y[400:464]):.0%} are right")
assert np.abs(scores - model.decision_function(new)).max() < 2**-10 * np.abs(scores).max() * 8
