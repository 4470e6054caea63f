"""Brings the elements of encrypted arrays together: rotations, masks and repetitions."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jali._jali.ckks import Ciphertext
from jali.ckks.array import EncryptedArray
from jali.ckks.operands import joint_shape
from jali.ckks.view import Addresses, View
from jali.errors import InvalidArgument, Unsupported

if TYPE_CHECKING:
    from jali.ckks.dense import DenseArray

__all__ = ["fitting", "joint_view", "laid", "moved", "spread", "together", "windows"]

#: What the owner of an operand can do.
_IN_FULL = (
    "encrypt it in the shape of the result, repeated by np.broadcast_to(values, shape).copy(), which each owner of data can "
    "do apart"
)
#: A move whose elements go more different distances than this is refused: each distance takes a
#: product with a mask.
MOST_MOVES = 4096
#: Up to so many distances have a rotation each.
FEW_MOVES = 8
#: So many rotations are kept for the masks that may need them again.
MOST_KEPT = 64


def spread(view: View, shape: tuple[int, ...]) -> View | None:
    """The view of an array of this shape whose element 0 along new axes lies where `view` says;
    None if there is none.

    view: with as many axes as `shape`. New axes get the strides of a dense array of the rest where
        these are free.
    """
    strides = list(view.strides)
    taken = max(
        (abs(s) * c for s, c in zip(view.strides, view.shape, strict=True) if c > 1), default=1
    )
    for k in reversed(range(len(shape))):
        if view.shape[k] == 1 and shape[k] > 1:
            block = 1 << (taken - 1).bit_length() if taken <= view.slots else 0
            if block == 0:
                return None
            strides[k] = block
            taken = block * shape[k]
    return fitting(shape, tuple(strides), view.first, view.slots)


def fitting(
    shape: tuple[int, ...], strides: tuple[int, ...], first: int, slots: int
) -> View | None:
    """A view with these strides in as many vectors as it takes, if its elements lie apart and
    blocks do not cross vectors."""
    view = View(shape, strides, first, slots, 1)
    at = view.addresses()
    if at.min() < 0 or len(np.unique(at)) != at.size:
        return None
    return replace(view, vectors=int(at.max()) // slots + 1)


def together(x: EncryptedArray, y: EncryptedArray) -> tuple[DenseArray, DenseArray, View]:
    """Both arrays so that equal slots hold the elements that belong together, and the view of the
    result."""
    same = x is y
    a = x._dense()._compact()
    b = a if same else y._dense()._compact()
    a._beside(b)
    if same:
        return a, a, a._view
    if a._view.slots != b._view.slots:
        raise InvalidArgument(
            f"operands are packed in {a._view.slots} and {b._view.slots} slots: encrypt both with the same slots="
        )
    if a._view.same_place(b._view):
        return a, b, a._view
    shape = joint_shape(a.shape, b.shape)
    for target, other in ((a, b), (b, a)):
        if target.shape == shape and other._view.serves(target._view):
            return a, b, joint_view(target._view, other._view)
    target_view = _target(a._view, b._view, shape)
    a, b = laid(a, target_view), laid(b, target_view)
    return a, b, joint_view(target_view, a._view, b._view)


def joint_view(target: View, *others: View) -> View:
    """The target's view with the largest period of all."""
    cycles = [view.cycle for view in (target, *others)]
    period = 0 if 0 in cycles else max(cycles)
    return replace(target, period=0 if period == target.slots else period)


def _target(a: View, b: View, shape: tuple[int, ...]) -> View:
    """Where the elements of a result of this shape shall lie."""
    for view in sorted((a, b), key=lambda v: -v.extent):
        if view.shape == shape:
            return replace(view, period=0)
    a, b = a.expanded(len(shape)), b.expanded(len(shape))
    for one, two in ((a, b), (b, a)):
        strides = tuple(
            s if c > 1 else t for s, c, t in zip(one.strides, one.shape, two.strides, strict=True)
        )
        found = fitting(shape, strides, one.first, one.slots)
        if found is not None:
            return found
    return View.dense(shape, a.slots)


def laid(x: DenseArray, target: View) -> DenseArray:
    """x, broadcast to the target's shape, such that it can be read at the target's addresses.

    It rotates x, masks it if other elements are in the way, and repeats it by rotations along new
    axes.
    """
    if x._view.serves(target):
        return x
    old = x._view.expanded(len(target.shape))
    new_axes = tuple(
        k for k, (c, t) in enumerate(zip(old.shape, target.shape, strict=True)) if c == 1 and t > 1
    )
    base = target.without(new_axes)
    if new_axes:
        base = replace(base, vectors=int(base.addresses().max()) // base.slots + 1)
    x = moved(x._seen(old), base, clean=bool(new_axes))
    for k in sorted(new_axes, key=lambda k: abs(target.strides[k])):
        x = _repeated(x, k, target)
    if not x._view.serves(target):
        raise Unsupported(
            f"an array of the shape {old.shape} cannot be repeated to {target.shape} where the other operand lies: "
            f"{_IN_FULL}"
        )
    return x


def moved(x: DenseArray, target: View, clean: bool = False, exact: bool = False) -> DenseArray:
    """x with its elements at the addresses of `target`, which has its shape.

    clean: all other slots are zero then. exact: so they are, in exactly the target's vectors.

    If the elements do not all go the same distance, it takes one level, a product with a mask for
    every distance, and about 2 sqrt(distances) rotations.
    """
    view, core, slots = x._view, x._server._core, x._view.slots
    source, place = view.addresses().reshape(-1), target.addresses().reshape(-1)
    if view.cycle:
        vectors = np.zeros_like(source)  # whichever vector is asked for, this one has it
        steps = (source - place) % view.cycle
    else:
        vectors = source // slots - place // slots
        steps = (source - place) % slots
    moves = np.unique(np.stack([vectors, steps]), axis=1).T
    if len(moves) == 1:
        vector, step = (int(m) for m in moves[0])
        # What repeats is not alone in its slots: a mask has to leave one copy.
        repeats = clean and view.period
        new = None if repeats or (exact and vector) else _shifted(view, target, step, exact)
        if new is not None:
            ready = x._cleaned() if clean or exact else x
            value = _vectors(ready._settled(), core, vector, new.vectors)
            value = core.rotate(value, step) if step else value
            known, same = ready._view.changing(), vector == 0 and new.vectors == view.vectors
            rest, copies = (known.rest, known.copies) if same else (math.inf, False)
            return x._with(value, replace(new, rest=rest, copies=copies, whole=None))
    if len(moves) > MOST_MOVES:
        raise _too_far(view, target)
    return x._with(_gathered(x, target, place, vectors, steps), replace(target.zeroed(), period=0))


def _gathered(
    x: DenseArray, target: View, place: Addresses, vectors: Addresses, steps: Addresses
) -> Ciphertext:
    """The target's vectors with every element at its place, and zeros elsewhere.

    vectors, steps: of every element, how many vectors and then slots it moves down. Vectors whose
    elements make the same moves are computed together.
    """
    view, core, slots = x._view, x._server._core, x._view.slots
    rows = place // slots
    moves = np.stack([vectors, steps], axis=1)
    most = max(len(np.unique(moves[rows == row], axis=0)) for row in np.unique(rows))
    near, far = _halves(view, target, steps, most) if most > FEW_MOVES else (steps, 0 * steps)
    moves = np.stack([far, vectors, near], axis=1)
    alike: dict[bytes, list[int]] = {}
    for row in range(target.vectors):
        alike.setdefault(np.unique(moves[rows == row], axis=0).tobytes(), []).append(row)
    source = x._settled()
    turned: dict[tuple[int, ...], Ciphertext] = {}

    def rotated(vector: int, step: int, group: list[int]) -> Ciphertext:
        held = [0] if view.cycle else [min(max(row + vector, 0), source.batch - 1) for row in group]
        key = (step, *held)
        if key not in turned:
            if len(turned) == MOST_KEPT:
                turned.clear()
            value = source if held == [*range(source.batch)] else core.take(source, held)
            turned[key] = core.rotate(value, step) if step else value
        value = turned[key]
        return value if value.batch == len(group) else core.take(value, [0] * len(group))

    parts = []
    for group in alike.values():
        inside = np.isin(rows, group)
        at = np.searchsorted(group, rows) * slots + place % slots
        total: Ciphertext | None = None
        for giant in np.unique(far[inside]) if inside.any() else [0]:
            part: EncryptedArray | None = None
            ours = inside & (far == giant)
            pairs = (
                np.unique(np.stack([vectors, near])[:, ours], axis=1).T if ours.any() else [(0, 0)]
            )
            for vector, baby in pairs:
                mask = np.zeros((len(group), slots))
                mask.reshape(-1)[at[ours & (vectors == vector) & (near == baby)]] = 1
                # The rotation by `giant` comes after the mask.
                masked = core.multiply_array(
                    rotated(int(vector), int(baby), group), np.roll(mask, int(giant), axis=1)
                )
                one = EncryptedArray(x._server, masked)
                part = one if part is None else part + one
            assert part is not None
            # The masks are disjoint, so that no slot of a sum holds more than one of the numbers.
            value = core.with_bounds(part._settled(), source, 1)
            value = core.rotate(value, int(giant)) if giant else value
            total = value if total is None else core.with_bounds(core.add(total, value), source, 1)
        assert total is not None
        parts.append(total)
    if len(parts) == 1:
        return parts[0]
    order = [row for group in alike.values() for row in group]
    return core.take(core.stack(parts), np.argsort(order).tolist())


def _halves(
    view: View, target: View, steps: Addresses, distances: int
) -> tuple[Addresses, Addresses]:
    """Every element's step as the sum, modulo the cycle, of two rotations of which there are few:
    about sqrt(distances) of each, if so many steps of a vector are different.

    Along an axis whose stride changes by d the steps are multiples of d; axes that change by the
    same number have these together.
    """
    multiples: dict[int, Any] = {}
    for k, count in enumerate(view.shape):
        change = view.strides[k] - target.strides[k]
        if count > 1 and change:
            index = np.arange(count).reshape((count,) + (1,) * (len(view.shape) - 1 - k))
            before = multiples.get(abs(change), 0)
            multiples[abs(change)] = before + (index if change > 0 else -index)
    near: Any = 0
    room, done = int(np.ceil(np.sqrt(distances))), 1
    for change, index in multiples.items():
        index = index - index.min()
        width = max(1, min(int(index.max()) + 1, round(room / done)))
        near = near + index % width * change
        done *= width
    around = view.cycle or view.slots
    near = np.broadcast_to(near, view.shape).reshape(-1) % around
    # Elements with one step are moved together, as the first of them.
    first, same = np.unique(steps, return_index=True, return_inverse=True)[1:]
    near = near[first][same.reshape(-1)]
    return near, (steps - near) % around


def _shifted(view: View, target: View, step: int, exact: bool) -> View | None:
    """The view after a rotation by `step` that brings all elements to the target's addresses, None
    if there is none."""
    if exact and (view.period or view.vectors != target.vectors):
        return None
    if not view.cycle:
        return replace(target, period=0)
    first = (view.first - step) % view.cycle
    new = replace(view, first=first)
    at = new.addresses()
    if at.min() < 0:  # with negative strides, the first element is not the lowest
        new = replace(new, first=first + view.cycle)
        at = new.addresses()
    return new if at.max() < view.cycle and at.min() >= 0 else None


def _vectors(value: Ciphertext, core: Any, first: int, count: int) -> Ciphertext:
    """The vectors first .. first + count - 1. Where there is none, any other stands: nobody reads
    its slots."""
    if first == 0 and value.batch == count:
        return value
    return core.take(value, [min(max(v, 0), value.batch - 1) for v in range(first, first + count)])  # type: ignore[no-any-return]


def _too_far(view: View, target: View) -> Unsupported:
    return Unsupported(
        f"an array of the shape {view.shape} with the strides {view.strides} would have to move to the strides "
        f"{target.strides}, by more than {MOST_MOVES} different distances, each of which takes a product with a mask: "
        f"{_IN_FULL}"
    )


def _repeated(x: DenseArray, k: int, target: View) -> DenseArray:
    """x, which is zero elsewhere, with its elements repeated along axis k, as the target has it."""
    view, stride, count = x._view, target.strides[k], target.shape[k]
    step = abs(stride)
    if view.cycle and step % view.cycle == 0:
        return x  # it is there already, because addresses count modulo the cycle
    at = view.addresses()
    if (
        view.cycle
        and view.cycle % step == 0
        and step * count > view.cycle // 2
        and at.min() // step == at.max() // step
    ):
        # Around the whole cycle: every element then repeats with the period `step`.
        out = windows(x, step, view.cycle // step, 1)
        return out._seen(replace(view, first=view.first % step, period=step))
    shape = tuple(count if j == k else c for j, c in enumerate(view.shape))
    strides = tuple(stride if j == k else s for j, s in enumerate(view.strides))
    apart = stride // view.slots
    if stride > 0 and stride % view.slots == 0 and view.vectors <= apart:
        # Whole vectors are repeated.
        rows = [min(v % apart, view.vectors - 1) for v in range(target.vectors)]
        value = x._server._core.take(x._settled(), rows)
        new = replace(view, shape=shape, strides=strides, vectors=target.vectors, period=0)
        return x._with(value, replace(new, copies=view.copies or view.vectors != apart, whole=None))
    last = at % view.slots + stride * (count - 1)
    if last.max() >= view.slots or last.min() < 0:  # it goes from one vector to the next
        return _repeated_across(x, k, target)
    # y[s] = sum_t x[s - t stride] has the element at s in all `count` places, since x is zero
    # elsewhere.
    out = windows(x, -stride, count, 1)
    return out._seen(replace(view, shape=shape, strides=strides))


def _repeated_across(x: DenseArray, k: int, target: View) -> DenseArray:
    """The same, if repetitions go from one vector to the next: each vector is filled, and then
    taken several times."""
    view, stride, count = x._view, target.strides[k], target.shape[k]
    at = view.addresses()
    index = np.arange(count).reshape((count,) + (1,) * at.ndim)
    source, place = np.broadcast_to(at // view.slots, (count, *at.shape)), at + index * stride
    rows = np.zeros(target.vectors, np.int64)
    rows[place // view.slots] = source
    # Every vector takes all its numbers from one, whose first `stride` slots hold them.
    if (
        stride <= 0
        or view.slots % stride
        or (at % view.slots >= stride).any()
        or (rows[place // view.slots] != source).any()
    ):
        raise Unsupported(
            f"an array of the shape {view.shape} cannot be repeated {count} times where the other operand lies: "
            f"{_IN_FULL}"
        )
    filled = windows(x, -stride, view.slots // stride, 1)
    value = x._server._core.take(filled._settled(), rows.tolist())
    shape = tuple(count if j == k else c for j, c in enumerate(view.shape))
    strides = tuple(stride if j == k else s for j, s in enumerate(view.strides))
    new = replace(view, shape=shape, strides=strides, vectors=target.vectors, period=0)
    return x._with(value, replace(new, copies=True, whole=None))


def windows(x: DenseArray, stride: int, count: int, terms: int) -> DenseArray:
    """y[s] = sum_{t < count} x[s + t stride], cyclically over the slots of each vector, by about
    log2(count) rotations.

    terms: how many of them are not zero, at most.
    """
    core, source = x._server._core, x._settled()
    if stride == 1 and terms == count and count & (count - 1) == 0:
        return x._with(core.sum(source, count), x._view)
    power, width = source, 1  # the sum of `width` terms
    total: Ciphertext | None = None
    done = 0
    while True:
        if count & width:
            shifted = core.rotate(power, done * stride % x.slots) if done else power
            done += width
            total = shifted if total is None else core.add(total, shifted)
            total = core.with_bounds(total, source, min(done, terms))
        if 2 * width > count:
            break
        power = core.add(power, core.rotate(power, width * stride % x.slots))
        width *= 2
        power = core.with_bounds(power, source, min(width, terms))
    assert total is not None
    return x._with(total, x._view)
