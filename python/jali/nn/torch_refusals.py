"""What to put in the place of operators of PyTorch that are not compiled."""

from __future__ import annotations

from jali.nn.torch_layers import OWN_STATISTICS

__all__ = ["reason"]

_CLIENT = "end the model before it, and let the client take it of the decrypted results"
_WINDOW = (
    "a maximum costs as much as a ReLU for each number under the window: train the model with {}"
)
_STEP = "steps are no polynomials: {}"
_RANDOM = "random numbers differ in every run: leave them out in eval mode"
_COMPARISON = "the server does not see the result of a comparison: use arithmetic, such as a sigmoid of the difference"

_INSTEAD = {
    "max_pool": _WINDOW.format("AvgPool"),
    "adaptive_max_pool": _WINDOW.format("AdaptiveAvgPool"),
    "fractional_max_pool": _WINDOW.format("AvgPool"),
    "max": "a maximum of many numbers takes a ReLU for each: use a mean, or end the model before it",
    "amax": "a maximum of many numbers takes a ReLU for each: use a mean, or end the model before it",
    "min": "a minimum of many numbers takes a ReLU for each: use a mean, or end the model before it",
    "amin": "a minimum of many numbers takes a ReLU for each: use a mean, or end the model before it",
    "argmax": _CLIENT,
    "argmin": _CLIENT,
    "topk": _CLIENT,
    "sort": _CLIENT,
    "log_softmax": _CLIENT,
    "_log_softmax": _CLIENT,
    "embedding": "a table is looked up by a number that the server does not see: let the client look it up, and compile the rest of "
    "the model, which takes the vectors",
    "cond": "the server does not see which branch is taken: compute both, and mix them by arithmetic",
    "while_loop": "the server does not see when a loop ends: take a fixed number of steps",
    "rand_like": _RANDOM,
    "randn_like": _RANDOM,
    "bernoulli": _RANDOM,
    "_native_batch_norm_legit": OWN_STATISTICS,
    "round": _STEP.format("leave it out"),
    "floor": _STEP.format("leave it out"),
    "ceil": _STEP.format("leave it out"),
    "sign": _STEP.format("use tanh"),
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), _COMPARISON),
}


def reason(name: str) -> str | None:
    """Why an operator is not compiled, and what to put in its place; None if nothing is known of it."""
    plain = name.removesuffix("_with_indices").rstrip("123d") if "pool" in name else name
    return _INSTEAD.get(plain)
