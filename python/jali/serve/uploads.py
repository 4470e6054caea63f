"""Uploads of keys that are checked while they come, and go on where they were cut.

What HTTP says of them is in ``routes``.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

from jali.errors import CorruptData, Error, FileError, LimitExceeded
from jali.serve.blobs import Part
from jali.serve.check import Found, KeyCheck, check_size
from jali.serve.index import OPEN, KeySet, Upload, Usage
from jali.serve.keys import KeyStore, checked_client
from jali.serve.refusal import Refusal
from jali.serve.wanted import Wanted, wanted

__all__ = ["Append", "Uploads"]

_PROBLEMS = "https://iana.org/assignments/http-problem-types#"
_RESTED_CHECKS = 32  # checks of uploads between two requests; each has the memory of one key


class Uploads:
    """Takes keys in pieces.

    store: where they go.
    programs: the manifest of each program, by its fingerprint.
    sync_bytes: after how many bytes they are brought to the disk and acknowledged. A process that
        is killed loses at most so many.
    max_age: after how many seconds without bytes an upload is removed.
    patience: how many seconds to wait for another process that has the upload open.

    May be used from several threads, and with other processes on the same store. Methods wait for
    the disk: asynchronous code calls them in threads.

    >>> import tempfile
    >>> from jali.serve.keys import KeyStore
    >>> from jali.serve.uploads import Uploads
    >>> examples = np.linspace(-1, 1, 60).reshape(20, 3)
    >>> program = jali.compile(lambda x: 2 * x, examples[0], calibration=examples)
    >>> manifest, keys = program.manifest, program.client().evaluation_keys()
    >>> data = keys.to_bytes()
    >>> with tempfile.TemporaryDirectory() as folder, KeyStore(folder) as store:
    ...     uploads = Uploads(store, {manifest.fingerprint: manifest})
    ...     begun = uploads.create("alice", manifest.fingerprint, len(data))
    ...     with uploads.append("alice", begun.upload, 0, complete=False) as append:
    ...         append.write(data[:50])
    ...         append.end().received
    ...     with uploads.append("alice", begun.upload, 50, complete=True) as append:
    ...         append.write(data[50:])
    ...         done = append.end()
    ...     store.open("alice", manifest.fingerprint, done.key_id).read() == data
    50
    True
    """

    def __init__(
        self,
        store: KeyStore,
        programs: Mapping[str, Any],
        *,
        sync_bytes: int = 8 << 20,
        max_age: float = 86400.0,
        patience: float = 5.0,
    ) -> None:
        self._store, self._index, self._programs = store, store.index, programs
        self._sync_bytes, self._max_age, self._patience = sync_bytes, max_age, patience
        self._me = secrets.token_hex(16)
        self._lock = threading.Lock()
        self._wanted: dict[str, Wanted] = {}
        self._running: dict[str, Append] = {}
        self._rested: OrderedDict[str, KeyCheck] = OrderedDict()
        self._counters = {"begun": 0, "done": 0, "refused": 0, "bytes": 0}

    @property
    def counters(self) -> dict[str, int]:
        """How many uploads were begun, done and refused for their bytes by this object, and how many
        bytes came."""
        with self._lock:
            return dict(self._counters)

    def _count(self, what: str, more: int = 1) -> None:
        with self._lock:
            self._counters[what] += more

    @property
    def max_age(self) -> float:
        """After how many seconds without bytes an upload is removed."""
        return self._max_age

    def room(self, client: str) -> Usage:
        """What a client may still send, see KeyStore.room.

        client: its name.
        """
        return self._store.room(client)

    def wanted(self, program: str) -> Wanted:
        """What the keys of a program look like.

        program: the fingerprint of its manifest.

        Raises Refusal, of status 404, if it is not served.
        """
        if program not in self._programs:
            raise Refusal("this program is not served: list the programs again", 404, "no-program")
        found = self._wanted.get(program)
        if found is None:
            found = self._wanted[program] = wanted(self._programs[program])
        return found

    def create(self, client: str, program: str, length: int, sha256: str = "") -> Upload:
        """Begins an upload. If the client has stored the same bytes before, it is done at once.

        client: its name.
        program: the fingerprint of the program's manifest.
        length: how many bytes will come.
        sha256: of all of them, in hexadecimal, if that is known. Other bytes are refused then.

        Raises Refusal: 404 if the program is not served, 413 for another length than that of the
        program's keys, 507 if there is no room. No byte need be sent to learn this.
        """
        checked_client(client)
        keys = self.wanted(program)
        try:
            check_size(keys, length)
        except LimitExceeded as error:
            raise Refusal(str(error), 413, "wrong-length") from None
        self.expire()
        now, name = time.time(), secrets.token_hex(16)
        begun = Upload(name, client, program, length, sha256, 0, self._me, OPEN, "", now, now)
        if sha256 and (done := self._again(begun)) is not None:
            return done
        with self._index.writing():
            self._store.reserve(client, length)
            self._index.add_upload(begun)
        self._count("begun")
        self._store.clean()  # of what made room
        return begun

    def append(
        self,
        client: str,
        name: str,
        offset: int,
        *,
        complete: bool,
        length: int | None = None,
        content_sha256: str = "",
    ) -> Append:
        """Goes on with an upload. What else appends to it, is ended.

        client: its name.
        name: of the upload.
        offset: where the bytes begin, which must be how many there are.
        complete: whether they are the last.
        length: how many bytes the upload has, if the client says it again.
        content_sha256: of the bytes that are appended, in hexadecimal. Others are refused without
            an effect on the upload.

        Raises Refusal: 404 for an upload that there is not, 409 for another offset, 410 if the
        upload has ended, 503 if another process keeps it.
        """
        self._stop(client, name)
        _check_open(self._mine(client, self._index.upload(name)))
        before = self._mine(client, self._index.take(name, self._me))
        try:
            part = self._store.blobs.part(name, self._patience)
        except FileError as error:
            raise Refusal(str(error), 503, "busy", headers={"Retry-After": "2"}) from None
        try:
            found = self._index.upload(name)  # as it is now that nobody else writes
            if found is None or found.state != OPEN:
                self._store.blobs.drop_part(name)
            found = self._mine(client, found)
            _check_open(found)
            if found.holder != self._me:
                raise _taken_over()
            _check_place(found, offset, length)
            check = self._resumed(found, part, known=before.holder == self._me)
            append = Append(self, found, part, check, complete, content_sha256)
        except BaseException:
            part.close()
            raise
        with self._lock:
            self._running[name] = append
        return append

    def state(self, client: str, name: str) -> Upload:
        """How far an upload is. What appends to it is ended, so that it stays there.

        client: its name.
        name: of the upload.

        Raises Refusal, of status 404, for an upload that there is not.
        """
        self._stop(client, name)
        found = self._mine(client, self._index.upload(name))
        if found.state == OPEN and found.holder != self._me:
            found = self._mine(client, self._index.take(name, ""))
        return found

    def cancel(self, client: str, name: str) -> None:
        """Removes an upload and its bytes. Keys that came of it stay.

        client: its name.
        name: of the upload.

        Raises Refusal, of status 404, for an upload that there is not.
        """
        self._stop(client, name)
        found = self._mine(client, self._index.upload(name))
        if found.state == OPEN:
            self._end(found, "refused")

    def expire(self) -> None:
        """Removes uploads to which no bytes came for ``max_age`` seconds."""
        before = time.time() - self._max_age
        for name in self._index.drop_uploads(before):
            self._store.blobs.drop_part(name)
            with self._lock:
                self._rested.pop(name, None)

    def _again(self, begun: Upload) -> Upload | None:
        """Stores bytes for a program that the client has stored before; None if it has not."""
        had = self._index.blob_of(begun.client, begun.sha256)
        if had is None or had.nbytes != begun.length:
            return None
        if had.program != begun.program:
            check = KeyCheck(self.wanted(begun.program), begun.length)
            try:
                with self._store.blobs.open(begun.sha256) as file:
                    while piece := file.read(1 << 20):
                        check.feed(piece)
                if check.finish().sha256 != begun.sha256:
                    return None
            except FileNotFoundError:
                return None
            except Error as error:
                raise _refusal(error) from None
        with self._index.writing():
            if self._index.blob_of(begun.client, begun.sha256) is None:
                return None  # they were deleted meanwhile
            self._index.put(_key_set(begun, Found(had.key_id, begun.sha256, begun.length)))
            self._index.add_upload(begun)
            self._index.received(begun.upload, self._me, begun.length, begun.made)
            self._index.end(begun.upload, "done", had.key_id, begun.made)
        self._store.clean()
        return self._index.upload(begun.upload)

    def _mine(self, client: str, found: Upload | None) -> Upload:
        """The upload, if it is this client's."""
        if found is None or found.client != client:
            raise Refusal("there is no such upload: begin one", 404, "no-upload")
        return found

    def _stop(self, client: str, name: str) -> None:
        """Ends what appends to the upload in this process."""
        with self._lock:
            running = self._running.get(name)
        if running is not None and running.client == client:
            running.stop()

    def _resumed(self, found: Upload, part: Part, known: bool) -> KeyCheck:
        """The check of the bytes that are there. known: whether only this process wrote them since
        it checked them."""
        with self._lock:
            check = self._rested.pop(found.upload, None)
        if part.nbytes < found.received:  # the disk lost what was acknowledged
            self._end(found, "lost")
            raise Refusal("the upload was lost: begin another", 410, "lost")
        part.cut(found.received)
        if known and check is not None and check.received == found.received:
            return check
        check = KeyCheck(self.wanted(found.program), found.length)
        try:
            for piece in part.read(0, found.received):
                check.feed(piece)
        except Error as error:
            self._end(found, "refused")
            raise _refusal(error) from None
        return check

    def _end(self, found: Upload, state: str) -> None:
        """Ends an upload without keys."""
        self._index.end(found.upload, state, "", time.time())
        self._store.blobs.drop_part(found.upload)
        with self._lock:
            self._rested.pop(found.upload, None)

    def _note(self, found: Upload, received: int) -> None:
        """Acknowledges bytes that are on the disk."""
        if not self._index.received(found.upload, self._me, received, time.time()):
            raise _taken_over()

    def _store_keys(self, upload: Upload, part: Part, keys: Found) -> Upload:
        """Keeps the keys that an upload brought, all at once."""
        with self._store.changing():
            found = self._index.upload(upload.upload)
            if found is None or found.state != OPEN or found.holder != self._me:
                raise _taken_over()
            self._store.blobs.keep(part, keys.sha256)
            self._index.put(_key_set(found, keys))
            self._index.end(found.upload, "done", keys.key_id, time.time())
            done = self._index.upload(found.upload)
        self._store.blobs.drop_part(upload.upload)
        self._store.clean()  # of keys that were replaced
        assert done is not None
        return done

    def _rest(self, name: str, append: Append, check: KeyCheck | None) -> None:
        """An append ended. check: for the next one."""
        with self._lock:
            if self._running.get(name) is append:
                del self._running[name]
            if check is not None:
                self._rested[name] = check
                while len(self._rested) > _RESTED_CHECKS:
                    self._rested.popitem(last=False)


class Append:
    """A request that appends to an upload. Uploads.append makes it. Leaving the block before
    ``end`` acknowledges what came."""

    def __init__(
        self,
        uploads: Uploads,
        upload: Upload,
        part: Part,
        check: KeyCheck,
        complete: bool,
        content_sha256: str,
    ) -> None:
        self._uploads, self._upload, self._part, self._check = uploads, upload, part, check
        self._complete, self._content_sha256 = complete, content_sha256
        self._content = hashlib.sha256() if content_sha256 else None
        self._received = self._noted = upload.received
        self._lock = threading.Lock()
        self._ended = False

    @property
    def client(self) -> str:
        """Whose upload it is."""
        return self._upload.client

    @property
    def acknowledged(self) -> int:
        """How many bytes of the upload are on the disk and need not be sent again."""
        return self._noted

    def __enter__(self) -> Append:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def write(self, data: bytes | memoryview) -> None:
        """The next bytes.

        data: of any length.

        Raises Refusal: 422 for bytes that are not the program's keys and 400 for more than were
        announced, which both end the upload; 409 if another request took it; 507 if the disk is full.
        """
        with self._lock:
            self._check_running()
            if self._received + len(data) > self._upload.length:
                self._fail()
                raise _inconsistent("the upload has more bytes than were announced: begin another")
            with self._disk():
                self._part.write(data, self._received)
            self._received += len(data)
            self._uploads._count("bytes", len(data))
            if self._content is not None:
                self._content.update(data)
                return  # read again once all of the content is known to be right
            self._feed(data)
            if self._received - self._noted >= self._uploads._sync_bytes:
                self._acknowledge()

    def end(self) -> Upload:
        """The content came to its end. Returns the upload; it is done if this was the last.

        Raises Refusal, as ``write`` does, and 400 if the content has another hash than was
        announced, or if bytes are missing although it was to be the last.
        """
        with self._lock:
            self._check_running()
            if self._content is not None:
                if self._content.hexdigest() != self._content_sha256:
                    self._close(self._check)
                    raise Refusal(
                        "the content has another digest than its header says: send it again",
                        400,
                        "digest",
                    )
                with self._disk():
                    for piece in self._part.read(self._noted, self._received):
                        self._feed(piece)
                self._content = None
            self._acknowledge()
            upload = self._upload
            if self._complete and self._received < upload.length:
                self._close(self._check)
                raise _inconsistent(
                    f"the upload was to be complete and has {self._received} of {upload.length} bytes: send the rest"
                )
            if not self._complete:
                self._close(self._check)
                found = self._uploads._index.upload(upload.upload)
                return self._uploads._mine(upload.client, found)
            try:
                keys = self._check.finish()
                if upload.sha256 not in ("", keys.sha256):
                    raise CorruptData(
                        "the keys have another hash than was announced: send them again"
                    )
            except Error as error:
                self._fail()
                raise _refusal(error) from None
            with self._disk():
                done = self._uploads._store_keys(upload, self._part, keys)
            self._uploads._count("done")
            self._close(None)
            return done

    def stop(self) -> None:
        """Ends it early and acknowledges what came. Further bytes are refused."""
        with self._lock:
            if self._ended:
                return
            if self._content is not None:  # of which nobody knows whether it is right
                self._close(self._check)
                return
            try:
                self._acknowledge()
            except Refusal:
                return
            self._close(self._check)

    @contextlib.contextmanager
    def _disk(self) -> Iterator[None]:
        """Within it, errors of files end this request, but not the upload."""
        try:
            yield
        except FileError as error:
            self._close(None)
            raise Refusal(
                f"{error}: try again later", 507, "disk", headers={"Retry-After": "60"}
            ) from None
        except Refusal:
            self._close(None)
            raise

    def _check_running(self) -> None:
        if self._ended:
            raise _taken_over()

    def _feed(self, data: bytes | memoryview) -> None:
        try:
            self._check.feed(data)
        except Error as error:
            self._fail()
            raise _refusal(error) from None

    def _acknowledge(self) -> None:
        """Brings what came to the disk, and notes it in the index."""
        with self._disk():
            if self._received != self._noted:
                self._part.sync()
            self._uploads._note(self._upload, self._received)
            self._noted = self._received

    def _fail(self) -> None:
        """Ends the upload, too. If the index cannot be told, what came is not acknowledged, and who goes
        on is refused again."""
        try:
            self._uploads._end(self._upload, "refused")
            self._uploads._count("refused")
        finally:
            self._close(None)

    def _close(self, check: KeyCheck | None) -> None:
        self._ended = True
        self._part.close()
        self._uploads._rest(self._upload.upload, self, check)


def _key_set(upload: Upload, keys: Found) -> KeySet:
    now = time.time()
    return KeySet(upload.client, upload.program, keys.key_id, keys.sha256, keys.nbytes, now, now)


def _refusal(error: Error) -> Refusal:
    """What the library found wrong with bytes, as an answer."""
    return Refusal(str(error), 422, error.code, members={"code": error.code})


def _taken_over() -> Refusal:
    return Refusal("another request took this upload: ask for its offset", 409, "taken-over")


def _inconsistent(sentence: str) -> Refusal:
    return Refusal(sentence, 400, f"{_PROBLEMS}inconsistent-upload-length")


def _check_open(found: Upload) -> None:
    if found.state == "done":
        raise Refusal("the upload is complete", 410, f"{_PROBLEMS}completed-upload")
    if found.state != OPEN:
        raise Refusal("the upload has ended: begin another", 410, found.state)


def _check_place(found: Upload, offset: int, length: int | None) -> None:
    if length not in (None, found.length):
        raise _inconsistent(
            f"the upload was begun with {found.length} bytes, not {length}: begin another"
        )
    if offset != found.received:
        raise Refusal(
            f"the upload has {found.received} bytes: go on from there",
            409,
            f"{_PROBLEMS}mismatching-upload-offset",
            headers={"Upload-Offset": str(found.received)},
            members={"expected-offset": found.received, "provided-offset": offset},
        )
