// Sets of bootstrapping keys between the fewest and all: the bytes that each takes, and the time of
// a bootstrapping with it. Nothing here makes a matrix or a key.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "jali/bootstrap/bootstrapper.h"

namespace jali::bootstrap {

struct KeySet {
  /// For each packing, how it is bootstrapped; empty with all keys.
  std::vector<std::optional<FewKeys>> few;
  std::size_t bytes = 0;  // expanded_key_bytes of the plans with these keys
  /// The predicted time of a bootstrapping of each packing, over that with all keys: the key
  /// switchings at their levels, and products with diagonals, in the unit of circuits::LevelCost.
  /// It is at least 1.
  double time = 1;
};

/// The sets from the fewest keys to all, by bytes. Each is faster than the one before, by at least
/// 1 part in 512. Values of few slots are also values of all slots that repeat. If the keys for all
/// slots take fewer bytes, the sets have those in the place of the keys for each packing. So no
/// packing needs more bytes than all slots do. log_slots: the packings that share the keys, at
/// least one. rotations, conjugate: further keys, as in key_levels. Throws what BootstrapPlan
/// throws.
std::vector<KeySet> key_sets(const ckks::ParamsPtr& params, std::span<const int> log_slots,
                             std::span<const int> rotations = {}, bool conjugate = false);

/// The fastest set of at most `memory` bytes. Throws InvalidArgument, which names the fewest bytes,
/// if there is none.
KeySet keys_within(const std::vector<KeySet>& sets, std::size_t memory);

/// Which of the sets is made: the one of all keys, or another.
struct KeyChoice {
  /// The set of the fewest keys; further rotations are then composed of rotations by powers of two.
  bool fewest = false;
  /// The fastest set for bootstrapping of at most so many bytes. Keys for further rotations are not
  /// counted.
  std::optional<std::size_t> memory{};
};

/// The keys for bootstrapping these packings and for further rotations, each with the highest level
/// at which it is used: what key_levels() of the BootstrapPlans with the chosen keys says, without
/// a matrix. rotations: each with the highest level at which the caller uses it, at most depth().
/// Throws what key_sets and keys_within throw.
KeyLevels key_levels(const ckks::ParamsPtr& params, std::span<const int> log_slots,
                     const std::map<int, int>& rotations, const KeyChoice& choice);

/// The predicted time of one bootstrapping with all keys, counted as in KeySet and in the unit of
/// circuits::LevelCost. It is for comparisons of packings. real: imaginary parts are dropped.
/// Throws what key_sets throws.
double predicted_time(const ckks::ParamsPtr& params, int log_slots, bool real);

struct Served {
  FewKeys few;
  double time = 1;  // predicted, over that of the packing with all of its own keys; at least 1
};

/// The fastest way to bootstrap a packing with the rotation keys of an evaluator, with its own
/// number of slots or with more. Empty if they serve none. Throws InvalidArgument for a packing
/// that there is not.
std::optional<Served> served(const ckks::Evaluator& evaluator, int log_slots);

}  // namespace jali::bootstrap
