"""Times BFV operations of SEAL, through TenSEAL, which has no BGV, on one thread.

compare.py runs it in the peer's own environment. It reads lines "OPERATION REPS" and answers each with one line of JSON: {"op", "seconds": [...], "cpu_seconds": [...], "error":
the share of slots that are wrong}. The answer to "known", a circuit of which compare.py knows the
operands, also has "values", the decrypted numbers.
"""

import json
import sys
import time

import numpy as np
import tenseal as ts
import tenseal.sealapi as seal

LOG_N = 14
MODULI = [43] * 7 + [55]  # log Q = 301 in seven primes, one special prime
T = 65537


def operations():
    """For each operation's name, a function that runs it, and one that returns the numbers of the
    last result, and the numbers that are right."""
    n = 1 << LOG_N
    parms = seal.EncryptionParameters(seal.SCHEME_TYPE.BFV)
    parms.set_poly_modulus_degree(n)
    parms.set_coeff_modulus(seal.CoeffModulus.Create(n, MODULI))
    parms.set_plain_modulus(T)
    context = seal.SEALContext(parms, True, seal.SEC_LEVEL_TYPE.TC128)
    if not context.parameters_set():
        raise SystemExit("SEAL refuses these parameters")
    keygen = seal.KeyGenerator(context)
    public, relin, galois = seal.PublicKey(), seal.RelinKeys(), seal.GaloisKeys()
    keygen.create_public_key(public)
    keygen.create_relin_keys(relin)
    keygen.create_galois_keys([3, pow(3, 3, 2 * n), 2 * n - 1], galois)  # rows by 1 and 3; swap
    encoder, evaluator = seal.BatchEncoder(context), seal.Evaluator(context)
    encryptor = seal.Encryptor(context, public)
    decryptor = seal.Decryptor(context, keygen.secret_key())
    i = np.arange(n, dtype=np.int64)
    va, vb = (i * i + 1) % T, (7 * i + 3) % T

    def fresh(values):
        plain, cipher = seal.Plaintext(), seal.Ciphertext()
        encoder.encode(values.tolist(), plain)
        encryptor.encrypt(plain, cipher)
        return cipher

    a, b = fresh(va), fresh(vb)
    product, turned, swapped, result = (seal.Ciphertext() for _ in range(4))

    def times(x, y, out):
        evaluator.multiply(x, y, out)
        evaluator.relinearize_inplace(out, relin)

    def known():
        # rotate(a b, 3) b + swap(a)
        times(a, b, product)
        moved = seal.Ciphertext()
        evaluator.rotate_rows(product, 3, galois, moved)
        times(moved, b, result)
        evaluator.rotate_columns(a, galois, swapped)
        evaluator.add_inplace(result, swapped)

    def numbers(cipher):
        plain = seal.Plaintext()
        decryptor.decrypt(cipher, plain)
        return np.array(encoder.decode_int64(plain), dtype=np.int64)

    rows = va.reshape(2, -1)
    return {
        "multiply": (lambda: times(a, b, product), lambda: numbers(product), va * vb),
        "rotate": (
            lambda: evaluator.rotate_rows(a, 1, galois, turned),
            lambda: numbers(turned),
            np.roll(rows, -1, axis=1).reshape(-1),
        ),
        "swap_rows": (
            lambda: evaluator.rotate_columns(a, galois, swapped),
            lambda: numbers(swapped),
            rows[::-1].reshape(-1),
        ),
        "known": (known, lambda: numbers(result), None),
    }


def main():
    known = operations()
    about = {"ready": "seal", "tenseal": ts.__version__, "multiplication": "bfv"}
    print(json.dumps({**about, "log_n": LOG_N, "moduli": MODULI}), flush=True)
    for line in sys.stdin:
        name, reps = line.split()
        run, numbers, want = known[name]
        seconds, cpu_seconds = [], []
        for _ in range(int(reps)):
            start, cpu = time.perf_counter(), time.process_time()
            run()
            cpu_seconds.append(time.process_time() - cpu)
            seconds.append(time.perf_counter() - start)
        answer = {"op": name, "seconds": seconds, "cpu_seconds": cpu_seconds, "error": 0.0}
        got = numbers()
        if want is None:
            answer["values"] = got.tolist()
        else:
            answer["error"] = float(np.count_nonzero((got - want) % T) / got.size)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
