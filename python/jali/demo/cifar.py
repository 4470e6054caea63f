"""The networks of ``jali demo cifar``: ResNet-20 (He et al. 2016) on 32 x 32 colour images, with
squares or with ReLU.

A convolution, stages of blocks with 16, 32 and 64 channels, the mean of each channel, a linear
layer. A block is two 3 x 3 convolutions beside a shortcut, which takes every second pixel and zeros
for new channels where a stage begins. All of it goes through jali.compile; nothing here knows how
arrays lie in ciphertexts. tools/train/cifar_resnet20.py trained the network with squares.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jali.demo import data
from jali.demo.shipped import weights_file
from jali.errors import InvalidArgument
from jali.nn import layers, scalar
from jali.nn.execute import execute
from jali.nn.graph import Graph
from jali.nn.tracing import trace_function

__all__ = [
    "BITS",
    "LEAST",
    "MEMORY",
    "SIDE",
    "Layer",
    "Network",
    "chosen",
    "load",
    "made",
    "normalised",
    "shipped",
]

Array = npt.NDArray[np.float64]

SIDE = 32
MEAN, DEVIATION = np.array([0.4914, 0.4822, 0.4465]), np.array([0.2023, 0.1994, 0.2010])
BITS = 6  # of precision, of the largest score of the network with squares
MEMORY = 40 << 30  # of a GPU, for matrices, and as much for keys
LEAST = 10  # images on which ranges are measured
_EPSILON = 1e-5  # of batch normalisation
_MOST_BYTES = 1 << 28
_AT_ONCE = 50  # images in the clear


@dataclass(frozen=True, eq=False)
class Layer:
    """A 3 x 3 convolution, a sum and an activation: t = weight * x + offset + past y, where y is
    what the shortcut passes on.

    weight: (out, in, 3, 3).
    offset: (out,).
    past: (out,), or None without a shortcut.
    square: (out,), and the activation is square t^2; None for ReLU.
    """

    weight: Array
    offset: Array
    past: Array | None = None
    square: Array | None = None


@dataclass(frozen=True, eq=False)
class Network:
    """A ResNet for images of 32 x 32.

    layers: the first convolution, and two for each block.
    linear: (classes, channels).
    """

    name: str
    layers: tuple[Layer, ...]
    linear: Array
    bias: Array

    @property
    def squares(self) -> bool:
        """Whether it has squares; ReLU otherwise."""
        return self.layers[0].square is not None

    def scores(self, x: Any, relu: str = "relu") -> Any:
        """The scores (classes,) of a normalised image (3, rows, columns), while it is traced. relu:
        a function of jali.nn.scalar."""
        first, *others = self.layers
        y = _activated(_convolved(x, first), first, relu)
        for inner, outer in zip(others[::2], others[1::2], strict=True):
            inside = _activated(_convolved(y, inner), inner, relu)
            past = _shortcut(y, len(outer.weight)) * _channels(outer.past)
            y = _activated(_convolved(inside, outer) + past, outer, relu)
        return y.mean((1, 2)) @ self.linear.T + self.bias

    def graph(self, side: int = SIDE, relu: str = "relu") -> Graph:
        """The traced graph, for jali.compile."""
        return trace_function(lambda image: self.scores(image, relu), [np.zeros((3, side, side))])

    def clear(self, images: Array) -> Array:
        """The scores (n, classes) of normalised images (n, 3, rows, columns), in the clear."""
        graph = self.graph(images.shape[-1])
        parts = [images[k : k + _AT_ONCE] for k in range(0, len(images), _AT_ONCE)]
        return np.concatenate([execute(graph, part)[0] for part in parts])


def _channels(x: Any) -> Any:
    return x[:, None, None]


def _convolved(x: Any, layer: Layer) -> Any:
    out, inner = layer.weight.shape[:2]
    stride = out // inner if inner != 3 else 1
    return layers.convolution(
        x,
        layer.weight,
        layer.offset,
        stride=(stride, stride),
        padding=((1, 1), (1, 1)),
        dilation=(1, 1),
        groups=1,
    )


def _activated(t: Any, layer: Layer, relu: str) -> Any:
    if layer.square is None:
        return getattr(scalar, relu)(t)
    return t * t * _channels(layer.square)


def _shortcut(x: Any, channels: int) -> Any:
    added = channels - x.shape[0]
    if not added:
        return x
    return layers.padded(x[:, ::2, ::2], ((added // 2, added // 2), (0, 0), (0, 0)), "constant")


# --- weights -------------------------------------------------------------------------------------


def shipped() -> Network:
    """The network with squares that is part of Jali."""
    return load(weights_file("resnet20"))


def load(path: Path) -> Network:
    """The network of an .npz of either kind.

    - As jali ships it: for layer k, weight_k in whole steps with their size step_k (out,),
      offset_k, and past_k and square_k where it has them; linear and bias.
    - As the paper with multiplexed convolutions (E. Lee et al., ICML 2022) has it: conv1_weight,
      bn1_.., layer1_0_conv1_weight, .., linear_weight and linear_bias. Its activation is ReLU.

    Raises InvalidArgument for anything else.
    """
    arrays = _arrays(path)
    try:
        network = _own(path.stem, arrays) if "weight_0" in arrays else _published(path.stem, arrays)
        _check(network)
    except KeyError as missing:
        raise InvalidArgument(
            f"{path}: no array {missing.args[0]!r} in it, so it is no ResNet that this demo knows: give an .npz with conv1_weight, "
            "bn1_weight, layer1_0_conv1_weight and so on, or leave out --weights"
        ) from None
    except ValueError as error:
        raise InvalidArgument(f"{path}: its arrays are those of another network: {error}") from None
    return network


def _arrays(path: Path) -> dict[str, Array]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InvalidArgument(
                f"{path}: larger than {_MOST_BYTES >> 20} MiB: give a smaller file"
            )
        with np.load(path, allow_pickle=False) as found:
            return {name: found[name].astype(np.float64) for name in found.files}
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile) as error:
        raise InvalidArgument(f"{path}: not a readable .npz of weights: {error}") from None


def _own(name: str, arrays: Mapping[str, Array]) -> Network:
    made = []
    for k in range(sum(key.startswith("weight_") for key in arrays)):
        weight = arrays[f"weight_{k}"] * arrays[f"step_{k}"][:, None, None, None]
        past, square = arrays.get(f"past_{k}"), arrays.get(f"square_{k}")
        made.append(Layer(weight, arrays[f"offset_{k}"], past, square))
    return Network(name, tuple(made), arrays["linear"], arrays["bias"])


def _published(name: str, arrays: Mapping[str, Array]) -> Network:
    made = [_normalised_layer(arrays, "conv1", "bn1")]
    stage, block = 1, 0
    while f"layer{stage}_{block}_conv1_weight" in arrays:
        at = f"layer{stage}_{block}_"
        made.append(_normalised_layer(arrays, f"{at}conv1", f"{at}bn1"))
        last = _normalised_layer(arrays, f"{at}conv2", f"{at}bn2")
        made.append(Layer(last.weight, last.offset, np.ones(len(last.weight))))
        block += 1
        if f"layer{stage}_{block}_conv1_weight" not in arrays:
            stage, block = stage + 1, 0
    return Network(name, tuple(made), arrays["linear_weight"], arrays["linear_bias"])


def _normalised_layer(arrays: Mapping[str, Array], convolution: str, norm: str) -> Layer:
    """A convolution with the batch normalisation that follows it."""
    weight, bias, mean, variance = (
        arrays[f"{norm}_{part}"] for part in ("weight", "bias", "running_mean", "running_var")
    )
    factor = weight / np.sqrt(variance + _EPSILON)
    kernel = arrays[f"{convolution}_weight"] * factor[:, None, None, None]
    return Layer(kernel, bias - factor * mean)


def _check(network: Network) -> None:
    """Raises ValueError for layers that do not follow one another."""
    first, *others = network.layers
    if len(others) % 2 or first.weight.shape[1:] != (3, 3, 3) or first.past is not None:
        raise ValueError("there are not a first convolution of 3 channels and two for each block")
    if len({layer.square is None for layer in network.layers}) > 1:
        raise ValueError("some activations are squares, and others ReLU")
    channels = len(first.weight)
    for k, layer in enumerate(others):
        out, inner = layer.weight.shape[:2]
        opens = k % 2 == 0 and out == 2 * inner
        if layer.weight.shape[2:] != (3, 3) or inner != channels or not (out == inner or opens):
            raise ValueError(f"convolution {k + 1} has weights of {layer.weight.shape}")
        if (layer.past is not None) != (k % 2 == 1):
            raise ValueError(f"convolution {k + 1} should {'not ' * (k % 2 == 0)}have a shortcut")
        channels = out
    for layer in network.layers:
        for part in (layer.offset, layer.past, layer.square):
            if part is not None and part.shape != (len(layer.weight),):
                raise ValueError(f"{part.shape} numbers for {len(layer.weight)} channels")
    if network.linear.ndim != 2 or network.linear.shape[1] != channels:
        raise ValueError(f"a linear layer of {network.linear.shape} behind {channels} channels")
    if network.bias.shape != (len(network.linear),):
        raise ValueError(f"{network.bias.shape} numbers are added to {len(network.linear)} scores")


# --- images --------------------------------------------------------------------------------------


def normalised(images: npt.NDArray[np.generic]) -> Array:
    """What the client encrypts (n, 3, rows, columns), of pixels (n, rows, columns, 3) from 0 to
    255."""
    whole = (np.asarray(images, np.float64) / 255 - MEAN) / DEVIATION
    return np.ascontiguousarray(whole.transpose(0, 3, 1, 2))


def chosen(path: Path, count: int) -> tuple[data.Images, npt.NDArray[np.generic]]:
    """`count` images of a file, spread evenly over it, and the others.

    Raises InvalidArgument for a file that is missing, holds anything else, or has fewer.
    """
    found = data.load_colours(path)
    if len(found.images) < count:
        raise InvalidArgument(f"{path}: {len(found.images)} images: use a smaller --count")
    at = np.linspace(0, len(found.images) - 1, count).round().astype(int)
    others = np.delete(found.images, at, axis=0)
    return data.Images(found.images[at], found.labels[at], found.source), others


def made(count: int, side: int, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """So many drawn images, whose light and colours vary as those of photographs: waves of
    frequency f have sizes like f^(-3/2), and light varies more than colour. Figures in plain
    colours are so unlike photographs that numbers of the network with squares grow without bound.
    """
    waves = np.fft.fftfreq(side) * side
    frequency = np.maximum(np.hypot(waves[:, None], waves[None]), 1.0)

    def field(*shape: int) -> Array:
        noise = np.fft.fft2(rng.normal(size=(count, side, side, *shape)), axes=(1, 2))
        sizes = frequency.reshape(1, side, side, *(1,) * len(shape)) ** -1.5
        found = np.fft.ifft2(noise * sizes, axes=(1, 2)).real
        return np.asarray(found / found.std((1, 2), keepdims=True))

    light = field(1) * rng.uniform(0.11, 0.28, (count, 1, 1, 1))
    shade = rng.normal(0, 0.12, (count, 1, 1, 1)) + rng.normal(0, 0.04, (count, 1, 1, 3))
    images = 0.47 + light + 0.05 * field(3) + shade
    return np.asarray(np.clip(255 * images, 0, 255).astype(np.uint8))
