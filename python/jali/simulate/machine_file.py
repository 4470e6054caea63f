"""Reads machine files: exact tables and fields, each problem one error that names the place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from jali.errors import InvalidArgument
from jali.simulate.components import Bus, Channel, Memory, Part, Timing, Unit
from jali.simulate.number import STEP_NAMES, Number, read_number
from jali.simulate.steps import MOVES, Entity, Kind

__all__ = ["MODES", "Reader"]

MODES = ("published", "strict")

# The numbers of each table: what they are if the file leaves them out (None: they must be there).
_UNIT = {"count": None, "lanes": None, "energy_pj": 0.0, "area_mm2": 0.0, "leakage_w": 0.0}
_TIMING = {"passes": 1.0, "fill": 0.0, "latency": 0.0, "interval": 1.0, "words": 0.0}
_MEMORY = {
    "bytes": None,
    "ports": 1.0,
    "banks": 1.0,
    "bytes_a_cycle": math.inf,
    "energy_pj_byte": 0.0,
    "area_mm2": 0.0,
    "leakage_w": 0.0,
}
_BUS = {"count": 1.0, "bytes_a_cycle": None, "latency": 0.0, "energy_pj_byte": 0.0}
_CHANNEL = {"bytes_a_second": None, "latency": 0.0, "buffer_bytes": math.inf, "energy_pj_byte": 0.0}
_PART = {"area_mm2": 0.0, "leakage_w": 0.0}
_POSITIVE = {"count", "lanes", "passes", "interval", "bytes", "ports", "banks", "bytes_a_cycle", "bytes_a_second", "buffer_bytes"}  # fmt: skip
_WHOLE = {"count", "ports", "banks", "clusters"}
_MAY_BE_INFINITE = {"lanes", "bytes", "bytes_a_cycle", "bytes_a_second", "buffer_bytes"}
_TOP = {
    "format", "name", "about", "frequency_hz", "clusters", "leakage_w", "published_off",
    "parameters", "widths", "resources", "limits", "units", "memories", "buses", "channels", "parts",
}  # fmt: skip


class Reader:
    """Reads one machine file. Every problem is an InvalidArgument that names the place."""

    def __init__(
        self, raw: dict[str, Any], mode: str, set: dict[str, float], scale: dict[str, float]
    ):
        if mode not in MODES:
            raise InvalidArgument(f"the mode is {' or '.join(MODES)}, not {mode!r}")
        self.raw, self.set, self.scale = raw, set, scale
        self.used: dict[str, None] = {}
        self.names: dict[str, float] = {}
        self.limits: dict[str, str] = {}
        self.mode = mode
        self.off: frozenset[str] = frozenset()

    def tables_of_machine(self) -> dict[str, Any]:
        """The fields of a Machine that stand in the file."""
        raw = self.raw
        self.fields(raw, "the file", _TOP, {"format", "name", "frequency_hz", "units", "channels"})
        if raw["format"] != 1 or isinstance(raw["format"], bool):
            raise InvalidArgument("format: this build reads format 1")
        for path, value in [*self.set.items(), *self.scale.items()]:
            if (
                isinstance(value, bool)
                or not isinstance(value, int | float)
                or not math.isfinite(value)
            ):
                raise InvalidArgument(f"{path}: the new value is a finite number")
        self.read_limits()
        parameters = {}
        for name, value in self.table(raw, "parameters").items():
            if name in STEP_NAMES:
                raise InvalidArgument(
                    f"parameters.{name}: {name} is of the polynomials of a step: take another name"
                )
            if not name.isidentifier():
                raise InvalidArgument(f"parameters.{name}: a name has letters, digits and _")
            parameters[name] = self.number(value, f"parameters.{name}", name)
            self.names[name] = float(parameters[name])
        clusters = self.number(raw.get("clusters", _given(1.0)), "clusters")
        frequency = self.number(raw["frequency_hz"], "frequency_hz")
        if not 0 < float(frequency) < 1e13:
            raise InvalidArgument("frequency_hz: the frequency is above 0 and below 1e13")
        group = {
            name: {key: self.number(v, f"{name}.{key}") for key, v in self.table(raw, name).items()}
            for name in ("widths", "resources")
        }
        memories = {k: self.memory(k, v) for k, v in self.tables(raw, "memories")}
        units = {k: self.unit(k, v, memories) for k, v in self.tables(raw, "units")}
        buses = {
            k: Bus(k, *self.carrier("buses", k, v, _BUS)) for k, v in self.tables(raw, "buses")
        }
        channels = {
            k: Channel(k, *self.carrier("channels", k, v, _CHANNEL))
            for k, v in self.tables(raw, "channels")
        }
        parts = {
            k: Part(k, *self.group(f"parts.{k}", v, _PART)) for k, v in self.tables(raw, "parts")
        }
        leakage = self.number(raw.get("leakage_w", _given(0.0)), "leakage_w")
        for path in [*self.set, *self.scale]:
            if path not in self.used:
                raise InvalidArgument(
                    f"there is no number {path!r} in this machine: use a parameter ({', '.join(parameters)}), or a path "
                    "such as units.NAME.lanes that the file has"
                )
        self.once("memories", [(m.name, m.holds) for m in memories.values()])
        self.once("buses", [(b.name, b.carries) for b in buses.values()])
        self.once("channels", [(c.name, c.carries) for c in channels.values()])
        self.once("units", [(u.name, frozenset(u.kinds)) for u in units.values()])
        return {
            "name": self.text(raw["name"], "name"),
            "about": self.text(raw.get("about", ""), "about"),
            "frequency_hz": frequency,
            "clusters": clusters,
            "leakage_w": leakage,
            "parameters": parameters,
            **group,
            "limits": self.limits,
            "switched_off": self.off,
            "units": units,
            "memories": memories,
            "buses": buses,
            "channels": channels,
            "parts": parts,
        }

    def read_limits(self) -> None:
        for name, about in self.table(self.raw, "limits").items():
            self.limits[name] = self.text(about, f"limits.{name}")
        off = self.raw.get("published_off", [])
        if not isinstance(off, list) or any(not isinstance(name, str) for name in off):
            raise InvalidArgument("published_off: give a list of names of limits")
        if unknown := [name for name in off if name not in self.limits]:
            raise InvalidArgument(f"published_off: there is no limit {unknown[0]!r} in [limits]")
        self.off = frozenset(off) if self.mode == "published" else frozenset()

    def number(self, raw: Any, path: str, short: str = "", of_step: bool = False) -> Number:
        for name in (path, short):
            if name and name in self.set:
                self.used[name] = None
                old = raw if isinstance(raw, dict) else {}
                raw = {"value": float(self.set[name]), "source": old.get("source", "derived")}
                raw |= {"whole": old["whole"]} if "whole" in old else {}
        scale = 1.0
        for name in (path, short):
            if name and name in self.scale:
                self.used[name] = None
                scale *= self.scale[name]
        limit = raw.get("limit", "") if isinstance(raw, dict) else ""
        off = isinstance(limit, str) and limit in self.off
        limits = frozenset(self.limits)
        number = read_number(
            raw, path, self.names, off=off, limits=limits, scale=scale, of_step=of_step
        )
        last = path.rpartition(".")[2]
        if number.value is not None and not path.startswith("parameters."):
            value = number.value
            if value < 0 or ((last in _POSITIVE or path.startswith("widths.")) and value <= 0):
                raise InvalidArgument(f"{path}: the value is {value:g}, and must be above 0")
            if last in _WHOLE and not (1 <= value <= 1 << 16 and value % 1 == 0):
                raise InvalidArgument(f"{path}: {value:g} is no whole number from 1 to 2^16")
            if math.isinf(value) and last not in _MAY_BE_INFINITE:
                raise InvalidArgument(f"{path}: the value is finite")
        elif number.value is not None and math.isinf(number.value):
            raise InvalidArgument(f"{path}: the value is finite")
        return number

    def group(self, path: str, raw: Any, given: Mapping[str, float | None]) -> list[Number]:
        """The numbers of a table, in the order of ``given``."""
        of_step = given is _TIMING or given is _UNIT
        needed = {name for name, value in given.items() if value is None}
        self.fields(raw, path, set(given) | {"about"}, needed)
        return [
            self.number(
                raw.get(name, _given(value or 0.0)),
                f"{path}.{name}",
                of_step=of_step and name in {*_TIMING, "lanes"},
            )
            for name, value in given.items()
        ]

    def unit(self, name: str, raw: Any, memories: Mapping[str, Memory]) -> Unit:
        path = f"units.{name}"
        texts = {"scope", "memory", "kinds", "about"}
        self.fields(raw, path, set(_UNIT) | texts, {"kinds"})
        memory = self.text(raw.get("memory", ""), f"{path}.memory")
        if memory and memory not in memories:
            raise InvalidArgument(f"{path}.memory: there is no memory {memory!r}")
        rest = {k: v for k, v in raw.items() if k not in texts}
        count, lanes, energy, area, leakage = self.group(path, rest, _UNIT)
        kinds: dict[Kind, Timing] = {}
        for names, timing in self.tables(raw, "kinds", path):
            found = Timing(*self.group(f"{path}.kinds.{names}", timing, _TIMING))
            for word in names.split("+"):
                if word not in Kind.__members__ or Kind[word] in MOVES:
                    served = ", ".join(k.name for k in Kind if k not in MOVES)
                    raise InvalidArgument(f"{path}.kinds: {word!r} is none of {served}")
                if Kind[word] in kinds:
                    raise InvalidArgument(f"{path}.kinds: {word} is there twice: leave one out")
                kinds[Kind[word]] = found
        return Unit(name, self.scope(raw, path), count, lanes, memory, energy, area, leakage, kinds)

    def memory(self, name: str, raw: Any) -> Memory:
        path = f"memories.{name}"
        self.fields(raw, path, set(_MEMORY) | {"scope", "holds", "about"}, set())
        rest = {k: v for k, v in raw.items() if k not in ("scope", "holds", "about")}
        numbers = self.group(path, rest, _MEMORY)
        holds = self.entities(raw.get("holds", []), f"{path}.holds")
        return Memory(name, self.scope(raw, path), holds, *numbers)

    def carrier(self, of: str, name: str, raw: Any, given: Mapping[str, float | None]) -> list[Any]:
        path = f"{of}.{name}"
        self.fields(raw, path, set(given) | {"carries", "about"}, {"carries"})
        rest = {k: v for k, v in raw.items() if k not in ("carries", "about")}
        return [self.entities(raw["carries"], f"{path}.carries"), *self.group(path, rest, given)]

    def entities(self, raw: Any, path: str) -> frozenset[Entity]:
        names = [e.name.lower() for e in Entity if e]
        if raw == ["all"]:
            return frozenset(e for e in Entity if e)
        if not isinstance(raw, list) or any(name not in names for name in raw):
            raise InvalidArgument(f'{path}: give a list of {", ".join(names)}, or ["all"]')
        return frozenset(Entity[name.upper()] for name in raw)

    def scope(self, raw: Mapping[str, Any], path: str) -> str:
        scope = raw.get("scope", "chip")
        if scope not in ("chip", "cluster"):
            raise InvalidArgument(f'{path}.scope: use "chip" or "cluster"')
        return str(scope)

    def once(self, of: str, found: list[tuple[str, frozenset[Any]]]) -> None:
        """Refuses two things that serve the same."""
        seen: dict[Any, str] = {}
        for name, served in found:
            for item in sorted(served):
                if item in seen:
                    raise InvalidArgument(
                        f"{of}.{name}: {item.name} is served by {seen[item]!r} already"
                    )
                seen[item] = name

    def table(self, raw: Mapping[str, Any], name: str) -> dict[str, Any]:
        found = raw.get(name, {})
        if not isinstance(found, dict):
            raise InvalidArgument(f"{name}: write a table, [{name}]")
        return found

    def tables(
        self, raw: Mapping[str, Any], name: str, path: str = ""
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for key, value in self.table(raw, name).items():
            if not isinstance(value, dict):
                raise InvalidArgument(f"{path + '.' if path else ''}{name}.{key}: write a table")
            yield key, value

    def fields(self, raw: Any, path: str, known: set[str], needed: set[str]) -> None:
        if unknown := sorted(set(raw) - known):
            raise InvalidArgument(
                f"{path}: there is no field {unknown[0]!r}: use {', '.join(sorted(known))}"
            )
        if missing := sorted(needed - set(raw)):
            raise InvalidArgument(f"{path}: the field {missing[0]!r} is missing")

    def text(self, raw: Any, path: str) -> str:
        if not isinstance(raw, str) or len(raw) > 1000:
            raise InvalidArgument(f"{path}: give a text of at most 1000 characters")
        return raw


def _given(value: float) -> dict[str, Any]:
    """The form of a number that the file leaves out."""
    return {"value": value, "source": "derived:left out"}
