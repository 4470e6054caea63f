// The parts of a bootstrapping and the ways to do each, with the rotations and the predicted time
// that each way takes. Nothing here makes a matrix, a key or a ciphertext.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "jali/bootstrap/bootstrapper.h"

namespace jali::bootstrap {

/// One way to do a part of the circuit.
struct Way {
  std::vector<int> rotations;
  double cost = 0;
  circuits::Sequence sequence{};  // of a matrix
  int trace = 1;  // of the trace
};

/// A matrix or the trace of one packing. `all` is the way with all keys.
struct Part {
  int level = 0;
  Way all;
  std::vector<Way> few;
};

/// The matrices in the order in which FewKeys lists them, then the trace.
std::vector<Part> parts_of(const ckks::Params& params, int log_slots);

/// The keys of these ways, one for each part.
FewKeys few_of(const ckks::Params& params, int log_slots, std::span<const Way* const> ways);

/// The rotation that turns the result back, which every set but all keys needs: the sum of the
/// shifts of all matrices.
int turn_of(const ckks::Params& params, int log_slots);

/// What every set has in common: the conjugation and the modular reduction. real: of one number for
/// each slot.
double other_cost(const ckks::Params& params, int log_slots, bool real = false);

/// Throws InvalidArgument for a packing that there is not.
void check_slots(const ckks::Params& params, int log_slots);

/// What BootstrapPlan::rotation_levels() and conjugation_level() say of a plan with these keys.
/// few: empty with all keys.
std::map<int, int> rotation_levels(const ckks::Params& params, int log_slots,
                                   const std::optional<FewKeys>& few);
int conjugation_level(const ckks::Params& params, int log_slots);

}  // namespace jali::bootstrap
