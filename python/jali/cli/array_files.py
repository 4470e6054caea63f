"""Arrays in files of NumPy: what a model takes, read and checked before any long work, and
results."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jali._core import files
from jali._core.console import counted_text
from jali.errors import FileError, InvalidArgument

__all__ = ["Array", "Wanted", "check_results", "check_unused", "read", "single", "write"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Wanted:
    """An array that a model takes.

    shape: of one example; None in it is a length that may be any, and None for it says that nothing
        is known of it.
    """

    name: str
    shape: tuple[int | None, ...] | None

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.name} (examples, ...)"
        lengths = ["examples", *("any" if n is None else str(n) for n in self.shape)]
        return f"{self.name} ({', '.join(lengths)})"

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Whether this is the shape of one example."""
        if self.shape is None:
            return True
        pairs = zip(self.shape, shape, strict=False)
        return len(shape) == len(self.shape) and all(n in (None, m) for n, m in pairs)


def read(paths: Sequence[Path], wanted: Sequence[Wanted], whose: str, option: str) -> list[Array]:
    """The arrays (examples, *shape) that a model takes, from one .npy for each or one .npz with
    their names. An array of one example gets the axis of the batch if its shape says that it is
    one.

    whose: the file of the model.
    option: what named the files.

    Raises FileError and InvalidArgument, which name the file.
    """
    found = _found(paths, wanted, whose, option)
    arrays = [_checked(*each, one, whose) for each, one in zip(found, wanted, strict=True)]
    counts = {where: len(array) for (where, _), array in zip(found, arrays, strict=True)}
    if len(set(counts.values())) > 1:
        each = ", ".join(f"{where} {count}" for where, count in counts.items())
        raise InvalidArgument(f"give every input the same number of examples: there are in {each}")
    return arrays


def _found(
    paths: Sequence[Path], wanted: Sequence[Wanted], whose: str, option: str
) -> list[tuple[str, Array]]:
    """For each array that is wanted, where it is from, and itself."""
    texts = ", ".join(map(str, wanted))
    loaded = [_loaded(path) for path in paths]
    if len(paths) == 1 and isinstance(loaded[0], dict):
        named, path = loaded[0], paths[0]
        if len(named) == len(wanted) == 1:
            return [(str(path), array) for array in named.values()]
        if missing := [one.name for one in wanted if one.name not in named]:
            code = ", ".join(f"{name}=.." for name in missing if name.isidentifier())
            raise InvalidArgument(
                f"{path} has {', '.join(named) or 'no array'}, and {whose} takes {texts}: save {', '.join(missing)} in it, too"
                + (f", by numpy.savez(file, {code})" if code else "")
            )
        return [(f"{path}, {one.name}", named[one.name]) for one in wanted]
    if len(paths) != len(wanted):
        raise InvalidArgument(
            f"{whose} takes {counted_text(len(wanted), 'array')}, {texts}, and there {'is' if len(paths) == 1 else 'are'} "
            f"{counted_text(len(paths), 'file')} of {option}: give {option} once for each, in this order, or one .npz with arrays of these names"
        )
    return [(str(path), _only(path, content)) for path, content in zip(paths, loaded, strict=True)]


def single(path: Path) -> Array:
    """The one array of a file. Raises FileError and InvalidArgument, which name the file."""
    return _only(path, _loaded(path))


def _only(path: Path, content: Array | dict[str, Array]) -> Array:
    if not isinstance(content, dict):
        return content
    if len(content) != 1:
        raise InvalidArgument(
            f"{path} has {counted_text(len(content), 'array')}: give one .npz for all inputs, or a file for each, with one array"
        )
    return next(iter(content.values()))


def _loaded(path: Path) -> Array | dict[str, Array]:
    """The array of an .npy, or those of an .npz by name."""
    try:
        with path.open("rb") as stream:
            head = stream.read(6)
            stream.seek(0)
            if head == b"\x93NUMPY" or head[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
                found = np.load(stream, allow_pickle=False)
                return dict(found.items()) if isinstance(found, np.lib.npyio.NpzFile) else found
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError) as error:
        if "allow_pickle" in str(error):
            raise InvalidArgument(
                f"{path} holds objects of Python: save an array of numbers, of which all examples have the same shape"
            ) from None
        raise FileError(f"{path} is damaged, or no array of NumPy: save it again") from None
    raise InvalidArgument(
        f"{path} is no file of NumPy: save the array by numpy.save(file, array), or several by numpy.savez"
    )


def _checked(where: str, array: Array, wanted: Wanted, whose: str) -> Array:
    """The array with the axis of the batch. where: it is from."""
    if array.dtype.kind not in "biuf":
        raise InvalidArgument(f"{where} holds {array.dtype}: save an array of real numbers")
    if array.ndim and wanted.takes(array.shape[1:]):
        batch = array
    elif wanted.shape is not None and wanted.takes(array.shape):
        batch = array[None]
    else:
        raise InvalidArgument(
            f"{where} has the shape {array.shape}, and {whose} takes {wanted}: give examples of this shape, one behind the other along the first axis"
        )
    if not len(batch):
        raise InvalidArgument(f"{where} holds no example: give at least one")
    if not batch.size:
        raise InvalidArgument(f"{where} has the shape {array.shape}, without a number")
    if not np.isfinite(batch).all():
        first = int(np.argmin(np.isfinite(batch).reshape(len(batch), -1).all(axis=1)))
        raise InvalidArgument(
            f"{where} holds NaN or infinity, first in example {first}: replace these numbers"
        )
    return batch


def check_unused(path: Path, force: bool, read: Sequence[Path]) -> None:
    """Raises the FileError that writing the file would raise, and one if it exists, unless --force
    was given.

    read: files that the command reads, none of which it may replace.
    """
    files.check(path)
    if path.exists() and any(other.exists() and path.samefile(other) for other in read):
        raise FileError(f"{path} is read by this command: name another file with -o")
    if path.exists() and not force:
        raise FileError(f"{path} exists: name another file with -o, or replace it with --force")


def check_results(path: Path, outputs: int) -> None:
    """Raises InvalidArgument unless a file of this name can hold so many results."""
    if path.suffix not in (".npy", ".npz"):
        raise InvalidArgument(f"{path}: results are written to a file that ends in .npy or .npz")
    if outputs > 1 and path.suffix == ".npy":
        raise InvalidArgument(
            f"{path}: there are {outputs} results, for which the name of the file has to end in .npz"
        )


def write(path: Path, results: dict[str, Array]) -> None:
    """Writes results, by name, to an .npy or an .npz, which is replaced at once or not at all."""
    if path.suffix == ".npy":
        (array,) = results.values()
        files.replace(path, _bytes(array))
        return
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "a") as archive:  # numpy.savez takes no result named "file"
        for name, array in results.items():
            archive.writestr(f"{name}.npy", _bytes(array))
    files.replace(path, stream.getvalue())


def _bytes(array: Array) -> bytes:
    """The array as an .npy."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=False)
    return stream.getvalue()
