"""The images: scikit-learn's bundled digits, MNIST-shaped files, and files of colour images."""

from __future__ import annotations

import gzip
import math
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jali._core import packages
from jali.demo.split import digits_test_indices
from jali.errors import InvalidArgument, Unsupported

__all__ = ["Images", "load_colours", "load_digits", "load_mnist", "others"]

SIDE = 28
KNOWN = 256  # images on which a program is calibrated
FEW = 64  # fewer say little about others
MAX_FILE_BYTES = 1 << 30
_IDX_UBYTE = 0x08


@dataclass(frozen=True)
class Images:
    """Raw pixels (n, side, side), or (n, side, side, 3) with colours, labels (n,), and where they
    come from."""

    images: npt.NDArray[np.generic]
    labels: npt.NDArray[np.int64]
    source: str

    def first(self, limit: int | None) -> Images:
        """The first `limit` of them; all for None."""
        return Images(self.images[:limit], self.labels[:limit], self.source)


def load_digits(*, test: bool = True) -> Images:
    """The 360 of scikit-learn's 1,797 digits on which the network was not trained; or the others.

    Raises Unsupported without scikit-learn.
    """
    try:
        from sklearn import datasets
    except ModuleNotFoundError as error:
        raise Unsupported(
            f"the digits demo needs scikit-learn ({error.name} is missing): {packages.install('scikit-learn')}"
        ) from None
    digits = datasets.load_digits()
    chosen = np.isin(np.arange(len(digits.images)), digits_test_indices()) == test
    kind = "test" if test else "training"
    return Images(
        digits.images[chosen],
        digits.target[chosen].astype(np.int64),
        f"scikit-learn's digits, the {chosen.sum()} {kind} images",
    )


def load_mnist(images: Path, labels: Path | None = None) -> Images:
    """Images from an .npz with `images` and `labels`, or from a pair of IDX files, which may be
    gzipped.

    labels: the IDX file of the labels. None looks beside `images` for a file of the usual name.

    Raises InvalidArgument for files that are missing or hold anything else.
    """
    _check_size(images)
    if zipfile.is_zipfile(images):
        if labels is not None:
            raise InvalidArgument("--labels goes with an IDX file of images; an .npz holds its own")
        pixels, marks = _read_npz(images)
    else:
        pixels = _read_idx(images, "images")
        marks = _read_idx(labels or _labels_beside(images), "labels")
    if pixels.ndim != 3 or pixels.shape[1:] != (SIDE, SIDE):
        raise InvalidArgument(f"{images}: images have shape {pixels.shape}, not (n, 28, 28)")
    return _checked(images, pixels, marks)


def others(images: npt.NDArray[np.generic], used: int) -> npt.NDArray[np.generic]:
    """Images to calibrate a program on that encrypts the first `used`: of those behind them, or of
    all, if fewer than FEW are left. They are spread evenly, and at most KNOWN."""
    rest = images[used:] if len(images) - used >= FEW else images
    return np.asarray(rest[np.linspace(0, len(rest) - 1, min(len(rest), KNOWN)).astype(int)])


def load_colours(images: Path) -> Images:
    """Images of three colours from an .npz with `images` (n, side, side, 3) and `labels` (n,).

    Raises InvalidArgument for files that are missing or hold anything else.
    """
    if not images.is_file() or not zipfile.is_zipfile(images):
        raise InvalidArgument(
            f"{images}: no .npz: give --images an .npz with `images` (n, 32, 32, 3) uint8 and `labels` (n,)"
        )
    _check_size(images)
    pixels, marks = _read_npz(images)
    if pixels.ndim != 4 or pixels.shape[1] != pixels.shape[2] or pixels.shape[3] != 3:
        raise InvalidArgument(f"{images}: images have shape {pixels.shape}, not (n, 32, 32, 3)")
    return _checked(images, pixels, marks)


def _checked(
    images: Path, pixels: npt.NDArray[np.generic], marks: npt.NDArray[np.generic]
) -> Images:
    """Images and labels, if there are some and they fit. Raises InvalidArgument otherwise."""
    if len(pixels) == 0:
        raise InvalidArgument(f"{images}: there are no images in it: give a file that has some")
    if marks.shape != (len(pixels),):
        raise InvalidArgument(
            f"{images}: {len(pixels)} images, but labels of shape {marks.shape}: give one label for each image"
        )
    if not np.issubdtype(marks.dtype, np.integer) or not np.isin(marks, np.arange(10)).all():
        raise InvalidArgument(f"{images}: labels must be whole numbers from 0 to 9")
    if pixels.dtype != np.uint8:
        raise InvalidArgument(f"{images}: pixels are {pixels.dtype}, not uint8 from 0 to 255")
    return Images(pixels, marks.astype(np.int64), str(images))


def _check_size(path: Path) -> None:
    if not path.is_file():
        raise InvalidArgument(
            f"{path}: no such file: give --images an .npz or an IDX file of images"
        )
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InvalidArgument(
            f"{path}: larger than {MAX_FILE_BYTES >> 20} MiB: give a smaller file"
        )


def _read_npz(path: Path) -> tuple[npt.NDArray[np.generic], npt.NDArray[np.generic]]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            missing = {"images", "labels"} - set(arrays.files)
            if missing:
                raise InvalidArgument(
                    f"{path}: no array named {' or '.join(sorted(missing))} in it: an .npz needs "
                    "`images`, of bytes, and `labels` (n,)"
                )
            return arrays["images"], arrays["labels"]
    except (ValueError, OSError, EOFError, zipfile.BadZipFile, KeyError) as error:
        raise InvalidArgument(f"{path}: not a readable .npz: {error}") from None


def _read_idx(path: Path, what: str) -> npt.NDArray[np.uint8]:
    """An IDX file of unsigned bytes: two zeros, type, rank, big-endian sizes, data."""
    _check_size(path)
    with path.open("rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    try:
        if compressed:
            with gzip.open(path, "rb") as stream:
                data = stream.read(MAX_FILE_BYTES + 1)
        else:
            data = path.read_bytes()
    except (OSError, EOFError) as error:
        raise InvalidArgument(f"{path}: not readable: {error}") from None
    rank = data[3] if len(data) > 3 else 0
    if data[:3] != bytes([0, 0, _IDX_UBYTE]) or rank == 0 or len(data) < 4 + 4 * rank:
        raise InvalidArgument(f"{path}: neither an .npz nor an IDX file of {what} in bytes")
    shape = [int.from_bytes(data[4 + 4 * i : 8 + 4 * i], "big") for i in range(rank)]
    if math.prod(shape) != len(data) - 4 - 4 * rank:
        raise InvalidArgument(
            f"{path}: the header announces {' x '.join(map(str, shape))} bytes, and "
            f"{len(data) - 4 - 4 * rank} follow: the file is damaged"
        )
    return np.frombuffer(data, np.uint8, offset=4 + 4 * rank).reshape(shape)


def _labels_beside(images: Path) -> Path:
    """train-images-idx3-ubyte.gz -> train-labels-idx1-ubyte.gz, with or without .gz."""
    name = images.name.replace("images", "labels").replace("idx3", "idx1")
    beside = images.with_name(name)
    other = beside.with_suffix("") if beside.suffix == ".gz" else Path(f"{beside}.gz")
    for candidate in (beside, other):
        if name != images.name and candidate.is_file():
            return candidate
    raise InvalidArgument(
        f"{images}: there are no labels beside it ({beside.name}): name them with --labels"
    )
