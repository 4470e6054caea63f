"""Pictures of a schedule over time: a trace that Perfetto and chrome://tracing open, and a PNG."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jali._core import packages
from jali._core.files import replace, save_figure
from jali.errors import InvalidArgument, Unsupported
from jali.simulate.report import occupancy
from jali.simulate.scheduler import Schedule
from jali.simulate.steps import Entity, Kind

__all__ = ["MOST", "bandwidth", "events", "write"]

MOST = 200_000  # tasks that a file shows; later ones are left out
BINS = 500  # points of a curve over time


def bandwidth(result: Schedule, bins: int = BINS) -> dict[str, NDArray[np.float64]]:
    """The share of each channel's time that is busy, in equal parts of the span."""
    plan, width = result.plan, max(1.0, result.span / bins)
    edges = np.arange(bins + 1, dtype=np.float64) * np.float64(width)
    found = {}
    queue, cycles = plan.task_queue, np.array(plan.cycles)
    for index, one in enumerate(plan.queues):
        if not one.channel or one.second:
            continue
        mine = (queue == index) | (queue == index + 1)
        start = np.sort(result.task_start[mine])
        end = np.sort(result.task_start[mine] + cycles[mine])
        # The busy time until t: the sum of min(t, end) - min(t, start).
        busy = _until(end, edges) - _until(start, edges)
        found[one.name] = np.diff(busy) / width
    return found


def _until(times: NDArray[np.int64], edges: NDArray[Any]) -> NDArray[Any]:
    """The sum of min(time, edge) over the sorted times, for each edge."""
    sums = np.concatenate([[0.0], np.cumsum(times, dtype=np.float64)])
    below = np.searchsorted(times, edges)
    result: NDArray[Any] = sums[below] + (len(times) - below) * edges
    return result


def events(result: Schedule, most: int = MOST) -> Iterator[dict[str, Any]]:
    """The schedule in Chrome's trace format. Times are microseconds of the machine; a row is a unit
    of a cluster, or a channel."""
    plan, steps = result.plan, result.steps
    scale = 1e6 / float(result.machine.frequency_hz)
    name = f"{result.machine.name} ({result.machine.mode})"
    yield {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": name}}
    row_of = {}
    for index, queue in enumerate(plan.queues):
        row_of[index] = index - queue.second
        label = queue.name if queue.cluster < 0 else f"{queue.name} {queue.cluster}"
        if not queue.second:
            yield {
                "ph": "M",
                "pid": 1,
                "tid": index,
                "name": "thread_name",
                "args": {"name": label},
            }
            yield {"ph": "M", "pid": 1, "tid": index, "name": "thread_sort_index", "args": {"sort_index": index}}  # fmt: skip
    order = np.argsort(result.task_start, kind="stable")[:most]
    for task in order.tolist():
        step = plan.step_of[task]
        kind = Kind(int(steps.kind[step]))
        args: dict[str, Any] = {"step": step, "record": int(steps.record[step])}
        if steps.bytes[step]:
            args |= {
                "entity": Entity(int(steps.entity[step])).name,
                "bytes": int(steps.bytes[step]),
            }
        else:
            args |= {"n": int(steps.n[step]), "count": int(steps.count[step])}
        yield {
            "ph": "X",
            "pid": 1,
            "tid": row_of[int(plan.task_queue[task])],
            "name": kind.name,
            "ts": int(result.task_start[task]) * scale,
            "dur": plan.cycles[task] * scale,
            "args": args,
        }
    last = int(result.task_start[order[-1]]) if len(order) else 0
    for memory, (times, used) in occupancy(result).items():
        shown = np.flatnonzero(times <= last)
        for i in shown[:: max(1, len(shown) // BINS)].tolist():
            yield {"ph": "C", "pid": 1, "name": f"bytes in {memory}", "ts": int(times[i]) * scale, "args": {"bytes": int(used[i])}}  # fmt: skip
    width = result.span / BINS
    for channel, shares in bandwidth(result).items():
        for i, share in enumerate(shares.tolist()):
            if i * width <= last:
                yield {"ph": "C", "pid": 1, "name": f"busy {channel}", "ts": i * width * scale, "args": {"share": round(share, 4)}}  # fmt: skip


def write(result: Schedule, file: Path) -> str:
    """Writes FILE.json (Chrome's format) or FILE.png, and returns a sentence that says what is
    there.

    Raises InvalidArgument for another ending, Unsupported for a PNG without matplotlib, FileError
    if the file cannot be written.
    """
    if file.suffix not in (".json", ".png"):
        raise InvalidArgument(f"{file}: give a name that ends in .json or .png")
    shown = min(MOST, len(result.task_start))
    if file.suffix == ".json":
        shown_events = ",\n".join(map(json.dumps, events(result)))
        replace(file, f'{{"displayTimeUnit": "ns", "traceEvents": [\n{shown_events}\n]}}\n')
    else:
        _picture(result, file)
    part = "" if shown == len(result.task_start) else f", the first {shown} tasks"
    return f"wrote {file}{part}"


def _picture(result: Schedule, file: Path) -> None:
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        raise Unsupported(f"plots need matplotlib: {packages.install('matplotlib')}") from None
    plan = result.plan
    order = np.argsort(result.task_start, kind="stable")[: MOST // 10]
    step = np.array(plan.step_of)[order]
    queue, cycles = plan.task_queue[order], np.array(plan.cycles)[order]
    start = result.task_start[order]
    scale = 1e3 / float(result.machine.frequency_hz)
    used: list[int] = np.unique(queue).tolist()
    rows = [i for i in used if not plan.queues[i].second]
    rows += [i for i in used if plan.queues[i].second and i - 1 not in rows]
    labels = []
    figure, place = pyplot.subplots(figsize=(12, 1 + 0.28 * len(rows)))
    colours = pyplot.get_cmap("tab20")
    for height, index in enumerate(rows):
        one = plan.queues[index]
        labels.append(one.name if one.cluster < 0 else f"{one.name} {one.cluster}")
        mine = np.isin(queue, [index, index + 1] if one.channel and not one.second else [index])
        for kind in np.unique(result.steps.kind[step[mine]]).tolist():
            chosen = mine & (result.steps.kind[step] == kind)
            bars = list(zip(start[chosen] * scale, cycles[chosen] * scale, strict=True))
            place.broken_barh(bars, (height - 0.4, 0.8), color=colours(kind % 20), label=Kind(kind).name)  # fmt: skip
    place.set_yticks(range(len(labels)), labels, fontsize=7)
    place.invert_yaxis()
    place.set_xlabel("milliseconds")
    place.set_title(f"{result.machine.name}, {result.machine.mode}", fontsize=9)
    found = dict(zip(*reversed(place.get_legend_handles_labels()), strict=True))
    place.legend(found.values(), found.keys(), fontsize=6, loc="upper left", bbox_to_anchor=(1, 1))
    save_figure(figure, file, dpi=120, bbox_inches="tight")
    pyplot.close(figure)
