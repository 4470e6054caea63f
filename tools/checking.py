"""What the checks of this folder share: the tree they look at, a line a violation, the exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path


def run(name: str, check: Callable[[Path], Iterable[str]]) -> None:
    """Ends the program: with 1 if check finds violations in the tree, the first argument or this one."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    violations = list(check(root))
    for line in violations:
        print(line)
    print(f"{name}: {len(violations)} violations" if violations else f"{name}: ok")
    sys.exit(1 if violations else 0)
