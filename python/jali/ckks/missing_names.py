"""What newcomers look for in parameters, keys and ciphertexts of CKKS: a sentence for each name."""

from __future__ import annotations

from jali._core.refusals import refuse_names
from jali._jali.ckks import Ciphertext, EvaluationKeys, Params, Plaintext, PublicKey
from jali.ckks.array import EncryptedArray

__all__ = ["install"]

CONSTANT = "it never changes: use it again as it is, no copy is needed"
BYTES = "to_bytes() gives its bytes, and save(path) writes them"
DEGREE = (
    "the ring degree N is 2 ** params.log_n; params.slots numbers, N/2, fit into one ciphertext"
)
DEPTH = (
    "params.depth says how many multiplications may follow one another, and params.level(i) describes "
    "a level from 0 to depth"
)
MODULI = "params.primes has all primes, and params.log_q and params.log_qp the bits of the moduli"
HOLDER = "ckks.Client(params) makes the keys, and encrypts and decrypts with them"

PARAMS = {
    **dict.fromkeys(
        ("n", "N", "degree", "ring_degree", "ring_dim", "ring_dimension", "poly_degree"), DEGREE
    ),
    **dict.fromkeys(("poly_modulus_degree", "poly_mod_degree"), DEGREE),
    **dict.fromkeys(("levels", "max_level", "level_count", "multiplicative_depth"), DEPTH),
    **dict.fromkeys(
        ("coeff_modulus", "coeff_mod_bit_sizes", "coeff_mod", "moduli", "modulus", "q", "p"), MODULI
    ),
    **dict.fromkeys(
        ("slot_count", "num_slots", "n_slots", "batch_size"),
        "params.slots says how many numbers one ciphertext holds",
    ),
    **dict.fromkeys(("global_scale", "default_scale"), "see params.scale and params.scale_bits"),
    "security_level": "see params.security",
    **dict.fromkeys(("hash", "id"), "see params.fingerprint"),
    **dict.fromkeys(("encrypt", "decrypt", "keygen", "generate_keys", "client"), HOLDER),
    **dict.fromkeys(("serialize", "dump", "dumps"), BYTES),
    "copy": CONSTANT,
}

ROTATIONS = "has_rotation(steps) says whether a rotation by so many slots is possible"
TOGETHER = (
    "sets of evaluation keys are not joined: one call makes all of them, "
    "client.evaluation_keys(rotations=[1, 2, 4])"
)

KEYS = {
    **dict.fromkeys(
        ("rotations", "has_rotations", "galois_keys", "galois", "rotation_keys"), ROTATIONS
    ),
    **dict.fromkeys(
        ("relin_keys", "relin_key", "relinearisation", "relinearization", "has_relinearization"),
        "has_relinearisation says whether products of ciphertexts can be relinearised",
    ),
    **dict.fromkeys(("add", "merge", "union", "update", "extend", "append", "join"), TOGETHER),
    **dict.fromkeys(
        ("secret_key", "public_key"),
        "the client has them: Client.public_key() is for others, and the secret key stays inside",
    ),
    **dict.fromkeys(("serialize", "dump", "dumps"), BYTES),
    "size": "see nbytes for the memory, and sent_bytes for a message",
    "copy": CONSTANT,
}

BIND = (
    "a Ciphertext does not compute: bind it to an Evaluator first, x = evaluator.bind(ciphertext)"
)
DECRYPT = (
    "only the client can see the numbers: Client.decrypt(ciphertext) gives them as a NumPy array"
)

CIPHERTEXT = {
    **{name: BIND for name in dir(EncryptedArray) if not name.startswith("_")},
    **dict.fromkeys(("rotate", "conjugate", "bootstrap", "evaluator", "bind"), BIND),
    **dict.fromkeys(("decrypt", "decode", "tolist", "item", "numpy", "to_numpy"), DECRYPT),
    **dict.fromkeys(("size", "ndim", "dtype"), "see shape, length and is_complex"),
    **dict.fromkeys(("serialize", "dump", "dumps", "tobytes", "tofile"), BYTES),
    "copy": CONSTANT,
}

PUBLIC_KEY = {
    "encrypt": "ckks.Encryptor(public_key).encrypt(values) encrypts with it",
    "decrypt": "a public key does not decrypt: Client.decrypt(x) does",
    **dict.fromkeys(("serialize", "dump", "dumps"), BYTES),
    "copy": CONSTANT,
}

PLAINTEXT = {
    "decode": "Evaluator.explicit.decode(plaintext) gives its numbers",
    "encrypt": "Client.encrypt(values) encodes and encrypts numbers",
    **dict.fromkeys(("serialize", "dump", "dumps"), BYTES),
    "copy": CONSTANT,
}


def install() -> None:
    """Gives the classes of the extension their sentences."""
    for kind, sentences in (
        (Params, PARAMS),
        (EvaluationKeys, KEYS),
        (Ciphertext, CIPHERTEXT),
        (PublicKey, PUBLIC_KEY),
        (Plaintext, PLAINTEXT),
    ):
        refuse_names(kind, sentences)
