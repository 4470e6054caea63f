"""The main program that the checks of this folder share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path


def run(name: str, check: Callable[[Path], Iterable[str]]) -> None:
    """Runs `check` on the tree that the first argument names, or on this one, and prints a line for
    each violation.

    Ends the program, with exit status 1 if there are violations.
    """
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    violations = list(check(root))
    for line in violations:
        print(line)
    print(f"{name}: {len(violations)} violations" if violations else f"{name}: ok")
    sys.exit(1 if violations else 0)
