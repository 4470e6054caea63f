"""Course 11: exact integers, thousands in one ciphertext.

TFHE looks up functions of integers, one after the other. Sums and products of many integers need no
look-up: they are arithmetic modulo a number, in all slots of a ciphertext at once. Nothing is
rounded, and what cannot be exact is refused.
"""

import numpy as np

import jali
from jali import discrete


def main() -> None:
    # The size of the numbers, and how many products follow one another. What is told apart is every
    # signed integer of 20 bits; the library looks for the modulus.
    params = discrete.Params.create(integers=20, depth=1)
    client = discrete.Client(params)
    keys = client.evaluation_keys(rotations="powers")
    server = discrete.Evaluator(params, keys)
    print(f"modulo {params.modulus}, {params.slots} numbers in a ciphertext")

    # 1. Votes: 300 voters, 4 options, counted without opening one ballot.
    rng = np.random.default_rng(11)
    ballots = np.eye(4, dtype=bool)[rng.integers(0, 4, 300)]
    votes = server.bind(client.encrypt(ballots))  # booleans have the range (0, 1)
    counts = votes.sum(axis=0)
    assert client.decrypt(counts).tolist() == ballots.sum(axis=0).tolist()
    print("votes:", client.decrypt(counts), "of the range", counts.range)

    # 2. Ranges are what makes results exact. A product that might not fit is refused beforehand,
    # and nobody finds a wrong number at the end.
    prices = rng.integers(0, 1000, 50)
    pieces = rng.integers(0, 100, 50)
    price = server.bind(client.encrypt(prices, range=(0, 999)))
    count = server.bind(client.encrypt(pieces, range=(0, 99)))
    assert client.decrypt(price * count).tolist() == (prices * pieces).tolist()
    try:
        (price * count).sum()  # 50 products of up to 98,901
        raise AssertionError("a sum that may leave the modulus was accepted")
    except jali.RangeExceeded as error:
        print("refused:", error)

    # 3. Noise: every value knows how much room is left for it, in bits.
    digits = server.bind(client.encrypt(np.arange(10), range=(0, 9)))
    squares = digits * digits
    print(
        f"noise budget: {digits.noise_budget:.0f} bits, {squares.noise_budget:.0f} after a product"
    )
    try:
        squares * digits
        raise AssertionError("a second product was accepted, for which there is no level")
    except jali.DepthExhausted as error:
        print("refused:", error)

    # 4. A private look-up. The client encrypts which of 8 rows it wants, and the server multiplies
    # its table by that vector. A Matrix is made once and serves every query.
    table = rng.integers(0, 1000, (8, 500))
    matrix = discrete.Matrix(server, table.T)
    wanted = np.zeros(8, dtype=bool)
    wanted[5] = True
    query = client.encrypt(np.tile(wanted, (params.slots // 8, 1)))  # it fills the ciphertext
    row = (matrix @ server.bind(query)).with_range(0, 999)
    assert client.decrypt(row).tolist() == table[5].tolist()
    print(
        f"a row of the table: {client.decrypt(row)[:6]} .. The server does not know which it was."
    )

    # 5. Sums of many owners, modulo any number: a public key encrypts, and only sums are decrypted.
    sums = discrete.Params.create(modulus=2**20, packing="coefficients", depth=0)
    collector = discrete.Client(sums)
    adder = discrete.Evaluator(sums)
    owner = discrete.Encryptor(collector.public_key())
    vectors = rng.integers(0, 2**16, (10, 100), dtype=np.uint16)
    total = adder.bind(owner.encrypt(vectors[0]))
    for vector in vectors[1:]:
        total = total + adder.bind(owner.encrypt(vector))
    assert collector.decrypt(total).tolist() == vectors.sum(axis=0, dtype=np.int64).tolist()
    print("sums of ten owners:", collector.decrypt(total)[:4], "..")


if __name__ == "__main__":
    main()
