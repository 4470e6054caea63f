"""The engine of a service: it admits requests, and has workers answer them. It knows no HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jali import errors
from jali._core import files
from jali._core.log import logger
from jali.errors import Error, InternalError, InvalidArgument
from jali.serve import answers, pool
from jali.serve.desk import Desk, Keys
from jali.serve.index import KeySet, Usage
from jali.serve.keys import KeyStore
from jali.serve.local_pool import LocalPool
from jali.serve.policy import Limits
from jali.serve.policy import events as on
from jali.serve.pool import Pool, ProgramFile
from jali.serve.programs import Served, described, manifest_of, program_bytes
from jali.serve.refusal import Refusal
from jali.serve.snapshot import Snapshot
from jali.serve.tickets import Event, Ticket
from jali.serve.uploads import Uploads

__all__ = ["Service"]

_PART_OF_DEVICE = 0.75  # of what is free there; the rest is for what runs
_PART_OF_HOST = 0.5
_PATIENCE = 3  # deaths of workers before the first one is ready
_LEAST_SECONDS = 1e-6


class Service:
    """Runs programs for clients whose keys are in a store.

    programs: compiled programs, or their files, by the names under which the operator knows them.
    store: of keys. The service does not close it.
    devices: on which to compute, see LocalPool.
    limits: what is admitted; see Limits.
    workers: another pool than a LocalPool of the devices.
    device_bytes: the memory of each device for keys; None: a part of what is free.
    seconds: of a request, by a program's name, where they are known; the others are measured by
        trial runs when the service starts.
    max_batch: how many requests of a client are computed at once, at most.
    security: what is demanded of the parameters of programs that come from files.

    Its methods are for one loop of asyncio. It holds no key in its memory, and no secret.

    Raises InvalidArgument, FileError and the errors of reading programs.

    >>> import asyncio, tempfile
    >>> from jali.serve.keys import KeyStore
    >>> from jali.serve.service import Service
    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> client, name = program.client(), program.manifest.fingerprint
    >>> keys, request = client.evaluation_keys(), client.encrypt(examples[:1]).to_bytes()
    >>> async def answer(store):
    ...     service = Service({"twice": program}, store)
    ...     await service.start()
    ...     begun = service.uploads.create("alice", name, len(keys.to_bytes()))
    ...     with service.uploads.append("alice", begun.upload, 0, complete=True) as append:
    ...         append.write(keys.to_bytes())
    ...         stored = append.end()
    ...     ticket = await service.admit("alice", name, stored.key_id, len(request))
    ...     result = await ticket.send(request)
    ...     await service.stop()
    ...     return jali.nn.Message.reply(result.body, program.manifest)
    >>> with tempfile.TemporaryDirectory() as folder, KeyStore(folder) as store:
    ...     reply = asyncio.run(answer(store))
    >>> bool(np.allclose(client.decrypt(reply), 2 * examples[:1], atol=0.05))
    True
    """

    def __init__(
        self,
        programs: Mapping[str, Any],
        store: KeyStore,
        *,
        devices: Sequence[str] = ("cpu",),
        limits: Limits | None = None,
        pool: Pool | None = None,
        device_bytes: int | None = None,
        seconds: Mapping[str, float] | None = None,
        max_batch: int = 16,
        security: int = 128,
    ) -> None:
        if not programs:
            raise InvalidArgument("give at least one program to run")
        self._store, self._device_bytes = store, device_bytes
        self._pool = LocalPool(devices) if pool is None else pool
        self._limits = limits or Limits()
        self._known = dict(seconds or {})
        self._bytes: dict[str, bytes] = {}
        self._served: dict[str, Served] = {}
        self._key_bytes: dict[str, int] = {}  # of a client on a device, by program
        self._retired: set[str] = set()
        manifests: dict[str, Any] = {}
        for name, program in programs.items():
            data = program_bytes(program)
            manifest = manifest_of(data, security if isinstance(program, (str, Path)) else 0)
            one = described(name, manifest, max_batch)
            if one.fingerprint in manifests:
                raise InvalidArgument(f"{name} is a program that was given twice: leave it out")
            if name in self._known:
                one = replace(one, seconds=self._known[name])
            manifests[one.fingerprint] = manifest
            self._served[one.fingerprint], self._bytes[one.fingerprint] = one, data
            self._key_bytes[one.fingerprint] = 2 * one.key_bytes  # with what seeds stand for
        self._manifests = manifests
        self.uploads = Uploads(store, manifests)
        self.observers: list[Callable[[Event], None]] = []
        self._desk = Desk(self._limits, self._pool, self._room, self._observe)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._draining = self._started = False
        self._first: asyncio.Future[None] | None = None
        self._deaths = self._deletions = 0
        self._before = 0  # requests that wait for a worker before they are admitted
        self._refusals: Counter[str] = Counter()
        self._sweeper: asyncio.Task[None] | None = None
        self._usage = Usage(0, 0, 0, 0)

    @property
    def programs(self) -> Mapping[str, Served]:
        """The programs, by their fingerprints."""
        return dict(self._served)

    @property
    def store(self) -> KeyStore:
        """Where the keys are."""
        return self._store

    @property
    def ready(self) -> bool:
        """Whether a worker has every program, and requests are admitted."""
        if self._draining or self._desk.broken:
            return False
        return any(self._served.keys() <= has for has in self._desk.programs.values())

    # --- beginning and end ------------------------------------------------------------------------

    async def start(self) -> None:
        """Starts the workers, and waits until the first is ready. Raises the error of a program that
        cannot run on its device."""
        if self._started:
            raise InvalidArgument("this service was started: make another one")
        self._started = True
        self._folder = tempfile.TemporaryDirectory(prefix="jali-serve-")
        programs = []
        for fingerprint, one in self._served.items():
            path = Path(self._folder.name) / fingerprint
            files.save(path, self._bytes.pop(fingerprint))
            programs.append(ProgramFile(fingerprint, str(path), one.seconds == 0))
            self._desk.add(fingerprint, one.max_batch)
        self._first = asyncio.get_running_loop().create_future()
        await self._pool.start(programs, self._heard)
        self._sweeper = asyncio.create_task(self._sweep())
        try:
            await self._first
        except BaseException:
            await self.stop(0)
            raise

    async def stop(self, grace: float = 30.0) -> None:
        """Ends the service. What was admitted is computed first, for at most `grace` seconds; what
        is left then is answered with 503."""
        if not self._started or self._folder is None:
            return
        self._draining = True
        self._desk.handle(on.Draining())
        self._desk.up.set()  # whoever waits for a worker is refused
        end = time.monotonic() + grace
        while self._desk.tickets and time.monotonic() < end:
            await asyncio.sleep(0.02)
        self._desk.end()
        if self._sweeper is not None:
            self._sweeper.cancel()
        await self._pool.close()
        self._folder.cleanup()
        self._folder = None

    def retire(self, fingerprint: str) -> None:
        """Says that a program was replaced: its new requests and keys are refused with 410, and
        what was admitted is computed.

        fingerprint: of the program.
        """
        if fingerprint not in self._served:
            raise InvalidArgument(f"there is no program {fingerprint}: give one of `programs`")
        del self._served[fingerprint], self._manifests[fingerprint]
        self._retired.add(fingerprint)

    # --- requests ---------------------------------------------------------------------------------

    async def admit(
        self,
        client: str,
        program: str,
        key_id: str,
        nbytes: int,
        *,
        deadline: float | None = None,
        weight: float = 1.0,
    ) -> Ticket:
        """Reserves what a request needs, before its body is read.

        client: its name.
        program: the fingerprint of the program.
        key_id: of the client's secret key, whose evaluation keys are in the store.
        nbytes: of the body, at most.
        deadline: the seconds from now in which the answer must be there; None: any time.
        weight: the client's share in comparison with those of others.

        Raises Refusal: 404 for another program, 410 for one that was replaced, 413 for a request
        that is too large, 428 if the keys are not there, 429 if the client has too much waiting, 503
        if there is no room or no worker, 504 if the deadline cannot be met.
        """
        with self._observed(program):
            served = self.served(program)
            _check(nbytes, deadline, weight)
            until = None if deadline is None else time.monotonic() + deadline
            keys = await self._keys(client, program, key_id)
            if keys is None:
                raise answers.refused("keys", None)
            await self._worker(deadline)
            # Nothing happens from here on until the policy knows of the request.
            if self._desk.broken or not self._started:
                raise answers.refused("no_worker", self._limits.restart)
            if self._desk.rooms and keys.nbytes > max(self._desk.rooms.values()):
                raise answers.no_room()
            seconds = max(_LEAST_SECONDS, served.predicted(nbytes))
            return self._desk.arrive(keys, nbytes, seconds, until, weight)

    async def _worker(self, deadline: float | None) -> None:
        """Waits for a worker that is about to come back, as long as they take for that."""
        desk, most = self._desk, self._limits.restart
        if deadline is not None:
            most = min(most, deadline)
        if desk.up.is_set() or not self._started:
            return
        if self._before >= self._limits.requests:
            raise answers.refused("full", self._limits.restart)
        self._before += 1
        try:
            async with asyncio.timeout(most):
                while not (desk.up.is_set() or self._draining or desk.closed):
                    await desk.up.wait()
        except TimeoutError:
            raise answers.refused("no_worker", self._limits.restart) from None
        finally:
            self._before -= 1

    def served(self, program: str) -> Served:
        """A program by its fingerprint. Raises Refusal: 404 if there is none, and 410 if it was
        replaced."""
        found = self._served.get(program)
        if found is not None:
            return found
        raise answers.replaced() if program in self._retired else answers.unknown()

    @contextlib.contextmanager
    def _observed(self, program: str) -> Iterator[None]:
        try:
            yield
        except Refusal as refusal:
            known = program in self._served or program in self._retired
            self._observe(Event(program if known else "", refusal.status), refusal.kind)
            raise

    async def _keys(self, client: str, program: str, key_id: str) -> Keys | None:
        """The keys of a client, as the policy knows them, if the store has them now."""
        deletions = -1
        while deletions != self._deletions:
            deletions = self._deletions
            found = await asyncio.to_thread(self._find, client, program, key_id)
        known = self._desk.keys.get((client, program, key_id))
        if known is not None and (found is None or found.sha256 != known.sha256):
            self._desk.drop(known)
            known = None
        if found is None or known is not None:
            return known
        path = self._store.blobs.path(found.sha256)
        keys = Keys(client, program, key_id, found.sha256, path, self._key_bytes[program])
        if not self._desk.hold(keys):
            raise answers.refused("full", self._limits.restart)
        return keys

    def _find(self, client: str, program: str, key_id: str) -> KeySet | None:
        found = self._store.find(client, program, key_id)
        if found is not None:
            self._store.index.use(found, time.time())
        return found

    async def delete_keys(
        self, client: str, *, key_id: str | None = None, program: str | None = None
    ) -> int:
        """Deletes keys of a client from the store and from all devices, see KeyStore.delete.
        Requests that wait for them are answered with 428.

        key_id: of which secret key; None: of each.
        program: for which program; None: for each.
        """
        count = await asyncio.to_thread(self._store.delete, client, key_id=key_id, program=program)
        for keys in list(self._desk.keys.values()):
            same_key, same_program = key_id in (None, keys.key_id), program in (None, keys.program)
            if keys.client == client and same_key and same_program:
                self._desk.drop(keys)
        return count

    async def _sweep(self, seconds: float = 5.0) -> None:
        """Removes keys from devices that others removed from the store."""
        while True:
            self._usage = await asyncio.to_thread(self._store.index.usage)
            await asyncio.sleep(seconds)
            for keys in [one for one in self._desk.keys.values() if one.devices]:
                place = keys.client, keys.program, keys.key_id
                found = await asyncio.to_thread(self._store.find, *place)
                if (found is None or found.sha256 != keys.sha256) and not keys.deleted:
                    self._desk.drop(keys)

    # --- what happens -----------------------------------------------------------------------------

    def _heard(self, report: pool.Report) -> None:
        if isinstance(report, pool.Started):
            for fingerprint, found in report.measured.items():
                self._measured(fingerprint, found)
        elif isinstance(report, pool.KeysLoaded) and (keys := self._desk.named(report.key)):
            self._key_bytes[keys.program] = max(1, report.nbytes)
        self._desk.heard(report)
        first = self._first
        if first is None or first.done():
            return
        if isinstance(report, pool.Started):
            first.set_result(None)
        elif isinstance(report, pool.Failed):
            first.set_exception(_error(report.code)(report.text))
        elif isinstance(report, pool.Died):
            self._deaths += 1
            if self._deaths >= _PATIENCE:
                first.set_exception(
                    InternalError(f"no worker can start, see what it wrote: {report.reason}")
                )

    def _measured(self, fingerprint: str, found: Mapping[str, float]) -> None:
        served = self._served.get(fingerprint)
        if served is None or not found:
            return
        size = int(found.get("request_bytes", served.request_bytes))
        self._served[fingerprint] = replace(served, seconds=found["seconds"], request_bytes=size)
        self._key_bytes[fingerprint] = max(1, int(found["key_bytes"]))

    def _room(self, started: pool.Started) -> int:
        """The bytes for keys on the device of a worker."""
        if self._device_bytes is not None:
            return self._device_bytes
        states = self._pool.workers
        device = states[started.worker].device
        sharing = sum(one.device == device for one in states.values())
        part = _PART_OF_HOST if device == "cpu" else _PART_OF_DEVICE
        if not started.free:
            logger.warning(
                "the free memory of %s is not known: give device_bytes=, or no keys fit", device
            )
        return int(started.free * part / sharing)

    def _observe(self, event: Event, kind: str) -> None:
        if kind:
            self._refusals[kind] += 1
        for observer in self.observers:
            observer(event)

    def snapshot(self) -> Snapshot:
        """What is known now of workers, requests and keys."""
        desk, workers = self._desk, self._pool.workers
        states = {"waiting": Counter[str](), "running": Counter[str]()}
        for ticket in desk.tickets.values():
            states["running" if ticket.state == "running" else "waiting"][ticket.program] += 1
        names = self._served
        on_devices = {name: state.key_bytes for name, state in workers.items()}
        return Snapshot(
            workers,
            {one: states["waiting"][one] for one in names},
            {one: states["running"][one] for one in names},
            {
                "disk": self._usage.nbytes,
                "host": desk.host_bytes,
                "device": sum(on_devices.values()),
            },
            on_devices,
            desk.counters["retries"],
            dict(self._refusals),
            desk.counters["cache hits"],
            desk.counters["cache misses"],
            desk.counters["cache evictions"],
            self.uploads.counters,
        )


def _check(nbytes: int, deadline: float | None, weight: float) -> None:
    if nbytes < 0:
        raise Refusal("a request has some bytes: say how many", 411, "length")
    if deadline is not None and not math.isfinite(deadline):
        raise Refusal("the deadline is no number of seconds", 400, "deadline-value")
    if not (math.isfinite(weight) and weight > 0):
        raise InvalidArgument(f"weight is {weight}: give a positive number")


def _error(code: str) -> type[Error]:
    """The kind of an error by its code."""
    kinds = [one for one in vars(errors).values() if isinstance(one, type)]
    return next((one for one in kinds if issubclass(one, Error) and one.code == code), Error)
