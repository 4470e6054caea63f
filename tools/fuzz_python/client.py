"""Operations of the client, which holds the secret key."""

from __future__ import annotations

from typing import Any

from fuzz_python.case import Case
from fuzz_python.hostile import OTHERS
from fuzz_python.registry import operation
from jali import ckks


@operation("Client.encrypt", "Client.params", "Client.engine", "Client.__repr__")
def encrypt(c: Case) -> Any:
    """Numbers of any kind."""
    assert repr(c.world.client) and c.world.client.engine
    return c.world.client.encrypt(
        c.array(8, 512, 513),
        level=None if c.rare(0.6) else c.integer(0, 1, 3),
        slots=None if c.rare(0.6) else c.integer(8, 512),
        magnitude=1.0 if c.rare(0.6) else c.number(),
    )


@operation("Encryptor.*", "PublicKey.*", "Client.public_key")
def public_key(c: Case) -> Any:
    """With a public key that was changed."""
    data = c.changed(c.world.public_key, {"seed": (0, "<Q")}, "public key")
    key = c.read(ckks.PublicKey, data)
    encryptor = ckks.Encryptor(key, threads=1)
    assert repr(encryptor) and encryptor.params == c.world.params
    return encryptor.encrypt(c.array(8))


@operation("Client.decrypt")
def decrypt(c: Case) -> Any:
    """The numbers inside."""
    x = c.random.choice(OTHERS) if c.rare(0.05) else c.random.choice([c.value(), c.ciphertext()])
    return c.world.client.decrypt(
        x,
        length=None if c.rare(0.7) else c.integer(1, 8, 512),
        complex=c.random.choice([None, True, False] if not c.rare() else OTHERS),
    )


@operation("Client.release", "ReleasePolicy.*", "ckks.worst_case_error", "ckks.worst_case_noise")
def release(c: Case) -> Any:
    """The numbers inside, to be shared."""
    x = c.ciphertext()
    bound = ckks.worst_case_noise(x) if c.rare(0.5) else c.number()
    policy = ckks.ReleasePolicy(
        origin=c.random.choice(["derived", "declared"])
        if not c.rare()
        else c.random.choice(OTHERS),
        error_bound=bound,
        largest=8.0 if c.rare(0.7) else c.number(),
        releases=1.0 if c.rare(0.7) else c.number(),
        statistical_bits=c.integer(40),
    )
    assert repr(policy)
    policy.noise_std(c.integer(8), c.integer(1))
    return c.world.client.release(x, policy=policy)


@operation("Client.evaluation_keys", "EvaluationKeys.*")
def evaluation_keys(c: Case) -> None:
    """Keys for any rotations."""
    keys = c.world.client.evaluation_keys(
        [c.integer(1, 2)] if not c.rare() else c.random.choice(OTHERS)
    )
    assert repr(keys) and keys.nbytes > 0 and keys.count > 0 and not keys.has_conjugation
    assert keys.has_relinearisation
    keys.has_rotation(c.integer(1))
