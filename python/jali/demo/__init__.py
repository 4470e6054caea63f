"""Encrypted inference from one command: ``jali demo digits`` and ``jali demo mnist --images FILE``.

A client encrypts handwritten digits, a server that has no secret key runs a trained network on
them, and the client decrypts the answer. `network` is the plain model, from which jali.compile
makes the program. `tools/train` in the repository trained the weights.

``jali demo trees`` is for rows of numbers: `trees` has the model and the two parties. ``jali demo
deep-nn`` is for digits again, by deep networks of look-ups: `deep_nn`.

``jali demo helr`` and ``jali demo rnn`` are for programs that jali.compile makes: `helr` has the
rows of a training, `recurrent` the networks, and `sentences` what they read.

``jali demo lookup``, ``jali demo nearest`` and ``jali demo aggregate`` compute with exact integers
(jali.discrete): `lookup`, `nearest` and `aggregate` have the parties of each.
"""
