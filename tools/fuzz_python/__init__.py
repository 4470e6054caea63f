"""Programs of hostile objects and arguments for the public face of jali.ckks, hostile texts for
jali.simulate, and hostile files of compiled programs; __main__.py runs them."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from fuzz_python.case import Case
from fuzz_python.files import FileCase
from fuzz_python.hostile import CIPHERTEXT, field
from fuzz_python.machines import MachineCase
from fuzz_python.registry import COVERED, EXEMPT
from fuzz_python.traces import TraceCase

__all__ = ["CIPHERTEXT", "COVERED", "EXEMPT", "TARGETS", "Case", "field"]

#: What is fuzzed: cases by name, made of (seed, number, log).
TARGETS: dict[str, Callable[[int, int, Callable[[str], None]], Any]] = {
    "programs": Case,
    "traces": TraceCase,
    "machines": MachineCase,
    "files": FileCase,
}

# A seed's programs depend on this order.
for _room in ("arrays", "evaluator", "client", "explicit"):
    import_module(f"fuzz_python.{_room}")
