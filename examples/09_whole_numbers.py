"""Course 9: whole numbers, exactly. TFHE from its first equation to integers of any width.

CKKS computes on long vectors of real numbers, nearly exactly. TFHE computes on whole numbers of a
few bits, exactly, and looks any function up in a table. Parts 1 and 2 do by hand, with NumPy and a
key that hides nothing, what Jali does in part 3.
"""

import time

import numpy as np

from jali import tfhe

rng = np.random.default_rng(9)
VALUES = 16  # numbers of 4 bits: 2 of message and 2 of carry
STEP = 2**59  # a number m lies at m STEP, so that 16 of them fill half of the 64-bit words

# --- 1. LWE: a number hides behind noise ---------------------------------------------------------
# The secret s is a vector of bits. A ciphertext is a random mask a and the body b = <a, s> + m STEP
# + e, all modulo 2^64. Whoever has s computes b - <a, s>, the phase, and rounds. To everybody else
# b looks random.
n = 32
s = rng.integers(0, 2, n, dtype=np.uint64)


def encrypt(m: int) -> np.ndarray:
    """The mask, and the body as the last word."""
    a = rng.integers(0, 2**64, n, dtype=np.uint64)
    error = rng.integers(-(2**50), 2**50)  # Jali takes it from the operating system's randomness
    body = (int((a * s).sum()) + m * STEP + int(error)) % 2**64
    return np.append(a, np.uint64(body))


def decrypt(ciphertext: np.ndarray) -> tuple[int, float]:
    """The number, and how far the phase is from it, in steps. At 1/2 a number becomes its
    neighbour."""
    phase = (int(ciphertext[-1]) - int((ciphertext[:-1] * s).sum())) % 2**64
    return (phase + STEP // 2) // STEP % (2 * VALUES), (phase + STEP // 2) % STEP / STEP - 0.5


# Sums of ciphertexts are ciphertexts of sums. No key is needed, and nothing is slow. But errors add
# up, too.
x, y = encrypt(2), encrypt(3)
assert decrypt(x + y)[0] == 5
assert decrypt(x + np.uint64(2) * y)[0] == 8
print(
    f"2 + 3 = {decrypt(x + y)[0]}, and the errors are {decrypt(x)[1]:+.5f} and {decrypt(x + y)[1]:+.5f} of a step"
)

# --- 2. Programmable bootstrapping: a table on a wheel -------------------------------------------
# Polynomials modulo X^N + 1 are a wheel: a product with X^k turns the coefficients by k, and what
# goes over the edge comes back with the other sign. Write f(0) into the first N / 16 coefficients,
# f(1) into the next ones, and so on. Turn the wheel back by the phase, and f(m) stands at
# coefficient 0.
N = 1024


def turned(polynomial: np.ndarray, k: int) -> np.ndarray:
    """The product with X^k."""
    k %= 2 * N
    sign = -1 if k >= N else 1
    wheel = np.roll(polynomial, k % N)
    wheel[: k % N] *= -1
    return sign * wheel


def look_up(f, ciphertext: np.ndarray) -> int:
    """f of the number. A server has s encrypted, bit by bit: the bootstrapping key. Here the bits
    are read as they are."""
    table = np.repeat([f(m) for m in range(VALUES)], N // VALUES)
    table = turned(table, -(N // VALUES // 2))  # a number's box reaches half a step to both sides
    # The modulus switch: every word is rounded to 2N places, one for each position of the wheel.
    exponents = [round(int(word) * 2 * N / 2**64) for word in ciphertext]
    wheel = turned(table, -exponents[-1])
    for exponent, bit in zip(exponents[:-1], s, strict=True):
        # The blind rotation. A server computes wheel + bit (X^exponent - 1) wheel on encrypted
        # polynomials, for every bit of the key: it turns, or not, and does not know which.
        if bit:
            wheel = turned(wheel, exponent)
    return int(wheel[0])


for m in range(VALUES):
    assert look_up(lambda v: (v * v + 3) % 16, encrypt(m)) == (m * m + 3) % 16
assert look_up(lambda v: v % 4, x + y) == 1
print("a table on a wheel: 5 modulo 4 is", look_up(lambda v: v % 4, x + y))
# The result is a new ciphertext, whose error comes from the bootstrapping key and not from the
# input. So the computation may go on for ever. What is left is to fetch coefficient 0 as an LWE
# ciphertext, and to switch it to the small key.

# --- 3. The same with Jali -----------------------------------------------------------------------
params = tfhe.Params.preset("message_2_carry_2")
print(f"{params!r}")
client = tfhe.Client(params)
start = time.perf_counter()
keys = client.evaluation_keys()
server = tfhe.Evaluator(params, keys)
print(
    f"keys of {keys.nbytes / 1e6:.0f} MB, made and prepared in {time.perf_counter() - start:.1f} s, engine {server.engine}"
)

a, b = np.array([0, 1, 2, 3]), np.array([3, 2, 1, 3])
x, y = server.bind(client.encrypt(a)), server.bind(client.encrypt(b))

# Sums and products with clear numbers cost nothing, until the carries are full (largest) or the
# noise is as large as the parameters allow (norm2). Then Jali says so, and a look-up brings both
# back.
total = x + 2 * y
print(
    f"x + 2 y: at most {total.largest} of 15, squared norm {total.norm2:.0f} of {params.max_norm2:.0f}"
)
assert (client.decrypt(total) == a + 2 * b).all()
message = server.apply(lambda v: v % 4, total)
assert message.largest == 3 and message.norm2 == 1
assert (client.decrypt(message) == (a + 2 * b) % 4).all()

# Any function of one number, or of two, is one look-up an element.
start = time.perf_counter()
results = {
    "x^3 mod 4": (server.apply(lambda v: v**3 % 4, x), a**3 % 4),
    "|x - y|": (server.apply(lambda v, w: abs(v - w), x, y), np.abs(a - b)),
    "x < y": (x < y, a < b),
}
seconds = time.perf_counter() - start
for name, (encrypted, expected) in results.items():
    print(f"{name:10} {client.decrypt(encrypted)}")
    assert (client.decrypt(encrypted) == expected).all()
print(f"{1000 * seconds / 12:.1f} ms a look-up")

# --- 4. Integers ---------------------------------------------------------------------------------
# An integer of 8 bits is four digits of 2 bits. Their carries are what the spare bits are for:
# digits are added, and look-ups carry. Jali plans which look-ups an operation takes; you write
# NumPy.
u, v = np.array([200, 17], dtype=np.uint8), np.array([100, 42], dtype=np.uint8)
p, q = (server.bind(client.encrypt_uint(z, bits=8)) for z in (u, v))
for name, encrypted, expected in (
    ("p + q", p + q, u + v),  # modulo 256
    ("p > q", p > q, u > v),
    ("larger", server.select(p > q, p, q), np.maximum(u, v)),
):
    found = client.decrypt(encrypted)
    print(f"{name:10} {found}")
    assert (found == expected).all()

# A table with an encrypted index: the server does not learn which price it read.
prices = [3, 14, 15, 92]
index = server.bind(client.encrypt_uint(np.array([3, 0]), bits=2))
assert (client.decrypt(server.read(prices, index)) == [92, 3]).all()
