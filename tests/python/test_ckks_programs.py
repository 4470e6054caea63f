"""Whole programs, drawn at random: each result is right within what it claims, or the program is
refused."""

from __future__ import annotations

import collections
import os

import numpy as np
import seeds
from array_programs import ArrayProgram
from programs import Program, World
from slot_programs import KeyedProgram, SlotProgram

#: 400, or as many as the environment says; `make check` runs 10,000.
COUNT = int(os.environ.get("JALI_WHOLE_PROGRAMS", "400"))
PROGRAMS_OF_A_WORLD = 40
KINDS: list[type[Program]] = [
    ArrayProgram,
    SlotProgram,
    SlotProgram,
    ArrayProgram,
    KeyedProgram,
    SlotProgram,
]


def test_nothing_is_wrong_without_a_word(rng: np.random.Generator) -> None:
    seed = int(os.environ.get("JALI_SEED", rng.integers(2**62)))
    done = compared = 0
    excess: list[float] = []
    refused = collections.Counter[str]()
    while done < COUNT:
        first = seed + done
        seeds.start(first)
        world = World(np.random.default_rng(first))
        for number in range(min(PROGRAMS_OF_A_WORLD, COUNT - done)):
            program = KINDS[number % len(KINDS)](world)
            try:
                outcome = program.run()
                assert not outcome.wrong, outcome.wrong
            except Exception as error:
                steps = "; ".join(program.steps)
                error.add_note(f"JALI_SEED={first}, program {number} of {world.params}: {steps}")
                raise
            refused.update(text.partition(":")[0] for text in outcome.refusals)
            compared += outcome.compared
            excess.append(outcome.excess)
            done += 1
    print(
        f"seed {seed}: {compared} of {done} compared, largest excess over the claim {max(excess):.1f} bits; refused: {dict(refused)}"
    )
    assert compared > COUNT / 2, "too few programs have a result"
    # 8 to 10 in 100 do, in runs of 20,000. 400 programs have ten sets of parameters, which decide
    # it: of 35 that leave their range on average, 15 were seen.
    least = COUNT / 20 if COUNT >= 4000 else COUNT / 80
    assert refused["RangeExceeded"] > least, "programs must leave their range, too"
