"""What to put in the place of what is not compiled, in words that several sources of models
share."""

from __future__ import annotations

__all__ = ["ALONG_BATCH", "CLIENT", "COMPARISON", "KEPT", "LINEAR", "OTHER", "STEP"]

#: Of what would mix the examples of a batch, or tell them apart.
ALONG_BATCH = "it works along the axis of the batch, and a program computes every example alone: let it work along another axis"
CLIENT = "end the model before it, and let the client take it of the decrypted results"
#: Behind the refusal of a model of which a client would compute a part.
KEPT = "client_side=False keeps the whole model at the server; with client_side=True, the client computes a part of it in the clear"
COMPARISON = "whether encrypted numbers are equal cannot be computed: compare the modulus of their difference with the smallest one that counts"
STEP = "steps are no polynomials: {}"
#: Of an operator that moves, copies and adds numbers; with how an example becomes a vector, is
#: multiplied by a matrix, and gets the shape of the result.
LINEAR = (
    "it is linear: {} multiplies an example as a vector by the matrix M, whose row i has, as a vector, what the operator gives for an "
    "example that is 1 at its number i and 0 elsewhere"
)
#: Of an operator of which nothing else is known.
OTHER = (
    "write this part of the model with operators that there are. Near a function of single numbers, on an interval, is a polynomial, which is a sum "
    "of multiples of powers: numpy.polynomial.Polynomial.fit(t, f(t), 7).convert().coef are its coefficients, if t are numbers over the interval. "
    "Or end the model before it, and let the client compute the rest from the decrypted results"
)
