// What the client of a compiled program knows: the parameters, how inputs and outputs lie and are
// scaled, and which keys the program needs.
//
// It holds no weights. The ranges of the inputs, the scales of the outputs and the rotations are
// the model's, and the client sees them. A server may be wrong, or lie: a manifest that comes from
// elsewhere is checked before anything is computed from it, so that none makes a client fail
// otherwise than with an error of Jali's, work without bound, or give up a check of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "jali/base/hash.h"
#include "jali/client/layout.h"
#include "jali/params/ckks_params.h"
#include "jali/wire/ckks.h"
#include "jali/wire/frame.h"

namespace jali::client {

inline constexpr wire::Kind kManifest{wire::kCkks, wire::Object::manifest};

/// Approximations before the last matrix may carry a result a little beyond its range.
inline constexpr double kTolerance = 1.01;
/// Noise beyond so many standard deviations does not occur.
inline constexpr double kSigmas = 16;

/// One number for each number of an array; one alone if all are equal.
class Numbers {
 public:
  Numbers() = default;
  /// Keeps one number if all have the same bits.
  explicit Numbers(std::span<const double> values);
  static Numbers all(double value) { return Numbers({&value, 1}); }

  double operator[](std::size_t k) const { return values_.size() == 1 ? values_[0] : values_[k]; }
  /// 1 or the size of the array.
  std::span<const double> kept() const { return values_; }
  bool operator==(const Numbers&) const = default;

 private:
  std::vector<double> values_;
};

/// An input or output: its numbers are sent as (number - centre) / radius, at this level.
struct Port {
  std::string name;
  std::vector<std::uint64_t> shape;  // of one example
  Layout layout;
  Numbers centre, radius;
  /// For each number, what an input may hold; for an output, what the examples of the calibration
  /// gave, with the margin.
  Numbers low, high;
  double rms = 1, peak = 1;  // the root mean square and the largest modulus of what is sent
  int level = 0;
  /// The names of the numbers along the last axis of an input, one a line; empty if they have none.
  /// A client that is given a table compares them with the names of its columns.
  std::string columns;

  std::size_t size() const { return static_cast<std::size_t>(layout.size()); }
  /// Whether ciphertexts of one fit the other: everything but names, ranges and magnitudes is
  /// equal, numbers up to rounding.
  bool is_like(const Port& other) const;
};

/// Which keys of bootstrapping a client makes.
enum class BootstrapKeys : std::uint8_t {
  none = 0,
  all = 1,  // those for the fewest key switchings
  fewest = 2,  // the fewest keys
  /// The fastest of so many bytes in a server's memory, without the rotations of the program.
  within = 3,
};

/// The keys that a program uses.
struct Demand {
  std::map<int, int> rotations;  // each with the highest level at which it is used
  int product = 0;  // the highest level of a product of ciphertexts; 0: there is none
  int conjugation = -1;  // likewise; -1: there is none
  /// For each output, -log2 of the standard deviation of its noise, in its scale: of the number
  /// that has most of it or, of a program that bootstraps, the average over numbers.
  std::vector<double> noise_bits;
  BootstrapKeys bootstrap = BootstrapKeys::none;
  std::uint64_t bootstrap_bytes = 0;  // of BootstrapKeys::within
  /// The precision that a bootstrapping of these parameters has; 0 if bounds say how large noise
  /// may be.
  double restored_bits = 0;
  std::vector<std::uint32_t> packings{0};  // with how many slots it bootstraps, 0 for all

  bool operator==(const Demand&) const = default;
};

struct Manifest {
  ckks::ParamsPtr params;
  std::uint32_t lanes = 1;  // how many examples one ciphertext holds, a power of two
  std::vector<Port> inputs, outputs;
  Demand demand;

  /// Slots of one lane.
  std::uint64_t slots() const { return params->slots() / lanes; }
  /// Whether ciphertexts of one fit the other.
  bool is_like(const Manifest& other) const;
};

/// The most inputs of a manifest, and the most outputs.
inline constexpr std::size_t kMostPorts = 1024;

/// What must hold of every manifest. Throws CorruptData, whose text names the place.
void check(const Manifest& manifest);

/// The bytes of a manifest; docs/format.md defines them. They are not authenticated. Throws what
/// check() throws.
wire::Bytes to_bytes(const Manifest& manifest);
/// What to_bytes wrote. Throws CorruptData, VersionError, LimitExceeded, ParamsMismatch, and for
/// its parameters InsecureParams. limits: also of its parameters.
Manifest manifest_from_bytes(std::span<const std::uint8_t> bytes, const wire::Limits& limits = {});

/// SHA-256 of the bytes, which every message of a program's client and server carries.
Digest fingerprint(const Manifest& manifest);

}  // namespace jali::client
