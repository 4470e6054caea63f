"""What to put in the place of operators of PyTorch that are not compiled."""

from __future__ import annotations

from jali.compiler.frontends.replacements import CLIENT, COMPARISON, LINEAR, STEP
from jali.compiler.frontends.torch_layers import OWN_STATISTICS

__all__ = ["reason"]

_RANDOM = "random numbers differ in every run: leave them out in eval mode"

_LINEAR = LINEAR.format("(torch.flatten(x, 1) @ M).reshape(shape)")

_INSTEAD = {
    "fractional_max_pool": "its windows are random: use MaxPool",
    "argmax": CLIENT,
    "argmin": CLIENT,
    "topk": CLIENT,
    "sort": CLIENT,
    "log_softmax": CLIENT,
    "_log_softmax": CLIENT,
    "embedding": "a table is looked up by a number that the server does not see: let the client look it up, and compile the rest of "
    "the model, which takes the vectors",
    "im2col": "a convolution whose weights are 0 and 1 gives the same: torch.nn.functional.conv2d(x, torch.eye(c * k * k).reshape(c * k * k, c, "
    "k, k)).flatten(2) for windows of k by k of c channels, with the same stride, padding and dilation",
    "cumsum": "write x @ torch.ones(n, n).triu() along a last axis of n numbers",
    **dict.fromkeys(
        (
            "col2im",
            "pixel_unshuffle",
            "upsample_bilinear2d",
            "upsample_bicubic2d",
            "upsample_linear1d",
            "tril",
            "triu",
        ),
        _LINEAR,
    ),
    "cond": "the server does not see which branch is taken: compute both, and mix them by arithmetic",
    "while_loop": "the server does not see when a loop ends: take a fixed number of steps",
    "rand_like": _RANDOM,
    "randn_like": _RANDOM,
    "bernoulli": _RANDOM,
    "_native_batch_norm_legit": OWN_STATISTICS,
    "round": STEP.format("leave it out"),
    "floor": STEP.format("leave it out"),
    "ceil": STEP.format("leave it out"),
    **dict.fromkeys(("eq", "ne"), COMPARISON),
}


def reason(name: str) -> str | None:
    """Why an operator is not compiled, and what to put in its place; None if nothing is known of
    it."""
    plain = name.removesuffix("_with_indices").rstrip("123d") if "pool" in name else name
    return _INSTEAD.get(plain)
