"""The energy counters of the processors, as Linux shows those of Intel and AMD (the kernel's power
capping framework, RAPL).

Each package has a folder intel-rapl:K with energy_uj, which counts microjoules and starts again at
0 after max_energy_range_uj. It counts all that the package does, also for other programs; the
memory is counted elsewhere.
"""

from __future__ import annotations

from pathlib import Path

from jali.errors import Unsupported

__all__ = ["Processors"]

ROOT = Path("/sys/class/powercap")


class _Package:
    def __init__(self, folder: Path) -> None:
        self._file = folder / "energy_uj"
        self._range = _number(folder / "max_energy_range_uj")
        self._last = _number(self._file)

    def since(self) -> int:
        """Microjoules since the last call."""
        now = _number(self._file)
        spent = now - self._last
        self._last = now
        return spent if spent >= 0 else spent + self._range


def _number(file: Path) -> int:
    try:
        return int(file.read_text(encoding="ascii"))
    except PermissionError:
        raise Unsupported(
            f"{file} may be read by root alone: run 'sudo chmod a+r {ROOT}/intel-rapl:*/energy_uj', or leave out --energy"
        ) from None
    except (OSError, ValueError) as error:
        raise Unsupported(f"{file} cannot be read ({error}): leave out --energy") from None


class Processors:
    """The sum over all packages. Raises Unsupported where none can be read."""

    name = "RAPL's counters of the processors"

    def __init__(self, root: Path = ROOT) -> None:
        folders = sorted(f for f in root.glob("intel-rapl:*") if f.name.count(":") == 1)
        if not folders:
            raise Unsupported(
                f"the energy of processors needs {root}/intel-rapl:*, which Linux has for Intel's and AMD's outside of virtual machines: "
                "measure on such a machine, or leave out --energy"
            )
        self._packages = [_Package(folder) for folder in folders]
        self._microjoules = 0

    def read(self) -> float:
        """Joules since it was made."""
        self._microjoules += sum(package.since() for package in self._packages)
        return self._microjoules / 1e6
