"""The tables of docs/hardware.md are those of the models."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_has_every_table_as_the_models_give_it() -> None:
    tool = ROOT / "tools" / "hardware_page.py"
    done = subprocess.run(
        [sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
