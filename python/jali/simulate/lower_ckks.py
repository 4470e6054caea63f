"""The steps of each operation of CKKS. Multiplications are those of backend/trace/cost.h; L is the
number of limbs of an operand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jali.simulate.lowering import Lowering, corrupt
from jali.simulate.steps import Entity, Kind
from jali.simulate.trace import Operand

__all__ = ["OPERATIONS", "CkksLowering"]

Steps = tuple[int, ...]


class CkksLowering(Lowering):
    """Steps on polynomials of N residues."""

    # --- sizes ----------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """The ring degree."""
        return int(self.header["N"])

    @property
    def batch(self) -> int:
        """Polynomials of each limb."""
        return int(self.record["batch"])

    def rows(self, operand: Operand) -> int:
        """Limbs times batch of an operand."""
        count, rest = divmod(operand.bytes, self.n * int(self.header["word_bytes"]))
        if rest or not count:
            corrupt(self.record, f"an operand of {operand.bytes} bytes is no block of residues")
        return count

    def limbs(self, operand: Operand) -> int:
        """Limbs of an operand that has the batch of the record."""
        count, rest = divmod(self.rows(operand), self.batch)
        if rest:
            corrupt(
                self.record, f"an operand of {operand.bytes} bytes has no batch of {self.batch}"
            )
        return count

    def out_rows(self, index: int = 0) -> int:
        """Limbs times batch of an output."""
        if index >= len(self.record.writes):
            corrupt(self.record, f"it writes fewer than {index + 1} operands")
        return self.rows(self.record.writes[index])

    # --- parts of operations --------------------------------------------------------------------

    def work(
        self, kind: Kind, count: int, after: Iterable[int] = (), streams: Iterable[int] = ()
    ) -> Steps:
        """A step of polynomials of N residues."""
        return self.step(kind, self.n, count, tuple(after), tuple(streams))

    def transform(self, kind: Kind, primes: Sequence[int], after: Steps) -> Steps:
        """Transforms of every limb, and the loads of their twiddle factors: N words for each
        prime."""
        if not primes:
            return after
        entity = Entity.TWIDDLE if kind == Kind.NTT else Entity.INVERSE_TWIDDLE
        bytes = self.n * self.header["word_bytes"]
        tables = tuple(step for p in primes for step in self.table(entity, p, bytes))
        return self.work(kind, len(primes) * self.batch, (*after, *tables))

    # A unit takes its steps in program order. So lifts that do not need each other, of digits or of
    # the halves of a ciphertext, go side by side: each stage of all of them before the next one.
    # Otherwise each would wait for the latencies of the one before.

    def lifts(self, parts: Sequence[tuple[Steps, Sequence[int], Sequence[int]]]) -> list[Steps]:
        """Centred lifts, from NTT form to NTT form. parts: what a polynomial waits for, the primes
        that it is lifted from, and those that it is lifted to."""
        coefficients = [self.transform(Kind.INTT, dropped, x) for x, dropped, _ in parts]
        y = [
            self.work(Kind.MUL, len(dropped) * self.batch, c) if to else c
            for c, (_, dropped, to) in zip(coefficients, parts, strict=True)
        ]
        sums = [
            self.work(Kind.MAC, (len(dropped) + 1) * len(to) * self.batch, c)
            for c, (_, dropped, to) in zip(y, parts, strict=True)
        ]
        return [self.transform(Kind.NTT, to, s) for s, (_, _, to) in zip(sums, parts, strict=True)]

    def digits(self) -> list[int]:
        """The limbs of each digit; at least one of them."""
        found = list(self.record["digits"])
        if not found:
            corrupt(self.record, "digits must not be empty")
        return found

    def mod_up(self, x: Steps, own: Sequence[int], ext: Sequence[int]) -> list[Steps]:
        """ModUp: what each digit of x waits for, lifted from its own primes to all of ext."""
        parts, begin = [], 0
        for limbs in self.digits():
            digit = own[begin : begin + limbs]
            begin += limbs
            parts.append((x, digit, [p for p in ext if p not in set(digit)]))
        if begin != len(own):
            corrupt(self.record, f"digits must add up to {len(own)} primes")
        return [(*x, *lifted) for lifted in self.lifts(parts)]

    def key_products(self, digits: Sequence[Steps], acc_rows: int, before: Steps = ()) -> Steps:
        """The sum of the digits times the key of each, which is loaded."""
        for digit in digits:
            key = self.load(Entity.KEY)
            before = self.work(Kind.MAC, 2 * acc_rows, (*digit, *key), before)
        return before

    def key_switch(self, x: Steps, own: Sequence[int], acc: Sequence[int]) -> Steps:
        """The accumulators of a key switch of x."""
        return self.key_products(self.mod_up(x, own, acc), len(acc) * self.batch)

    def own(self, acc: Sequence[int]) -> Sequence[int]:
        """The first primes of accumulators: those of the digits."""
        limbs = sum(self.digits())
        if limbs > len(acc):
            corrupt(self.record, f"digits have more limbs than the {len(acc)} of the result")
        return acc[:limbs]

    def scale_down(
        self, parts: Sequence[tuple[Steps, Steps]], primes: Sequence[int], out: Sequence[int]
    ) -> list[Steps]:
        """Divisions with rounding from some primes to those of the output. parts: what a polynomial
        waits for, and what its addend waits for."""
        kept, wanted = set(primes) & set(out), set(out)
        dropped = [p for p in primes if p not in wanted]
        rows = len(kept) * self.batch
        if dropped:
            lifted = self.lifts([(x, dropped, out) for x, _ in parts])
            done = [
                self.work(Kind.ADD, len(out) * self.batch, y, self.work(Kind.MUL, rows, x))
                for y, (x, _) in zip(lifted, parts, strict=True)
            ]
        elif len(kept) < len(out):
            done = [self.work(Kind.MUL, rows, x) for x, _ in parts]
        else:
            done = [x for x, _ in parts]
        return [
            self.work(Kind.ADD, len(out) * self.batch, addend, y) if addend else y
            for y, (_, addend) in zip(done, parts, strict=True)
        ]

    def combination(self, rows: int) -> Steps:
        """The sum of products and multiples of ciphertexts, over so many rows."""
        products, terms = self.record["products"], self.record["terms"]
        if not 0 <= products <= terms or 2 * terms > self.reads_left:
            corrupt(self.record, f"it has no {terms} terms, of which {products} are products")
        done: Steps = ()
        for k in range(terms):
            operands = 4 if k < products else 2
            loads = [step for _ in range(operands) for step in self.load()]
            done = self.work(Kind.MAC, operands * rows, loads, done)
        return done

    def weigh(self, operands: Sequence[Steps], entity: Entity | None = None) -> None:
        """The weighted sums of a record, from the operands that are there. entity: of the sums."""
        counts, chosen = self.record["sums"], self.record["operands"]
        if self.record["terms"] != len(chosen) or len(self.record.writes) != 2 * len(counts):
            corrupt(self.record, "its sums do not fit its terms and its outputs")
        weights = [self.load() for _ in chosen]
        accumulated: dict[tuple[int, int], Steps] = {}
        while self.reads_left:
            operand = self.next_read()
            accumulated[operand.object, operand.offset] = self.load()
        at = 0
        for k, terms in enumerate(counts):
            rows = self.out_rows(2 * k)
            before: list[int] = []
            for written in self.record.writes[2 * k : 2 * k + 2]:
                before += accumulated.get((written.object, written.offset), ())
            needed = before
            for j in range(at, at + terms):
                if chosen[j] >= len(operands):
                    corrupt(self.record, f"operands must be below {len(operands)}")
                needed += [*operands[chosen[j]], *weights[j]]
            at += terms
            done = self.work(Kind.MAC, 2 * terms * rows, needed)
            self.store(done, entity)
            self.store(done, entity)


# --- the table ------------------------------------------------------------------------------------


Lower = Callable[[CkksLowering], None]


def _elementwise(kind: Kind, reads: int) -> Lower:
    def lower(c: CkksLowering) -> None:
        loads = [step for _ in range(reads) for step in c.load()]
        c.store(c.work(kind, c.out_rows(), loads))

    return lower


def _transform(kind: Kind) -> Lower:
    def lower(c: CkksLowering) -> None:
        c.store(c.transform(kind, c.record["primes_out"], c.load()))

    return lower


def inner_product(c: CkksLowering) -> None:
    """sum_k a_k b_k."""
    loads = [step for _ in range(2 * c.record["terms"]) for step in c.load()]
    c.store(c.work(Kind.MAC, c.record["terms"] * c.out_rows(), loads))


def sample(c: CkksLowering) -> None:
    """Random residues."""
    c.store(c.work(Kind.SAMPLE, c.out_rows()))


def crt(c: CkksLowering) -> None:
    """A product of each word of an integer and each prime."""
    c.store(c.work(Kind.MAC, c.record["terms"] * c.out_rows(), c.load()))


def icrt(c: CkksLowering) -> None:
    """Sums of L residues times words; before, L products with constants, or L (L - 1) / 2 of mixed
    radix digits."""
    rows, words = c.rows(c.next_read()), c.record["terms"]
    limbs = rows // c.batch
    by_products = c.record.mults == rows * (1 + words) * c.n
    first = rows if by_products else rows * (limbs - 1) // 2
    digits = c.work(Kind.MUL if by_products else Kind.MAC, first, c.load())
    c.store(c.work(Kind.MAC, rows * words, digits))


def _slots(c: CkksLowering, numbers: Operand) -> int:
    slots, rest = divmod(numbers.bytes, 16 * c.batch)  # of complex doubles
    if rest or not slots or slots & (slots - 1):
        corrupt(c.record, f"{numbers.bytes} bytes are no slots of a batch of {c.batch}")
    return slots


def embed(c: CkksLowering) -> None:
    """From slots to the residues of rounded coefficients."""
    slots = _slots(c, c.next_read())
    coefficients = c.step(Kind.EMBED, slots, c.batch, c.load())
    c.store(c.work(Kind.MUL, c.out_rows(), coefficients))


def unembed(c: CkksLowering) -> None:
    """From residues of small integers to slots."""
    rows = c.rows(c.next_read())
    if not c.record.writes:
        corrupt(c.record, "it writes nothing")
    integers = c.work(Kind.MUL, rows, c.load())
    c.store(c.step(Kind.EMBED, _slots(c, c.record.writes[0]), c.batch, integers))


def tensor(c: CkksLowering) -> None:
    """(a0 b0, a0 b1 + a1 b0, a1 b1)."""
    loads = [step for _ in range(4) for step in c.load()]
    done = c.work(Kind.MAC, 4 * c.out_rows(), loads)
    for _ in range(3):
        c.store(done)


def combine(c: CkksLowering) -> None:
    """A sum of products and multiples."""
    done = c.combination(c.out_rows())
    for _ in range(3 if c.record["products"] else 2):
        c.store(done)


def weighted_sums(c: CkksLowering) -> None:
    """Sums of ciphertexts that are weighed by plaintexts."""
    written = {(x.object, x.offset) for x in c.record.writes}
    added = 0
    while (
        added < c.reads_left
        and (
            (x := c.record.reads[-1 - added]).object,
            x.offset,
        )
        in written
    ):
        added += 1
    parts = c.reads_left - added - len(c.record["operands"])
    if parts < 0 or parts % 2:
        corrupt(c.record, "its operands are no ciphertexts of two parts, and weights")
    loads = [c.load() for _ in range(parts)]
    half = parts // 2
    c.weigh([(*loads[k], *loads[half + k]) for k in range(half)])


def mod_up(c: CkksLowering) -> None:
    """Lifts of every digit."""
    lifted = c.mod_up(c.load(), c.record["primes_in"], c.record["primes_out"])
    c.store([step for digit in lifted for step in digit])


def scale_down(c: CkksLowering) -> None:
    """One division by dropped primes."""
    x = c.load()
    addend = c.load() if c.reads_left else ()
    (done,) = c.scale_down([(x, addend)], c.record["primes_in"], c.record["primes_out"])
    c.store(done)


def scale_down_pair(c: CkksLowering) -> None:
    """Both halves of a ciphertext. An addend alone is taken as that of the first half: which it is
    makes no difference."""
    halves = (c.load(), c.load())
    parts = [(x, c.load() if c.reads_left else ()) for x in halves]
    for done in c.scale_down(parts, c.record["primes_in"], c.record["primes_out"]):
        c.store(done)


def key_product(c: CkksLowering) -> None:
    """The lifted digits, under an automorphism, times a key."""
    digits, acc_rows = c.digits(), c.out_rows()
    ext = c.load()
    if c.entry("galois", 0) != 1:
        ext = c.work(Kind.AUTOMORPHISM, len(digits) * acc_rows, ext)
    keys = [c.load(Entity.KEY) for _ in digits]
    done = tuple(step for _ in range(2 if c.record["accumulate"] else 0) for step in c.load())
    for key in keys:
        done = c.work(Kind.MAC, 2 * acc_rows, (*ext, *key), done)
    c.store(done)
    c.store(done)


def key_switch(c: CkksLowering) -> None:
    """ModUp and the product with a key."""
    done = c.key_switch(c.load(), c.record["primes_in"], c.record["primes_out"])
    c.store(done)
    c.store(done)


def key_switch_add(c: CkksLowering) -> None:
    """A key switch, and a ciphertext times constants that is added."""
    x, c0, c1 = c.load(), c.load(), c.load()
    done = c.key_switch(x, c.record["primes_in"], c.record["primes_out"])
    rows = len(c.record["primes_in"]) * c.batch
    done = c.work(Kind.MAC, 2 * rows, (*c0, *c1), done)
    c.store(done)
    c.store(done)


def combine_key_switch(c: CkksLowering) -> None:
    """A sum of products, its third part switched, and its other parts times constants added."""
    acc = c.record["primes_out"]
    own = c.own(acc)
    sums = c.combination(len(own) * c.batch)
    done = c.key_switch(sums, own, acc)
    done = c.work(Kind.MAC, 2 * len(own) * c.batch, sums, done)
    c.store(done)
    c.store(done)


def rotate(c: CkksLowering) -> None:
    """A ciphertext under an automorphism, back under its own key. The accumulators have the primes
    of the ciphertext and P."""
    level = c.record["primes_out"]
    if len(c.record.writes) != 4:
        corrupt(c.record, "it writes two parts and two accumulators")
    extra = c.limbs(c.record.writes[2]) - len(level)
    special = [p for p in range(len(c.header["prime_bits"])) if p not in set(level)]
    if not 0 <= extra <= len(special):
        corrupt(c.record, "its accumulators have the primes of the ciphertext and of P")
    acc = (*level, *special[len(special) - extra :])
    c0, c1 = c.load(), c.load()
    turned = c.work(Kind.AUTOMORPHISM, len(level) * c.batch, c1)
    sums = c.key_switch(turned, level, acc)
    first = c.work(Kind.AUTOMORPHISM, len(level) * c.batch, c0)
    for done in c.scale_down([(sums, first), (sums, ())], acc, level):
        c.store(done)
    c.store(sums)
    c.store(sums)


def rotated_sums(c: CkksLowering) -> None:
    """Weighted sums of ciphertexts that are rotated as they are used."""
    galois, digits = c.record["galois"], c.record["digits"]
    rows = c.out_rows() if c.record.writes else 0
    operands: list[Steps] = []
    source, own_rows = -1, 0
    c0: Steps = ()
    ext: Steps = ()
    for k, g in enumerate(galois):
        if c.entry("sources", k) != source:
            source = c.entry("sources", k)
            own_rows = c.rows(c.next_read())
            c0, ext = c.load(), ()
        if g == 1:
            operands.append(c.work(Kind.MUL, 2 * own_rows, (*c0, *c.load())))
            continue
        ext = ext or c.load()
        turned = c.work(Kind.AUTOMORPHISM, len(digits) * rows, ext)
        sums = c.key_products([turned] * len(digits), rows)
        first = c.work(Kind.AUTOMORPHISM, own_rows, c0)
        operands.append(c.work(Kind.MAC, own_rows, first, sums))
    c.weigh(operands, Entity.SCRATCH)


def outer_sum(c: CkksLowering) -> None:
    """Sums of terms that are divided by P, rotated and switched."""
    acc = c.record["primes_out"]
    level, rows = c.own(acc), len(acc) * c.batch
    if len(c.record["galois"]) != c.record["terms"]:
        corrupt(c.record, "galois must have an entry for each term")
    done = tuple(step for _ in range(2 if c.record["accumulate"] else 0) for step in c.load())
    for _ in range(c.record["terms"]):
        x0, x1 = c.load(), c.load()
        (y,) = c.scale_down([(x1, ())], acc, level)
        turned = c.work(Kind.AUTOMORPHISM, len(level) * c.batch, y)
        sums = c.key_switch(turned, level, acc)
        first = c.work(Kind.AUTOMORPHISM, rows, x0)
        done = c.work(Kind.ADD, 3 * rows if done else rows, (*first, *sums), done)
    c.store(done)
    c.store(done)


OPERATIONS: dict[str, Lower] = {
    "ntt": _transform(Kind.NTT),
    "intt": _transform(Kind.INTT),
    "copy": CkksLowering.copy,
    "add": _elementwise(Kind.ADD, 2),
    "sub": _elementwise(Kind.ADD, 2),
    "neg": _elementwise(Kind.ADD, 1),
    "mul": _elementwise(Kind.MUL, 2),
    "mul_scalar": _elementwise(Kind.MUL, 1),
    "mul_scalar_add": _elementwise(Kind.MAC, 2),
    "add_scalar": _elementwise(Kind.ADD, 1),
    "automorphism_ntt": _elementwise(Kind.AUTOMORPHISM, 1),
    "from_int64": _elementwise(Kind.MUL, 1),
    "from_double": _elementwise(Kind.MUL, 1),
    **dict.fromkeys(("sample_uniform", "sample_small", "sample_sparse"), sample),
    **{
        by.__name__: by
        for by in (
            inner_product,
            crt,
            icrt,
            embed,
            unembed,
            tensor,
            combine,
            weighted_sums,
            mod_up,
            scale_down,
            scale_down_pair,
            key_product,
            key_switch,
            key_switch_add,
            combine_key_switch,
            rotate,
            rotated_sums,
            outer_sum,
        )
    },
}
