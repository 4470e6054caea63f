"""Runs scripts in processes of their own, because they fork, run out of memory or are
interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

COMMON = """
import os, signal, sys, threading, time
import numpy as np
import jali
from jali import ckks

def small(**options):
    params = ckks.Params.create(depth=2, scale_bits=30, log_n=12, security=0, name="insecure_test")
    client = ckks.Client(params, threads=1)
    keys = client.evaluation_keys(rotations=[1])
    return params, client, keys

def right(client, server):
    v = np.linspace(-1, 1, 16)
    x = server.bind(client.encrypt(v))
    return np.allclose(client.decrypt(x * x + 1), v * v + 1, atol=1e-3)
"""


def run(script: str, seconds: float = 120, **environment: str) -> str:
    """Returns what the script prints. If it fails or does not end in time, the test fails and shows
    its output."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMMON + textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the process group has its children, too
        out, err = process.communicate()
        raise AssertionError(f"the script hangs: {out}\n{err}") from None
    assert process.returncode == 0, f"exit status {process.returncode}\n{out}\n{err}"
    return out
