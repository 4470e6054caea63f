"""What a service counts, for Prometheus. No label names a client or its keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300)
_RATIOS = (0.1, 0.2, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 5, 10)
_BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The metrics of one gateway.

    snapshot: the state of the service, see Service.snapshot; it is read when metrics are.
    name: what metrics call a program, by its fingerprint.
    """

    def __init__(self, snapshot: Callable[[], Any], name: Callable[[str], str]) -> None:
        import prometheus_client as prometheus

        self._registry = prometheus.CollectorRegistry()
        self._snapshot, self._name = snapshot, name

        def counter(name: str, about: str, *labels: str) -> Any:
            return prometheus.Counter(name, about, labels, registry=self._registry)

        def seconds(name: str, about: str, *labels: str) -> Any:
            return histogram(name, about, _SECONDS, *labels)

        def histogram(name: str, about: str, buckets: Iterable[float], *labels: str) -> Any:
            return prometheus.Histogram(
                name, about, labels, buckets=tuple(buckets), registry=self._registry
            )

        self._requests = counter(
            "jali_requests_total", "Answers to requests, by status.", "program", "code"
        )
        self._request = seconds("jali_request_seconds", "From a request's head to its answer.")
        self._queue = seconds("jali_queue_seconds", "How long requests waited.")
        self._load = seconds("jali_key_load_seconds", "How long requests waited for their keys.")
        self._compute = seconds(
            "jali_compute_seconds", "How long a worker computed a batch.", "program", "batch"
        )
        self._predicted = histogram(
            "jali_predicted_over_measured", "Predicted over measured time.", _RATIOS
        )
        self._batch = histogram("jali_batch_size", "Requests of a batch.", _BATCHES)
        self._refused = counter("jali_refused_total", "Requests that were refused, by kind.", "why")
        self._uploaded = counter("jali_uploads_bytes_total", "Bytes of keys that came.")
        self._failed = counter("jali_uploads_failed_total", "Uploads whose bytes were refused.")
        self._registry.register(_State(snapshot, name))

    def text(self) -> tuple[bytes, str]:
        """All metrics, and their media type."""
        import prometheus_client as prometheus

        return prometheus.generate_latest(self._registry), prometheus.CONTENT_TYPE_LATEST

    def answered(self, program: str, code: int, seconds: float) -> None:
        """A request of a program has its answer.

        program: its fingerprint.
        code: the status.
        seconds: since its head came.
        """
        self._requests.labels(self._name(program), str(code)).inc()
        self._request.observe(seconds)

    def computed(self, record: Any) -> None:
        """A request was computed or failed, as the service's observers are told.

        record: see Service.observers.
        """
        self._queue.observe(record.queue)
        self._load.observe(record.load)
        if record.compute > 0:
            labels = self._name(record.program), str(record.batch)
            self._compute.labels(*labels).observe(record.compute)
            self._predicted.observe(record.predicted / record.compute)
            self._batch.observe(record.batch)

    def refused(self, why: str) -> None:
        """A request was refused.

        why: the kind of its problem, a word of the code.
        """
        self._refused.labels(why.rsplit("#", 1)[-1]).inc()

    def uploaded(self, nbytes: int) -> None:
        """Bytes of keys came."""
        self._uploaded.inc(nbytes)

    def upload_failed(self) -> None:
        """The bytes of an upload were refused."""
        self._failed.inc()


class _State:
    """A collector of what the service knows when it is asked."""

    def __init__(self, snapshot: Callable[[], Any], name: Callable[[str], str]) -> None:
        self._snapshot, self._name = snapshot, name

    def describe(self) -> Iterable[Any]:
        """Nothing: names are those of ``collect``."""
        return []

    def collect(self) -> Iterable[Any]:
        """The metrics."""
        return []
