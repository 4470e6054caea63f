"""The programs that a service runs: their files, and what clients may know of them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from jali import nn
from jali._core import files
from jali.compiler.integers import program_file as integers_file
from jali.compiler.program import program_file
from jali.errors import InvalidArgument
from jali.program.container import MAX_BYTES
from jali.program.integers.manifest import Manifest as IntegersManifest
from jali.program.manifest import Manifest
from jali.serve.wanted import wanted
from jali.tfhe import trees

__all__ = ["Served", "described", "opened", "program_bytes"]

_PROGRAM = 9  # the kind of a frame (docs/format.md)
_CKKS, _TFHE, _DISCRETE = 1, 3, 4  # schemes of a frame


@dataclass(frozen=True)
class Served:
    """A program as its service knows it.

    name: by which its operator calls it.
    fingerprint: of its manifest.
    manifest: the bytes from which clients are made.
    key_bytes: how many bytes of keys a client sends, at most.
    seconds: about the time of one request alone, with as many examples as a ciphertext holds; 0
        before workers measured it.
    max_batch: how many requests of a client a worker computes at once, at most.
    inputs: of each input its name, the shape of an example and the type of its numbers.
    request_bytes: about those of a request of `seconds`, beside head_bytes.
    answer_bytes: about those of its answer.
    examples: of such a request.
    head_bytes: those that every request has.
    """

    name: str
    fingerprint: str
    manifest: bytes
    key_bytes: int
    seconds: float
    max_batch: int
    inputs: list[dict[str, Any]]
    request_bytes: int
    answer_bytes: int
    examples: int
    head_bytes: int = 0

    def predicted(self, nbytes: int) -> float:
        """The seconds of a request alone.

        nbytes: of its body.
        """
        return self.seconds * max(1.0, (nbytes - self.head_bytes) / self.request_bytes)


def program_bytes(program: Any) -> bytes:
    """The bytes of a program, or of the file of a path.

    Raises InvalidArgument for anything else, and FileError.
    """
    if isinstance(program, (str, os.PathLike)):
        data = files.load(program, MAX_BYTES)
        if data[:4] != b"JALI" or data[7:8] != bytes([_PROGRAM]):
            raise InvalidArgument(
                f"{program} holds no program: give a file that jali compile or Program.save wrote"
            )
        return data
    if isinstance(program, (nn.Program, nn.integers.Program, trees.Program)):
        return program.to_bytes()
    raise InvalidArgument(
        f"a service runs compiled programs and their files, not {type(program).__name__}: jali.compile makes a program"
    )


def opened(data: bytes) -> Any:
    """A program that was checked before.

    data: its bytes.
    """
    of: dict[int, Any] = {
        _CKKS: nn.Program,
        _TFHE: trees.Program,
        _DISCRETE: nn.integers.Program,
    }
    return of[data[6]].from_bytes(data, security=0)


def manifest_of(data: bytes, security: int) -> Any:
    """The manifest in the bytes of a program. Nothing of its plan is made.

    Raises the errors of Program.from_bytes that depend on the bytes alone, and InvalidArgument for
    another scheme.
    """
    if data[6] == _CKKS:
        return program_file.from_bytes(data, security, None, 0.0).manifest
    if data[6] == _DISCRETE:
        return integers_file.from_bytes(data, security, 0.0).manifest
    if data[6] == _TFHE:
        return trees.Program.from_bytes(data, security=security).manifest
    raise InvalidArgument("this program is of a scheme that no service runs")


def described(name: str, manifest: Any, max_batch: int) -> Served:
    """What is known of a program before it runs.

    name: of the program.
    manifest: of its clients.
    max_batch: as of Served; programs that compute one request after the other have 1.
    """
    if isinstance(manifest, trees.Manifest):
        request, head = 8 * len(manifest.columns), 131 + 120 * len(manifest.parts)
        answer = manifest.params.ciphertext_bytes() * len(manifest.outputs)
        inputs = [{"name": "rows", "shape": [manifest.features], "dtype": "float64"}]
        cost = request, answer, 1, head
    else:
        found = manifest.client_cost
        cost = found.request, found.reply, manifest.lanes, 0
        inputs = _inputs(manifest)
    return Served(
        name,
        manifest.fingerprint,
        manifest.to_bytes(),
        wanted(manifest).most,
        0.0,
        max_batch if isinstance(manifest, Manifest) else 1,
        inputs,
        *cost,
    )


def _inputs(manifest: Manifest | IntegersManifest) -> list[dict[str, Any]]:
    parts = manifest.parts if isinstance(manifest, Manifest) else None
    dtype = "float64" if isinstance(manifest, Manifest) else "int64"
    taken: Any = manifest.inputs
    if parts is not None and parts.before is not None:
        taken = parts.before.arguments
    return [{"name": one.name, "shape": list(one.shape), "dtype": dtype} for one in taken]
