"""A subinterpreter is refused before anything is registered, and the main interpreter goes on."""

from __future__ import annotations

import textwrap

import pytest
from alone import run

pytest.importorskip("_xxsubinterpreters", reason="this Python has no subinterpreters to test with")

#: What each script begins with: a function that runs code in an interpreter and returns what it
#: prints.
BEGIN = """
import _xxsubinterpreters as interpreters

def inside(one, code):
    read, write = os.pipe()
    interpreters.run_string(one, f"import os, sys\\nout = os.fdopen({write}, 'w')\\n" + code + "\\nout.close()")
    with os.fdopen(read) as file:
        return file.read()

REFUSED = '''
for name in ("jali", "jali.ckks", "jali._jali", "jali", "jali.nn", "jali._jali_bench"):
    try:
        __import__(name)
    except ImportError as error:
        out.write(f"{type(error).__name__}: {error}\\\\n")
    else:
        out.write("imported\\\\n")
out.write(f"{sorted(m for m in sys.modules if m.partition('.')[0] == 'numpy')}\\\\n")
'''

def refused(one):
    lines = inside(one, REFUSED).splitlines()
    assert len(lines) == 7 and lines[-1] == "[]", lines
    assert all(line.startswith("ImportError: jali works in the main interpreter") for line in lines[:-1]), lines
"""


def script(text: str) -> str:
    return BEGIN + textwrap.dedent(text)


@pytest.mark.parametrize("isolated", [True, False])
def test_the_main_interpreter_goes_on(isolated: bool) -> None:
    out = run(
        script(f"""
        params, client, keys = small()
        server = ckks.Evaluator(params, keys, threads=1)
        for _ in range(3):
            one = interpreters.create(isolated={isolated})
            refused(one)
            assert right(client, server)
            interpreters.destroy(one)
        assert right(client, server)
        again = small()
        assert right(again[1], ckks.Evaluator(again[0], again[2], threads=1))
        try:
            ckks.Params.create(depth=-1)
        except jali.InvalidArgument:
            print("right")
        """)
    )
    assert out.split() == ["right"]


def test_the_first_import_may_be_that_of_a_subinterpreter() -> None:
    """COMMON of alone.py imports jali, so that a fresh process is needed."""
    import subprocess
    import sys

    text = "import os, sys\n" + script("""
        first, second = interpreters.create(), interpreters.create()
        refused(first)
        refused(second)
        import jali
        from jali import ckks
        refused(first)
        params = ckks.Params.create(depth=1, scale_bits=30, log_n=11, security=0, name="insecure_test")
        client = ckks.Client(params, threads=1)
        server = ckks.Evaluator(params, client.evaluation_keys(), threads=1)
        x = server.bind(client.encrypt([0.5]))
        assert abs(client.decrypt(x * x)[0] - 0.25) < 1e-3
        interpreters.destroy(first)
        interpreters.destroy(second)
        assert abs(client.decrypt(x * x)[0] - 0.25) < 1e-3
        print("right")
        """)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.split() == ["right"], done.stdout + done.stderr
