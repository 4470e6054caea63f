"""Pictures for the documents, as text in SVG: boxes, words, arrows and charts. They have a white
ground, which the site keeps in the dark, and are the same on every machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import log10

INK, QUIET, PAPER, GRID = "#22303c", "#5b6874", "#ffffff", "#d8dde2"
EDGE, FILL, DEEP = "#1f7a78", "#eef6f6", "#d9ecec"
COLOURS = ("#1f7a78", "#d98324", "#7d5ba6")  # of the lines of a chart


def box(x: float, y: float, wide: float, high: float, fill: str = FILL) -> str:
    """A rounded rectangle."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="7" '
        f'fill="{fill}" stroke="{EDGE}" stroke-width="1.2"/>'
    )


def words(
    x: float,
    y: float,
    text: str,
    size: int,
    colour: str,
    weight: str = "normal",
    anchor: str = "start",
) -> str:
    """A line of text. anchor: which of its points lies at x: "start", "middle" or "end"."""
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" font-weight="{weight}"{place}>{escape(text)}</text>'


def line(
    points: Sequence[tuple[float, float]], colour: str, width: float = 1.2, dashes: str = ""
) -> str:
    """A line through points. dashes: lengths of strokes and gaps, e.g. "6 4"."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    broken = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"{broken}/>'


def arrow(start: float, end: float, y: float, colour: str = EDGE) -> str:
    """A horizontal arrow from x = start to x = end."""
    back = -9 if end > start else 9
    head = f"{end:g},{y:g} {end + back:g},{y - 5:g} {end + back:g},{y + 5:g}"
    shaft = line([(start, y), (end + back, y)], colour, 2)
    return f'{shaft}<polygon points="{head}" fill="{colour}"/>'


def page(wide: float, high: float, label: str, parts: Sequence[str]) -> str:
    """The whole picture. label: what it shows, for those who do not see it."""
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide:g} {high:g}" width="{wide:g}" height="{high:g}" '
        f'font-family="DejaVu Sans, Verdana, Arial, sans-serif" role="img" aria-label="{escape(label)}">\n'
        f'<rect width="{wide:g}" height="{high:g}" rx="10" fill="{PAPER}"/>\n{body}\n</svg>\n'
    )


@dataclass(frozen=True)
class Axis:
    """ticks: the values that are named, the first and the last of them at the ends of the axis.
    log: whether equal steps are equal factors."""

    title: str
    ticks: tuple[float, ...]
    text: Callable[[float], str] = "{:,g}".format
    log: bool = False

    def share(self, value: float) -> float:
        """Where a value lies, from 0 to 1."""
        low, high, at = (
            log10(v) if self.log else v for v in (self.ticks[0], self.ticks[-1], value)
        )
        return (at - low) / (high - low)


@dataclass(frozen=True)
class Curve:
    """A line of a chart. place: the index of the point beside which its name stands, and how far
    from it, in pixels."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: str
    place: tuple[int, float, float]
    dashes: str = ""


def chart(
    title: str, about: str, label: str, across: Axis, up: Axis, curves: Sequence[Curve]
) -> str:
    """A chart of lines, each with its name beside it. about: one sentence under the title."""
    wide, high, left, right, top, bottom = 900, 430, 78, 36, 74, 58
    inner, tall = wide - left - right, high - top - bottom

    def at(x: float, y: float) -> tuple[float, float]:
        return left + inner * across.share(x), top + tall * (1 - up.share(y))

    parts = [words(left, 30, title, 18, INK, "bold"), words(left, 52, about, 13, QUIET)]
    x0, x1, y0, y1 = across.ticks[0], across.ticks[-1], up.ticks[0], up.ticks[-1]
    for tick in across.ticks:
        x, y = at(tick, y0)
        parts += [line([(x, y), at(tick, y1)], GRID, 1)]
        parts += [words(x, y + 20, across.text(tick), 13, QUIET, anchor="middle")]
    for tick in up.ticks:
        x, y = at(x0, tick)
        parts += [line([(x, y), at(x1, tick)], GRID, 1)]
        parts += [words(x - 10, y + 5, up.text(tick), 13, QUIET, anchor="end")]
    parts.append(words(left + inner / 2, high - 12, across.title, 13, INK, anchor="middle"))
    turned = f"rotate(-90 18 {top + tall / 2:g})"
    middle = words(18, top + tall / 2, up.title, 13, INK, anchor="middle")
    parts.append(middle.replace("<text ", f'<text transform="{turned}" '))
    for curve in curves:
        points = [at(x, y) for x, y in curve.points]
        parts.append(line(points, curve.colour, 2.4, curve.dashes))
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{curve.colour}"/>' for x, y in points
        ]
        index, dx, dy = curve.place
        x, y = points[index]
        parts.append(words(x + dx, y + dy, curve.name, 13, curve.colour, "bold"))
    return page(wide, high, label, parts)
