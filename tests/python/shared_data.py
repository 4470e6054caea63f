"""Real data for tests, which is not part of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

__all__ = ["needs", "shared"]


def shared(name: str) -> Path:
    """The file or folder shared/data/NAME beside the repository, or beside the nearest folder
    around it that has one."""
    folders = Path(__file__).resolve().parents[2:]
    places = [folder / "shared" / "data" / name for folder in folders]
    return next((path for path in places if path.exists()), places[1])


def needs(path: Path) -> pytest.MarkDecorator:
    """Skips a test without this file or folder."""
    return pytest.mark.skipif(not path.exists(), reason=f"{path.name} is not in ../shared/data")
