"""Digits on a terminal and in a PNG."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jali._core import files, packages
from jali.errors import Unsupported

__all__ = ["check_png", "digits_text", "write_png"]

_QUADRANTS = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"  # bit 0: upper left, 1: upper right, 2: lower left, 3: lower right
_SHADES = " ░▒▓█"
_PLAIN_SHADES = " .:*#"


def _encodable(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _lines(image: npt.NDArray[np.float64]) -> list[str]:
    """The lines of one image with pixels in [0, 1]. A pixel takes two columns in a small image,
    half a one in others."""
    rich = _encodable(_QUADRANTS + _SHADES)
    if image.shape[0] <= 14 or not rich:
        step = 1 if image.shape[0] <= 14 else 2
        shades = _SHADES if rich else _PLAIN_SHADES
        level = np.minimum((image[::step, ::step] * len(shades)).astype(int), len(shades) - 1)
        return ["".join(shades[v] * 2 for v in row) for row in level]
    on = (image >= 0.35).astype(int)
    code = on[::2, ::2] + 2 * on[::2, 1::2] + 4 * on[1::2, ::2] + 8 * on[1::2, 1::2]
    return ["".join(_QUADRANTS[v] for v in row) for row in code]


def digits_text(images: npt.NDArray[np.float64], captions: list[str], *, columns: int = 5) -> str:
    """Images (n, side, side) with pixels in [0, 1], side by side, each above its caption."""
    rows: list[str] = []
    for start in range(0, len(images), columns):
        blocks = [
            [*_lines(image), caption]
            for image, caption in zip(
                images[start : start + columns], captions[start : start + columns], strict=True
            )
        ]
        width = max(len(line) for block in blocks for line in block)
        rows.extend(
            "  ".join(line.ljust(width) for line in lines).rstrip()
            for lines in zip(*blocks, strict=True)
        )
        rows.append("")
    return "\n".join(rows)


def _pillow() -> None:
    try:
        import PIL.Image  # noqa: F401
    except ModuleNotFoundError:
        raise Unsupported(f"--png needs Pillow: {packages.install('pillow')}") from None


def check_png(path: Path) -> None:
    """Raises the errors of write_png that can be known before there is anything to draw."""
    _pillow()
    files.check(path)


def write_png(
    path: Path,
    images: npt.NDArray[np.float64],
    predictions: npt.NDArray[np.int64],
    labels: npt.NDArray[np.int64],
    *,
    most: int = 200,
) -> None:
    """Draws a grid of images with the encrypted prediction under each: green if it equals the
    label, otherwise red.

    images: (n, side, side) with pixels in [0, 1]; the first `most` are drawn.
    """
    _pillow()
    from PIL import Image, ImageDraw, ImageFont

    cell, text, columns = 56, 18, 20
    images = images[:most]
    columns = min(columns, len(images))
    rows = -(-len(images) // columns)
    sheet = Image.new("RGB", (columns * cell, rows * (cell + text)), "white")
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default()
    for i, image in enumerate(images):
        row, column = divmod(i, columns)
        x, y = column * cell, row * (cell + text)
        tile = Image.fromarray((255 - 255 * np.clip(image, 0, 1)).astype(np.uint8))
        sheet.paste(tile.resize((cell - 4, cell - 4), Image.Resampling.NEAREST), (x + 2, y + 2))
        right = predictions[i] == labels[i]
        caption = str(predictions[i]) if right else f"{predictions[i]} not {labels[i]}"
        color = "#1a7f37" if right else "#cf222e"
        draw.text((x + 4, y + cell - 1), caption, fill=color, font=font)
    picture = io.BytesIO()
    sheet.save(picture, format="PNG")
    files.replace(path, picture.getvalue())
