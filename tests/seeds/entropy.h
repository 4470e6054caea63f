// The system's entropy, replaced in tests by numbers that follow from a seed, so that keys, noise
// and inputs are the same in every run.
//
// entropy.cpp defines getentropy and getrandom, which come before those of libc in a test program
// that links it and in a process that preloads it as a shared library (LD_PRELOAD). The library
// under test has no switch for this. A process draws from the system as ever until it gives a seed.
#pragma once

#include <cstdint>

extern "C" {

/// From now on entropy follows from this seed. A process that is forked afterwards draws other
/// numbers than its parent.
void jali_test_seed_entropy(std::uint64_t seed);
/// The seed from which the next numbers follow; 0 if they come from the system.
std::uint64_t jali_test_entropy_state();
}
