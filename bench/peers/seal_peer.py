"""Times CKKS operations of SEAL, through TenSEAL, on one thread.

compare.py runs it in the peer's own environment. It reads lines "OPERATION REPS" and answers each
with one line of JSON: {"op", "seconds": [...], "cpu_seconds": [...], "error": largest slot error of
the result}.
"""

import json
import sys
import time

import numpy as np
import tenseal as ts
import tenseal.sealapi as seal

LOG_N = 14
MODULI = [53] + [46] * 7 + [55]  # log Q = 375 in eight primes, one special prime; log PQ = 430
SCALE = 2.0**46
MATVEC = {"matvec_rnnt_fc0": (512, 1344), "matvec_rnnt_lstm": (1024, 2048)}  # (outputs, inputs)


def primitives(rng):
    """For each operation's name, a function that runs it and one that returns the largest error of
    the last result."""
    n = 1 << LOG_N
    parms = seal.EncryptionParameters(seal.SCHEME_TYPE.CKKS)
    parms.set_poly_modulus_degree(n)
    parms.set_coeff_modulus(seal.CoeffModulus.Create(n, MODULI))
    context = seal.SEALContext(parms, True, seal.SEC_LEVEL_TYPE.TC128)
    keygen = seal.KeyGenerator(context)
    public, relin, galois = seal.PublicKey(), seal.RelinKeys(), seal.GaloisKeys()
    keygen.create_public_key(public)
    keygen.create_relin_keys(relin)
    keygen.create_galois_keys([3], galois)  # Galois element 3: one slot to the left
    encoder, evaluator = seal.CKKSEncoder(context), seal.Evaluator(context)
    encryptor = seal.Encryptor(context, public)
    decryptor = seal.Decryptor(context, keygen.secret_key())

    def fresh():
        v = rng.uniform(-1, 1, n // 2)
        plain, cipher = seal.Plaintext(), seal.Ciphertext()
        encoder.encode(v.tolist(), SCALE, plain)
        encryptor.encrypt(plain, cipher)
        return v, cipher

    (va, a), (vb, b) = fresh(), fresh()
    product, turned = seal.Ciphertext(), seal.Ciphertext()

    def multiply():
        evaluator.multiply(a, b, product)
        evaluator.relinearize_inplace(product, relin)
        evaluator.rescale_to_next_inplace(product)

    def rotate():
        evaluator.rotate_vector(a, 1, galois, turned)

    def error(cipher, want):
        plain = seal.Plaintext()
        decryptor.decrypt(cipher, plain)
        return float(np.abs(np.array(encoder.decode_double(plain)) - want).max())

    return {
        "multiply_relinearise_rescale": (multiply, lambda: error(product, va * vb)),
        "rotate": (rotate, lambda: error(turned, np.roll(va, -1))),
    }


def matvec(shape, rng):
    """TenSEAL's own product of an encrypted vector and a plain matrix."""
    rows, columns = shape
    context = ts.context(ts.SCHEME_TYPE.CKKS, 1 << LOG_N, coeff_mod_bit_sizes=MODULI, n_threads=1)
    context.global_scale = SCALE
    context.generate_galois_keys()
    vector = rng.uniform(-1, 1, columns)
    matrix = rng.uniform(-1, 1, (columns, rows)) / np.sqrt(columns)
    cipher, plain = ts.ckks_vector(context, vector.tolist()), matrix.tolist()
    result = {}

    def run():
        result["cipher"] = cipher.matmul(plain)

    def error():
        return float(np.abs(np.array(result["cipher"].decrypt()) - vector @ matrix).max())

    return run, error


def main():
    rng = np.random.default_rng()
    operations = primitives(rng)
    print(
        json.dumps({"ready": "seal", "tenseal": ts.__version__, "log_n": LOG_N, "moduli": MODULI}),
        flush=True,
    )
    for line in sys.stdin:
        name, reps = line.split()
        if name in MATVEC and name not in operations:
            operations[name] = matvec(MATVEC[name], rng)
        run, error = operations[name]
        seconds, cpu_seconds = [], []
        for _ in range(int(reps)):
            start, cpu = time.perf_counter(), time.process_time()
            run()
            cpu_seconds.append(time.process_time() - cpu)
            seconds.append(time.perf_counter() - start)
        answer = {"op": name, "seconds": seconds, "cpu_seconds": cpu_seconds, "error": error()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
