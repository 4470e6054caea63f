"""Course 6: computing without end.

Every product takes a level, and levels run out. Bootstrapping restores them without decrypting: the
server needs more evaluation keys, but no secret. Here a server squares complex numbers of modulus
1, so that their angles double, for as many steps as it likes.
"""

import time

import numpy as np

from jali import ckks

STEPS = 6


def main() -> None:
    """A client that sends one ciphertext and a server that computes past its levels."""
    # This is the smallest bootstrapping preset. docs/bootstrapping.md lists the others, which are
    # best run on a GPU.
    params = ckks.Params.preset("n15_small")
    client = ckks.Client(params)
    # minimum=True makes at most one rotation key for each matrix, and one more. The keys take less
    # memory than those of bootstrap=True alone, and bootstrapping is slower.
    keys = client.evaluation_keys(bootstrap=True, minimum=True)
    server = ckks.Evaluator(params, keys)
    print(
        f"{params.slots} slots, levels {params.bootstrap_level} to {params.depth}, "
        f"{keys.nbytes / 2**20:.0f} MiB of keys, "
        f"a slot's error exceeds 1/64 with probability at most 2^{params.log2_bootstrap_beyond(1 / 64):.0f}"
    )

    values = np.exp(2j * np.pi * np.random.default_rng().uniform(size=params.slots))
    # Bootstrapping refuses numbers that may be too large. peak=1.0 declares that no number has a
    # modulus above 1. Then no product of them has.
    x = server.bind(client.encrypt(values, peak=1.0))
    for step in range(STEPS):
        if x.level == params.bootstrap_level:
            start = time.perf_counter()
            x = x.bootstrap()
            print(
                f"step {step}: back to level {x.level} in {time.perf_counter() - start:.1f} s, "
                f"{x.precision_bits:.1f} bits left"
            )
        x = x * x
        values = values * values

    # The error of an angle doubles in each step, too.
    error = np.abs(client.decrypt(x) - values)
    print(f"after {STEPS} products: mean error {error.mean():.1e}, largest {error.max():.1e}")
    assert error.max() < 0.05


if __name__ == "__main__":
    main()
