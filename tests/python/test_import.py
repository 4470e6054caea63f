"""The base package needs NumPy and nothing else, and leaves the rest of the process alone."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap

import pytest

from jali import _jali

BLOCKED = """
    import sys

    class Only:
        def find_spec(self, name, path=None, target=None):
            top = name.split(".")[0]
            if top not in sys.stdlib_module_names and top not in ("jali", "numpy"):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, Only())
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Runs code in a fresh interpreter that has only the standard library, NumPy and jali."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BLOCKED) + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_import_and_compute() -> None:
    done = run("""
        import numpy as np
        import jali
        from jali import ckks
        params = ckks.Params.create(depth=1)
        client = ckks.Client(params)
        server = ckks.Evaluator(params, client.evaluation_keys())
        x = server.bind(client.encrypt(np.array([0.5, -1.25])))
        assert np.allclose(client.decrypt(x * x), [0.25, 1.5625], atol=1e-5)
    """)
    assert done.returncode == 0, done.stderr


def test_command_line_without_extras() -> None:
    for words in (["params", "--depth", "2"], ["doctor"]):
        done = run(f"from jali.cli import main; raise SystemExit(main({words}))")
        assert done.returncode == 0, done.stderr
        assert done.stdout


def test_recorded_graphs_are_compiled_and_served() -> None:
    """Without the packages that models come from: a graph is read, calibrated, compiled, saved,
    loaded and run."""
    done = run("""
        import numpy as np
        import jali
        from jali import nn
        w = np.arange(12.0).reshape(3, 4) / 12
        graph = nn.trace(lambda x: w @ np.tanh(x), np.zeros(4))
        graph = nn.graph_file.from_bytes(nn.graph_file.to_bytes(graph))
        x = np.random.default_rng().uniform(-1, 1, (40, 4))
        program = nn.Program.from_bytes(jali.compile(graph, x[:1], calibration=x).to_bytes())
        program.verify(), program.explain("levels"), program.simulate(x)
        client = program.client()
        server = program.server(client.evaluation_keys(), device="cpu")
        assert np.allclose(client.decrypt(server(client.encrypt(x))), program.clear(x), atol=0.01)
    """)
    assert done.returncode == 0, done.stderr


def test_import_loads_no_more_than_it_needs() -> None:
    done = run("""
        import numpy  # which loads some of them itself, by its version
        before = set(sys.modules)
        import jali
        for name in ("argparse", "importlib.metadata", "json", "pathlib", "multiprocessing", "jali.cli", "jali.demo", "jali.bench", "jali.simulate"):
            assert name in before or name not in sys.modules, name
    """)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("nm"), reason="needs Linux's nm")
def test_extension_gives_the_process_its_entry_alone() -> None:
    listing = ["nm", "--dynamic", "--defined-only", "--format=posix", _jali.__file__]
    symbols = subprocess.run(listing, capture_output=True, text=True, check=True).stdout
    assert [line.split()[0] for line in symbols.splitlines()] == ["PyInit__jali"]
