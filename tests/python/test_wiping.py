"""Numbers that a client decrypted are gone from its memory once the caller drops them.

A separate process decrypts, sends the numbers through a pipe and overwrites its arrays. Then all of
its memory is read.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

CLIENT = """
import os, sys
import numpy as np
from jali import ckks

params = ckks.Params.create(depth=3, scale_bits=40, word=sys.argv[1], log_n=12, security=0, name="insecure_wiping")
client = ckks.Client(params, threads=2)
server = ckks.Evaluator(params, client.evaluation_keys(relinearise=False), threads=1).explicit
rng = np.random.default_rng()

def hand_over(array):
    view = memoryview(array).cast("B")
    while len(view):
        view = view[os.write(1, view):]

def secret(n):
    return client.encrypt(rng.uniform(-1, 1, n))

n = params.slots
for decrypt in (
    lambda: client.decrypt(secret(n)),
    lambda: client.decrypt(client.encrypt(rng.uniform(-1, 1, n) + 0.5j)),
    lambda: client.decrypt(secret((3, n // 2))),
    lambda: server.decode(server.encode(rng.uniform(-1, 1, n))),
):
    for keep in (False, True):
        out = decrypt()
        hand_over(out)
        if keep:
            kept = out
        else:
            out.fill(0)
        del out
        os.write(1, b".")
        sys.stdin.readline()
"""

TFHE = """
import os, sys
import numpy as np
from jali import tfhe

params = tfhe.Params.create(n=48, k=1, N=512, rotation_gadget=(15, 2), switch_gadget=(5, 4), lwe_noise_bits=4,
    glwe_noise_bits=10, message_bits=2, carry_bits=2, max_norm2=40, log2_p_fail=-128, name="insecure_test")
client = tfhe.Client(params, threads=2)
server = tfhe.Evaluator(params, client.evaluation_keys(), "cpu", threads=1)
rng = np.random.default_rng()

# ~x, which needs no look-up, so that the numbers are not those that were encrypted.
unsigned = ~server.bind(client.encrypt_uint(rng.integers(0, 1 << 63, 500, dtype=np.uint64), bits=64))
signed = ~server.bind(client.encrypt_int(rng.integers(-1 << 62, 1 << 62, 500), bits=63))
for array in (unsigned, signed):
    for keep in (False, True):
        out = client.decrypt(array)
        os.write(1, out.tobytes() if keep else memoryview(out).cast("B"))
        if keep:
            kept = out
        else:
            out.fill(0)
        del out
        os.write(1, b".")
        sys.stdin.readline()
"""

DISCRETE = """
import os, sys
import numpy as np
from jali import discrete

params = discrete.Params.create(integers=59, depth=1, log_n=10, security=0, name="insecure_wiping")
client = discrete.Client(params, threads=2)
server = discrete.Evaluator(params, threads=1)
rng = np.random.default_rng()
most = 1 << 57

# -x, so that the numbers are not those that were encrypted.
for given in ({"range": (-most, most)}, {"range": (-most, 2 * most)}, {"wrap": True}):
    x = -server.bind(client.encrypt(rng.integers(-most, most, 1000), **given))
    for keep in (False, True):
        out = client.decrypt(x)
        os.write(1, out.tobytes() if keep else memoryview(out).cast("B"))
        if keep:
            kept = out
        else:
            out.fill(0)
        del out
        os.write(1, b".")
        sys.stdin.readline()
"""

# At most so many numbers may lie on a stack, to which registers were saved. A buffer has thousands.
REGISTERS = 64


def count_in_memory(pid: int, numbers: npt.NDArray[np.uint64]) -> int:
    """Counts the words that lie anywhere in the writable memory of a process."""
    numbers = np.sort(numbers)
    count = 0
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            begin, end, access = re.match(r"(\w+)-(\w+) (\S+)", line).groups()  # type: ignore[union-attr]
            if "w" not in access:
                continue
            memory.seek(int(begin, 16))
            try:
                block = memory.read(int(end, 16) - int(begin, 16))
            except OSError:
                continue  # memory of a device
            words = np.frombuffer(block[: len(block) // 8 * 8], np.uint64)
            at = np.minimum(np.searchsorted(numbers, words), len(numbers) - 1)
            count += int((numbers[at] == words).sum())
    return count


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("word", ["w32", "w52"])
def test_decrypted_numbers_do_not_stay_in_memory(word: str) -> None:
    """Tests vectors of real and of complex numbers, a batch, and a decoded plaintext."""
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, word], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin and child.stdout

        n = 2048
        for what, bytes_ in [
            ("real", 8 * n),
            ("complex", 16 * n),
            ("batch", 12 * n),
            ("decoded", 16 * n),
        ]:
            for kept in (False, True):
                numbers = np.frombuffer(child.stdout.read(bytes_), np.uint64)
                assert len(numbers) == bytes_ // 8 and child.stdout.read(1) == b"."
                found = count_in_memory(child.pid, numbers[numbers >> np.uint64(32) != 0])
                if kept:  # the scan must find numbers that are still there
                    assert found >= n / 2
                else:
                    assert found <= REGISTERS, f"{found} of {len(numbers)} numbers are left: {what}"
                child.stdin.write(b"\n")
                child.stdin.flush()


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(
    ("program", "count", "kinds"),
    [
        (TFHE, 500, ("unsigned", "signed")),
        (DISCRETE, 1000, ("nearest to 0", "of another range", "residues")),
    ],
    ids=["integers of digits", "integers in slots"],
)
def test_decrypted_integers_do_not_stay_in_memory(
    program: str, count: int, kinds: tuple[str, ...]
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin and child.stdout
        for what in kinds:
            for kept in (False, True):
                numbers = np.frombuffer(child.stdout.read(8 * count), np.uint64)
                assert len(numbers) == count and child.stdout.read(1) == b"."
                found = count_in_memory(child.pid, numbers[numbers >> np.uint64(32) != 0])
                if kept:  # the scan must find numbers that are still there
                    assert found >= count / 2
                else:
                    assert found <= REGISTERS, f"{found} of {count} numbers are left: {what}"
                child.stdin.write(b"\n")
                child.stdin.flush()
