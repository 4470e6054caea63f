// The keys that a program uses: which they are, and what they cost, before any is made.
#pragma once

#include <cstdint>
#include <string>

#include "jali/client/manifest.h"
#include "jali/rlwe/keys.h"

namespace jali::client {

/// The bytes of keys that a client makes unless its user allows more.
inline constexpr std::uint64_t kMostKeyBytes = std::uint64_t{1} << 36;

/// What the keys of a program cost its client.
struct KeyCost {
  std::uint64_t count = 0;
  std::uint64_t made = 0;  // their bytes in memory if all of them lie there
  std::uint64_t sent = 0;  // their bytes in a message
  double seconds = 0;      // about the time that one thread takes to make them

  std::string text() const;
};

/// The keys of a manifest that was checked, each for the levels at which it is used.
rlwe::KeyDemand key_demand(const ckks::ParamsPtr& params, const Demand& demand);

KeyCost key_cost(const ckks::Params& params, const rlwe::KeyDemand& demand);

/// key_demand, unless its keys take more than `most` bytes in memory: throws LimitExceeded, which
/// says what they cost. A server says which keys it wants, and may want too many.
rlwe::KeyDemand checked_demand(const ckks::ParamsPtr& params, const Demand& demand,
                               std::uint64_t most = kMostKeyBytes);

}  // namespace jali::client
