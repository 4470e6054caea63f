// The keys of a client in the form that an engine reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "jali/rlwe/key_recorder.h"
#include "jali/rlwe/keys.h"

namespace jali::rlwe {

/// EncapsulationKeys with their uniform halves expanded from the seeds.
struct Encapsulation {
  ring::Poly sparse_b, sparse_a;  // over sparse_key_primes
  ring::Poly dense_b, dense_a;    // over all primes
};

/// Evaluators for parts of some parameters share the keys of the whole.
struct ExpandedKeys {
  KeyId key_id;
  std::optional<ExpandedKey> relinearisation;
  std::map<std::uint64_t, ExpandedKey> galois;
  std::vector<std::pair<int, const ExpandedKey*>> rotations;  // those of `galois`, by their steps
  std::optional<Encapsulation> encapsulation;
  std::shared_ptr<KeyRecorder> recorder;  // if there is one, `zeros` stands for every key
  ExpandedKey zeros;

  std::size_t bytes() const;  // in the memory of the ring's device
};

/// Expands all keys in the ring's memory. keys may be null: there are none then. Throws
/// ParamsMismatch for keys of other parameters.
std::shared_ptr<const ExpandedKeys> expand_all(const ring::Ring& ring, const Params& params,
                                               const EvaluationKeys* keys);

/// Zeros that stand for every key, and write into the recorder which of them are used. Throws
/// InvalidArgument without a recorder.
std::shared_ptr<const ExpandedKeys> zeros_for_all(const ring::Ring& ring, const Params& params,
                                                  const KeyId& key_id,
                                                  std::shared_ptr<KeyRecorder> recorder);

}  // namespace jali::rlwe
