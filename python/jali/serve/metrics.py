"""What a service counts, for Prometheus. No label names a client or its keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
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
        if record.batch and record.compute_s > 0:
            self._queue.observe(record.queue_s)
            self._load.observe(record.load_s)
            labels = self._name(record.program), str(record.batch)
            self._compute.labels(*labels).observe(record.compute_s)
            self._predicted.observe(record.predicted_s / record.compute_s)
            self._batch.observe(record.batch)

    def refused(self, why: str) -> None:
        """A request was refused.

        why: the kind of its problem, a word of the code.
        """
        self._refused.labels(why.rsplit("#", 1)[-1]).inc()


class _State:
    """A collector of what the service knows when it is asked."""

    def __init__(self, snapshot: Callable[[], Any], name: Callable[[str], str]) -> None:
        self._snapshot, self._name = snapshot, name

    def describe(self) -> Iterable[Any]:
        """Nothing: names are those of ``collect``."""
        return []

    def collect(self) -> Iterable[Any]:
        """The metrics."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        def gauge(name: str, about: str, values: Mapping[Any, float], *labels: str) -> Any:
            family = GaugeMetricFamily(name, about, labels=labels)
            for words, value in values.items():
                family.add_metric(words, value)
            return family

        now = self._snapshot()
        waiting = Counter[tuple[str, ...]]()  # programs may have the same name
        for program, count in now.waiting.items():
            waiting[(self._name(program),)] += count
        yield gauge("jali_requests_waiting", "Requests that wait.", waiting, "program")
        running = {(): sum(now.running.values())}
        yield gauge("jali_requests_running", "Requests that are computed.", running)
        levels = {(level,): count for level, count in now.key_bytes.items()}
        yield gauge("jali_keys_bytes", "Bytes of clients' keys.", levels, "level")
        up = {(name,): float(one.up) for name, one in now.workers.items()}
        yield gauge("jali_worker_up", "Whether a worker is ready.", up, "worker")
        sizes = {(name, "keys"): one.key_bytes for name, one in now.workers.items()}
        sizes |= {(name, "process"): one.memory for name, one in now.workers.items()}
        about = "Bytes of clients' keys on a device, and of the worker's process."
        yield gauge("jali_device_bytes", about, sizes, "worker", "kind")
        counts = {
            "jali_retries": (now.retries, "Requests that were computed again."),
            "jali_key_cache_hits": (now.hits, "Requests that found their keys on a device."),
            "jali_key_cache_misses": (now.misses, "Loads of keys."),
            "jali_key_cache_evictions": (now.evictions, "Keys that left a device for others."),
            "jali_uploads_bytes": (now.uploads["bytes"], "Bytes of keys that came."),
            "jali_uploads_failed": (now.uploads["refused"], "Uploads whose bytes were refused."),
        }
        for name, (value, what) in counts.items():
            yield CounterMetricFamily(name, what, value)
