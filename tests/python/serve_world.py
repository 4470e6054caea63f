"""Programs of three kinds on small rings that are not secure, and keys of their clients."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import seeds
from integer_models import program as integer_program
from tfhe_world import make

from jali import nn
from jali.compiler.driver import compiled
from jali.compiler.planning.parameters import Ring
from jali.serve.keys import KeyStore
from jali.serve.uploads import Uploads
from jali.tfhe import trees

#: Opens a store in a folder, with the options of KeyStore; see the fixture "opened".
Opened = Callable[..., KeyStore]
KINDS = ("network", "deep", "integers", "trees")


@dataclass(frozen=True)
class Served:
    """A program's manifest, and the bytes of the keys of two clients with their names."""

    manifest: Any
    keys: tuple[bytes, bytes]
    key_ids: tuple[str, str]

    @property
    def program(self) -> str:
        return str(self.manifest.fingerprint)


def network(f: Callable[[Any], Any], levels: int, bits: float = 6, **options: Any) -> nn.Program:
    x = np.random.default_rng(5).uniform(-1, 1, (60, 8))
    return compiled(
        nn.trace(f, x[0]),
        [x],
        precision_bits=bits,
        lanes=2,
        memory=1 << 30,
        insecure_ring=Ring(10, levels),
        **options,
    )


def _mixed(x: Any, rows: int = 8, rounds: int = 2) -> Any:
    rng = np.random.default_rng(7)
    for _ in range(rounds):
        w = rng.normal(size=(rows, x.shape[0])) / (2 * rows**0.5)
        x = w @ (0.8 * x + 0.2 * x * x)
    return x


def program_of(kind: str) -> Any:
    if kind == "network":
        return network(lambda x: _mixed(x), 8)
    if kind == "other":  # the parameters of the network, and other keys
        return network(lambda x: _mixed(x, rows=4), 8)
    if kind == "deep":  # it bootstraps
        return network(lambda x: _mixed(x, rounds=5), 6)
    if kind == "integers":
        return integer_program(lambda v: (v * v).sum() - v[0], -9, 9, (4,))
    datasets, tree = (
        pytest.importorskip(f"sklearn.{part}", reason="scikit-learn is not installed")
        for part in ("datasets", "tree")
    )
    rows, labels = datasets.load_iris(return_X_y=True)
    model = tree.DecisionTreeClassifier(max_depth=2, random_state=0).fit(rows, labels)
    return trees.compile(model, make(max_norm2=25))


@cache
def served(kind: str) -> Served:
    with seeds.named(f"keys of {kind}"):
        program = program_of(kind)
        keys = [program.client(threads=1).evaluation_keys() for _ in range(2)]
    first, second = keys
    return Served(
        program.manifest,
        (first.to_bytes(), second.to_bytes()),
        (first.key_id, second.key_id),
    )


def uploads_of(store: KeyStore, *kinds: str, **options: Any) -> Uploads:
    return Uploads(store, {served(k).program: served(k).manifest for k in kinds}, **options)


def send(uploads: Uploads, client: str, kind: str, which: int = 0) -> str:
    """Sends keys in one request, and returns the name of the secret key."""
    data = served(kind).keys[which]
    begun = uploads.create(client, served(kind).program, len(data))
    with uploads.append(client, begun.upload, 0, complete=True) as append:
        append.write(data)
        return append.end().key_id


def content(store: KeyStore, client: str, kind: str, key_id: str) -> bytes:
    with store.open(client, served(kind).program, key_id) as file:
        return file.read()


def files(folder: Path) -> dict[str, bytes]:
    """What lies in a store: blobs and parts, by their paths."""
    inner = (path for name in ("blobs", "parts") for path in (folder / name).rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in inner if path.is_file()}


def started(work: Callable[[], None], *, killed: bool = False) -> Callable[[], None]:
    """Runs work in a forked process. What it returns waits until that has ended well, or if
    `killed` by SIGKILL or well."""
    seed = int.from_bytes(os.urandom(8), "little")  # two processes draw different names
    child = os.fork()
    if child == 0:
        status = 1
        try:
            seeds.start(seed)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def join() -> None:
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended in ((0, -signal.SIGKILL) if killed else (0,))

    return join


def in_child(work: Callable[[], None], *, killed: bool = False) -> None:
    """Runs work in a forked process to its end."""
    started(work, killed=killed)()
