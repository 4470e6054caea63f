"""An event loop in a thread of its own, for callers that have none."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from jali.errors import InvalidArgument

__all__ = ["LoopThread"]

Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines for callers that wait, and for futures. The thread begins with the first, and
    again in a process that was forked. It ends with the object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    def start(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Begins work in the loop."""
        if threading.current_thread() is self._thread:
            work.close()
            raise InvalidArgument(
                "this was called by a function that the same Remote called, and would wait for itself: return from that first"
            )
        return asyncio.run_coroutine_threadsafe(work, self._running())

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of work, which ends if this is interrupted."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """Ends the loop. The next work begins another."""
        with self._lock:
            if self._loop is not None and self._process == os.getpid():
                _end(self._loop, self._thread)
            self._loop = self._thread = None

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._process != os.getpid():
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(
                    target=_run, args=(self._loop,), name="jali-remote", daemon=True
                )
                self._thread.start()
                weakref.finalize(self, _end, self._loop, self._thread)
            return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


def _end(loop: asyncio.AbstractEventLoop, thread: threading.Thread | None) -> None:
    if loop.is_closed() or thread is None or not thread.is_alive():
        return
    loop.call_soon_threadsafe(loop.stop)
    if thread is not threading.current_thread():
        thread.join(5)
