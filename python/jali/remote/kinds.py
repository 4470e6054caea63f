"""The kinds of programs that a service has: each with a manifest, a client, a secret and messages
of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jali import ckks, discrete, tfhe
from jali.errors import CorruptData
from jali.program.client import Client as NetworkClient
from jali.program.integers.client import Client as IntegersClient
from jali.program.integers.manifest import Manifest as IntegersManifest
from jali.program.integers.message import Message as IntegersMessage
from jali.program.manifest import Manifest
from jali.program.message import Message
from jali.tfhe.trees.client import Client as TreesClient
from jali.tfhe.trees.manifest import Manifest as TreesManifest
from jali.tfhe.trees.message import Message as TreesMessage

__all__ = ["Kind", "kind_of"]

_SCHEME = 6  # the byte of every object that names it (docs/format.md)
_SLACK = 1 << 20


@dataclass(frozen=True)
class Kind:
    """A kind of programs.

    manifest, client, message: its classes.
    secret: the class of what holds the secret key.
    bounded: whether the client is given how much memory it may take.
    reply_bytes: the most bytes of the ciphertexts of a reply to some examples, and to how many.
    """

    manifest: Any
    client: Any
    message: Any
    secret: Any
    bounded: bool
    reply_bytes: Callable[[Any], tuple[int, int]]

    def most_reply(self, manifest: Any, examples: int) -> int:
        """How many bytes a reply has at most.

        manifest: of the program.
        examples: how many were asked for.
        """
        nbytes, each = self.reply_bytes(manifest)
        return -(-examples // each) * nbytes + _SLACK


def _of_cost(manifest: Any) -> tuple[int, int]:
    return int(manifest.client_cost.reply), int(manifest.lanes)


def _of_trees(manifest: Any) -> tuple[int, int]:
    return int(manifest.params.ciphertext_bytes(len(manifest.outputs))) + 1024, 1


_NETWORKS = Kind(Manifest, NetworkClient, Message, ckks.Client, True, _of_cost)
_INTEGERS = Kind(IntegersManifest, IntegersClient, IntegersMessage, discrete.Client, True, _of_cost)
_TREES = Kind(TreesManifest, TreesClient, TreesMessage, tfhe.Client, False, _of_trees)
#: By the scheme of the manifest's bytes; 1 is that of manifests with parts that the client computes.
_KINDS = {1: _NETWORKS, 2: _NETWORKS, 3: _TREES, 4: _INTEGERS}


def kind_of(data: bytes) -> Kind:
    """The kind of program whose manifest has these bytes. The manifest's class checks them.

    Raises CorruptData for bytes that are no manifest.
    """
    found = _KINDS.get(data[_SCHEME]) if len(data) > _SCHEME and data[:4] == b"JALI" else None
    if found is None:
        raise CorruptData("these bytes are no manifest of a program: ask the service again")
    return found
