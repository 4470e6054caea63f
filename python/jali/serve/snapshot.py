"""What a service shows of itself at a time, for metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jali.serve.pool import WorkerState

__all__ = ["Snapshot"]


@dataclass(frozen=True)
class Snapshot:
    """Counters only grow.

    workers: the state of each, by its name.
    waiting, running: how many requests there are, by program; "waiting" has those whose bodies are
        on their way, too.
    key_bytes: of clients' keys, by level: "disk", "host" and "device".
    device_bytes: of clients' keys, by worker.
    retries: how often a request was computed again because its worker died.
    refusals: how many requests had no result, by reason.
    hits, misses, evictions: requests that found their keys on a device, loads of keys, and keys that
        left a device for others.
    uploads: see Uploads.counters.
    """

    workers: Mapping[str, WorkerState]
    waiting: Mapping[str, int]
    running: Mapping[str, int]
    key_bytes: Mapping[str, int]
    device_bytes: Mapping[str, int]
    retries: int
    refusals: Mapping[str, int]
    hits: int
    misses: int
    evictions: int
    uploads: Mapping[str, int]
