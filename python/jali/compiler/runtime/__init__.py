"""The encrypted interpreter: a graph with levels, on ciphertexts."""
