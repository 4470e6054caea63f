"""The files of trained weights that come with Jali."""

from __future__ import annotations

from pathlib import Path

from jali.errors import FileError

__all__ = ["weights_file"]

FOLDER = Path(__file__).parent / "weights"


def weights_file(name: str) -> Path:
    """The file of the trained weights `name`.

    Raises FileError if this installation has none, as one from a wheel, which has "digits" and "mnist".
    """
    path = FOLDER / f"{name}.npz"
    if not path.is_file():
        raise FileError(
            f"this installation has no weights {name!r}: wheels have those of digits and mnist alone. "
            f"Copy python/jali/demo/weights/{path.name} of Jali's repository to {path}, or run "
            "'pip install .' in a copy of the repository"
        )
    return path
