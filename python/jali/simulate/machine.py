"""Machines as data: units, memories, buses and channels of an accelerator, read from a TOML file.

docs/how-to/simulate-a-machine.md describes the file. A machine has one set of constants. In the
mode ``published`` the limits that the file names in ``published_off`` are switched off; ``strict``
keeps all of them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from jali.errors import FileError, InvalidArgument, LimitExceeded, Unsupported
from jali.simulate.components import Bus, Channel, Memory, Part, Timing, Unit
from jali.simulate.machine_file import MODES, Reader
from jali.simulate.number import Number
from jali.simulate.steps import Kind

__all__ = ["MODES", "Bus", "Channel", "Machine", "Memory", "Part", "Timing", "Unit", "shipped"]

LARGEST = 1 << 20  # bytes of a machine file
FOLDER = Path(__file__).parent / "machines"


def shipped() -> list[str]:
    """The names of the machines that come with Jali."""
    return sorted(file.stem for file in FOLDER.glob("*.toml"))


@dataclass(frozen=True)
class Machine:
    """An accelerator. parameters: what counts are derived from, and what ``set`` changes by name.
    widths: bytes of a word, by what it holds.
    resources: counts that are no area (DSPs).
    limits: name to what it says.
    switched_off: the limits that this mode leaves out."""

    name: str
    about: str
    mode: str
    frequency_hz: Number
    clusters: Number
    leakage_w: Number
    parameters: dict[str, Number]
    widths: dict[str, Number]
    resources: dict[str, Number]
    limits: dict[str, str]
    switched_off: frozenset[str]
    units: dict[str, Unit]
    memories: dict[str, Memory]
    buses: dict[str, Bus]
    channels: dict[str, Channel]
    parts: dict[str, Part]
    source: str = ""  # the text of the file
    changes: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def load(
        name: str | Path,
        mode: str = "strict",
        set: Mapping[str, float] | None = None,
        scale: Mapping[str, float] | None = None,
    ) -> Machine:
        """A machine that comes with Jali, by name, or one from a file.

        mode: "published" or "strict".
        set: new values of parameters ("clp") or of numbers by path ("units.fft.lanes").
        scale: factors of numbers by path.

        Raises InvalidArgument for a file that is no machine and for paths that it does not have,
        FileError for a file that cannot be read.
        """
        text = str(name)
        file = Path(text)
        if file.suffix != ".toml" and file.name == text:
            file = FOLDER / f"{text}.toml"
            if text not in shipped():
                raise InvalidArgument(
                    f"there is no machine {text!r}: use {', '.join(shipped())}, or the path of a .toml file"
                )
        try:
            with file.open("rb") as stream:
                raw = stream.read(LARGEST + 1)
        except OSError as error:
            raise FileError(f"{file}: {error.strerror or error}") from None
        if len(raw) > LARGEST:
            raise LimitExceeded(f"{file}: a machine file has at most {LARGEST} bytes")
        try:
            return Machine.parse(raw.decode("utf-8"), mode, set, scale)
        except UnicodeDecodeError:
            raise InvalidArgument(f"{file}: the file is not UTF-8") from None
        except InvalidArgument as error:
            raise InvalidArgument(f"{file.name}: {error}") from None

    @staticmethod
    def parse(
        text: str,
        mode: str = "strict",
        set: Mapping[str, float] | None = None,
        scale: Mapping[str, float] | None = None,
    ) -> Machine:
        """A machine from the text of a file; see load."""
        if len(text) > LARGEST:
            raise LimitExceeded(f"a machine file has at most {LARGEST} bytes")
        try:
            raw = tomllib.loads(text)
        except (
            ValueError,
            RecursionError,
        ) as error:  # ValueError: also a number of thousands of digits
            reason = "a number is too long" if "digits" in str(error) else error
            raise InvalidArgument(f"the file is not TOML: {reason}") from None
        changes, scales = dict(set or {}), dict(scale or {})
        try:
            tables = Reader(raw, mode, changes, scales).tables_of_machine()
        except InvalidArgument as error:
            if not changes:
                raise
            given = ", ".join(f"{path} = {value}" for path, value in changes.items())
            raise InvalidArgument(f"{error} (with {given})") from None
        return Machine(mode=mode, source=text, changes=changes, scales=scales, **tables)

    def changed(
        self, set: Mapping[str, float] | None = None, scale: Mapping[str, float] | None = None
    ) -> Machine:
        """This machine with other values; see load."""
        scales = dict(self.scales)
        for path, factor in (scale or {}).items():
            scales[path] = scales.get(path, 1.0) * factor
        return Machine.parse(self.source, self.mode, {**self.changes, **(set or {})}, scales)

    def in_mode(self, mode: str) -> Machine:
        """This machine in another mode."""
        return Machine.parse(self.source, mode, self.changes, self.scales)

    def numbers(self) -> Iterator[Number]:
        """Every number of the file, in its order, without those that the file leaves out."""
        yield from (self.frequency_hz, self.clusters, self.leakage_w)
        for table in (self.parameters, self.widths, self.resources):
            yield from table.values()
        for group in (self.units, self.memories, self.buses, self.channels, self.parts):
            for item in group.values():
                values = [getattr(item, f.name) for f in fields(item)]
                yield from (value for value in values if isinstance(value, Number))
                for timing in getattr(item, "kinds", {}).values():
                    yield from (getattr(timing, f.name) for f in fields(timing))

    def timing(self) -> dict[str, tuple[float, float]]:
        """Every number that a time can depend on, by path: all but energy and area. Formulas of n
        are taken at two lengths."""
        costs = ("energy_pj", "energy_pj_byte", "leakage_w", "area_mm2")
        return {
            n.path: (n.at(1024), n.at(4096)) for n in self.numbers() if not n.path.endswith(costs)
        }

    def constants(self, *sources: str) -> list[Number]:
        """The numbers whose source begins with one of the words: constants("calibrated",
        "assumed")."""
        found = {n.path: n for n in self.numbers() if n.source.partition(":")[0] in sources}
        return list(found.values())

    def unit_of(self, kind: Kind) -> Unit | None:
        """The unit that serves a kind of arithmetic."""
        return next((unit for unit in self.units.values() if kind in unit.kinds), None)

    def check_degree(self, n: int) -> None:
        """Raises Unsupported if polynomials of n coefficients are longer than the file's parameter
        n_max, if it has one."""
        most = self.parameters.get("n_max")
        if most is not None and n > float(most):
            raise Unsupported(
                f"N is {n}, and the transforms of {self.name} have at most {float(most):.0f} points: give --set n_max={n}, or take a smaller N"
            )

    def instances(self, unit: Unit) -> int:
        """How many pipelines of a unit the chip has."""
        return int(float(unit.count)) * (
            int(float(self.clusters)) if unit.scope == "cluster" else 1
        )

    @property
    def area_mm2(self) -> float:
        """The area of all units, memories and parts, as far as the file gives it."""
        area = sum(self.instances(u) * float(u.area_mm2) for u in self.units.values())
        clusters = float(self.clusters)
        for memory in self.memories.values():
            area += float(memory.area_mm2) * (clusters if memory.scope == "cluster" else 1)
        return area + sum(float(part.area_mm2) for part in self.parts.values())
