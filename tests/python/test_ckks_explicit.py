"""The operations of the explicit evaluator, which a caller combines by hand."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import World, assert_close

import jali
from jali import ckks


def close(world: World, ciphertext: ckks.Ciphertext, expected: object, **options: float) -> None:
    """assert_close for a ciphertext that is not bound."""
    got = world.client.decrypt(ciphertext)
    sigma = 2.0 ** -(ciphertext.precision_bits - 1)
    assert np.abs(got - expected).max() < 7 * sigma


def test_products_by_hand(world: World, rng: np.random.Generator) -> None:
    e = world.server.explicit
    n = world.params.slots
    a, b, c = rng.uniform(-1, 1, (3, n))
    x, y = world.client.encrypt(a), world.client.encrypt(b)
    p = e.encode(c)
    top = world.params.depth
    product = e.multiply(x, y)
    assert product.parts == 3 and product.level == top
    assert product.scale == pytest.approx(x.scale * y.scale)
    close(world, product, a * b)
    relinearised = e.relinearise(product)
    assert relinearised.parts == 2
    close(world, relinearised, a * b)
    scaled = e.rescale(relinearised)
    assert scaled.level == top - 1
    close(world, scaled, a * b)
    for merged in (e.relinearise_rescale(product), e.multiply_relinearise_rescale(x, y)):
        assert merged.parts == 2 and merged.level == top - 1
        close(world, merged, a * b)
    close(world, e.square(x), a * a)
    close(world, e.rescale(e.multiply_plain(x, p)), a * c)
    close(world, e.add_plain(x, p), a + c)
    close(world, e.sub_plain(x, p), a - c)
    close(world, e.add(x, y), a + b)
    close(world, e.sub(x, y), a - b)
    close(world, e.negate(x), -a)
    close(world, e.add_scalar(x, 0.5), a + 0.5)
    close(world, e.rescale(e.multiply_scalar(x, 0.3, x.scale)), a * 0.3)
    close(world, e.multiply_integer(x, -3), a * -3)
    close(world, e.multiply_i(x), a * 1j)
    size, top_exponent = world.params.slots, 4 * world.params.slots
    for exponent in (0, 1, 6, size, size + 3, top_exponent - 1):
        e.prepare_monomial(exponent)
        powers = [pow(5, s, top_exponent) * exponent % top_exponent for s in range(size)]
        turned = e.multiply_monomial(x, exponent)
        close(world, turned, a * np.exp(2j * np.pi * np.array(powers) / top_exponent))
        assert turned.scale == x.scale and turned.level == x.level
        real = e.twice_real(turned)
        close(world, real, 2 * a * np.cos(2 * np.pi * np.array(powers) / top_exponent))
    for exponent in (-1, top_exponent):
        with pytest.raises((jali.InvalidArgument, TypeError)):
            e.multiply_monomial(x, exponent)
    low = e.drop_to(x, 1)
    assert low.level == 1 and low.scale == x.scale
    close(world, low, a)
    target = world.params.level(1).scale
    adjusted = e.adjust(x, 1, target)
    assert adjusted.level == 1 and adjusted.scale == pytest.approx(target, rel=1e-12)
    close(world, adjusted, a)


def test_rotations_by_hand(world: World, rng: np.random.Generator) -> None:
    e = world.server.explicit
    a, c, d = rng.uniform(-1, 1, (3, world.params.slots))
    x = world.client.encrypt(a)
    close(world, e.rotate(x, -3), np.roll(a, 3))
    close(world, e.conjugate(x), a)
    hoisted = e.hoist(x)
    for step in (1, -3, 64):
        assert e.has_rotation(step)
        close(world, e.rotate_hoisted(hoisted, step), np.roll(a, -step))
    assert not e.has_rotation(5)
    # With double hoisting a weighted sum of rotations needs only one division by P.
    parts = [e.rotate_extended(hoisted, 0), e.rotate_extended(hoisted, 1)]
    diagonals = [e.encode_diagonal(v, x.level, x.scale) for v in (c, d)]
    total = e.multiply_accumulate(parts, diagonals)
    expected = c * a + d * np.roll(a, -1)
    close(world, e.rescale(e.reduce(total)), expected)
    close(world, e.reduce_rescale(total), expected)
    twice = e.extend(x)
    e.add_extended(twice, e.extend(x))
    close(world, e.reduce(twice), 2 * a)
    e.rotate_accumulate(twice, e.extend(x), 1)
    close(world, e.reduce(twice), 2 * a + np.roll(a, -1))


def test_a_hoisted_value_keeps_its_source(one: World) -> None:
    e = one.server.explicit
    hoisted = e.hoist(one.client.encrypt(np.arange(4) / 4))
    for _ in range(20):
        one.client.encrypt(np.zeros(4))  # it would overwrite the source if its memory were free
    close(one, e.rotate_hoisted(hoisted, 1), [0.25, 0.5, 0.75, 0])


def test_nothing_is_done_by_itself(one: World) -> None:
    e = one.server.explicit
    x = one.client.encrypt([0.5])
    low = e.drop_to(x, 1)
    with pytest.raises(jali.Error):
        e.add(x, low)
    with pytest.raises(jali.ScaleMismatch):
        e.add(x, e.multiply_scalar(x, 0.5, 2.0**40))
    with pytest.raises(jali.ScaleMismatch):
        e.multiply_accumulate(
            [e.extend(x), e.extend(x)],
            [e.encode_diagonal([1.0], x.level, 2.0**s) for s in (40, 41)],
        )
    with pytest.raises(jali.DepthExhausted):
        e.rescale(e.drop_to(x, 0))
    with pytest.raises(jali.KeyMissing):
        e.rotate(x, 5)
    for bad in (
        lambda: e.encode([np.nan]),
        lambda: e.encode([1.0], scale=-1.0),
        lambda: e.encode([1.0], scale=float("nan")),
        lambda: e.encode([1.0], level=99),
        lambda: e.encode([1.0], slots=3),
        lambda: e.encode_diagonal([1.0], 1, 0.0),
        lambda: e.multiply_accumulate([], []),
        lambda: e.drop_to(x, 99),
    ):
        with pytest.raises(jali.InvalidArgument):
            bad()


def test_objects_of_others_are_refused(one: World) -> None:
    """Every operation refuses objects of other parameters, in every argument."""
    params = ckks.Params.create(depth=1, scale_bits=30)
    client = ckks.Client(params)
    other = ckks.Evaluator(params, client.evaluation_keys(rotations=[1])).explicit
    e = one.server.explicit
    ours = one.client.encrypt([0.5])
    theirs = client.encrypt([0.5])
    extended, foreign = e.extend(ours), other.extend(theirs)
    diagonal = e.encode_diagonal([1.0], ours.level, 2.0**30)
    foreign_diagonal = other.encode_diagonal([1.0], theirs.level, 2.0**30)
    hoisted = other.hoist(theirs)
    plain = other.encode([0.5])
    for i, call in enumerate(
        (
            *(
                lambda name=name: getattr(e, name)(theirs)
                for name in [
                    "negate",
                    "square",
                    "multiply_i",
                    "twice_real",
                    "relinearise",
                    "rescale",
                    "relinearise_rescale",
                    "conjugate",
                    "hoist",
                    "extend",
                ]
            ),
            *(
                lambda name=name, pair=pair: getattr(e, name)(*pair)
                for name in ["add", "sub", "multiply", "multiply_relinearise_rescale"]
                for pair in ((ours, theirs), (theirs, ours))
            ),
            *(
                lambda name=name: getattr(e, name)(ours, plain)
                for name in ["add_plain", "sub_plain", "multiply_plain"]
            ),
            lambda: e.decode(plain),
            lambda: e.add_scalar(theirs, 1.0),
            lambda: e.multiply_scalar(theirs, 1.0, 2.0**30),
            lambda: e.multiply_integer(theirs, 2),
            lambda: e.multiply_monomial(theirs, 1),
            lambda: e.drop_to(theirs, 0),
            lambda: e.adjust(theirs, 0, 2.0**30),
            lambda: e.rotate(theirs, 1),
            lambda: e.rotate_hoisted(hoisted, 1),
            lambda: e.rotate_hoisted(hoisted, 0),
            lambda: e.rotate_extended(hoisted, 1),
            lambda: e.reduce(foreign),
            lambda: e.reduce_rescale(foreign),
            lambda: e.add_extended(extended, foreign),
            lambda: e.rotate_accumulate(extended, foreign, 1),
            lambda: e.rotate_accumulate(foreign, extended, 1),
            lambda: e.multiply_accumulate([foreign], [diagonal]),
            lambda: e.multiply_accumulate([extended], [foreign_diagonal]),
        )
    ):
        print("call", i)
        with pytest.raises(jali.ParamsMismatch):
            call()


def test_extended_shapes(one: World) -> None:
    e = one.server.explicit
    x, batch = one.client.encrypt([0.5]), one.client.encrypt(np.ones((3, 4)), batch=True)
    low = e.extend(e.drop_to(x, 1))
    diagonal = e.encode_diagonal([1.0], x.level, 2.0**30)
    for bad in (
        lambda: e.multiply_accumulate([e.extend(batch), e.extend(x)], [diagonal, diagonal]),
        lambda: e.multiply_accumulate([low], [diagonal]),
        lambda: e.multiply_accumulate(
            [e.extend(batch)], [e.encode_diagonal(np.ones((2, 4)), x.level, 2.0**30)]
        ),
        lambda: e.rotate_accumulate(e.extend(batch), e.extend(x), 1),
        lambda: e.rotate_accumulate(e.extend(x), low, 1),
        lambda: e.add_extended(e.extend(x), low),
    ):
        with pytest.raises(jali.InvalidArgument):
            bad()
    twice = e.extend(one.client.encrypt(np.arange(4) / 4))
    e.rotate_accumulate(twice, twice, 1)  # the sum is rotated and added to itself
    close(one, e.reduce(twice), [0.25, 0.75, 1.25, 0.75])


def test_both_sides_meet(one: World, rng: np.random.Generator) -> None:
    """Results of the explicit evaluator can be bound again."""
    a = rng.uniform(-1, 1, 10)
    x = one.client.encrypt(a)
    by_hand = one.server.explicit.multiply(x, x)
    assert_close(one, one.server.bind(by_hand) + one.server.bind(x), a * a + a)


def test_compact_plaintexts(world: World, rng: np.random.Generator) -> None:
    """One serves every level, with the bytes of what encode gives there."""
    e, n = world.server.explicit, world.params.slots
    x = world.client.encrypt(rng.uniform(-1, 1, n))
    for values in (
        rng.uniform(-1, 1, n),
        1j * rng.uniform(-1, 1, (2, n)),
        [0.5, -2],
        3 * np.ones(n),
    ):
        compact = e.encode_compact(values, x.scale)
        batch, length = np.atleast_2d(values).shape
        assert (compact.batch, compact.slots, compact.scale) == (batch, n, x.scale)
        one_period = length == n and np.ptp(values) == 0
        assert compact.nbytes == batch * 8 * (2 if one_period else 2 * n)
        for level in range(world.params.depth + 1):
            plain = e.encode(values, level, x.scale)
            assert e.expand(compact, level).to_bytes() == plain.to_bytes()
        if batch == 1:
            plain = e.encode(values, x.level, x.scale)
            for name in ("add_plain", "sub_plain", "multiply_plain"):
                operation = getattr(e, name)
                assert operation(x, compact).to_bytes() == operation(x, plain).to_bytes()
    assert e.encode_compact([1.0]).scale == world.params.level(world.params.depth).scale


def test_compact_plaintexts_are_refused(one: World) -> None:
    e = one.server.explicit
    n = one.params.slots
    with pytest.raises(jali.InvalidArgument, match="NaN"):
        e.encode_compact([np.nan])
    with pytest.raises(jali.InvalidArgument, match="holds 62"):
        e.encode_compact(np.ones(n), 2.0**62)
    for scale in (-1.0, 0.5, np.inf, np.nan):
        with pytest.raises(jali.InvalidArgument, match="scale"):
            e.encode_compact([1.0], scale)
    with pytest.raises(jali.InvalidArgument, match=r"does not fit|split|fit"):
        e.encode_compact(np.ones(n + 1))
    with pytest.raises(jali.InvalidArgument, match="level"):
        e.expand(e.encode_compact([1.0]), one.params.depth + 1)
    with pytest.raises(TypeError, match="encode_compact"):
        ckks.CompactPlaintext()
    x = one.client.encrypt(np.ones(n))
    with pytest.raises(jali.ScaleMismatch):
        e.add_plain(x, e.encode_compact([1.0], x.scale * 2))
