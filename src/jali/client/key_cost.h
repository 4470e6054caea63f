// The keys that a program uses: which they are, and what they cost, before any is made.
#pragma once

#include <cstdint>
#include <functional>
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

/// How a caller of this program allows so many bytes, as the end of an error's sentence: each
/// language has a name of its own for the limit.
using Allow = std::function<std::string(std::uint64_t bytes)>;

/// key_demand, unless its keys take more than `most` bytes in memory: throws LimitExceeded, which
/// says what they cost and, if `allow` is given, how to allow it. A server says which keys it
/// wants, and may want too many.
rlwe::KeyDemand checked_demand(const ckks::ParamsPtr& params, const Demand& demand,
                               std::uint64_t most = kMostKeyBytes, const Allow& allow = {});

/// The bytes of memory that a client takes for itself, and for a request or a reply with the fewest
/// examples, unless its user allows more. The largest requests that were run have 0.9 GB.
inline constexpr std::uint64_t kMostClientBytes = std::uint64_t{1} << 31;

/// What a manifest costs its client besides keys, in bytes of memory.
struct ClientCost {
  std::uint64_t own = 0;  // at most: its tables and the secret key
  /// Ciphertexts and the numbers in their slots, for as many examples as fill the lanes.
  std::uint64_t request = 0, reply = 0;
};
ClientCost client_cost(const Manifest& manifest);
/// Throws LimitExceeded, which says what it costs, if one of them is above `most`. A server chose
/// the parameters and how numbers lie: few of them may take many ciphertexts.
void check_cost(const Manifest& manifest, std::uint64_t most = kMostClientBytes,
                const Allow& allow = {});

}  // namespace jali::client
