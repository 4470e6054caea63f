// One input on its way through the operations of exact integers, and what an operation is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../runner.h"
#include "jali/api/jali.h"

namespace jali::fuzz {

__extension__ using Wide = __int128;
using Numbers = std::vector<std::int64_t>;

/// Small parameters with honest keys. They have no security, but noise for which results are right.
struct DiscreteWorld {
  discrete::ParamsPtr params;
  std::shared_ptr<const ring::Ring> ring;
  std::shared_ptr<const rlwe::SecretKey> secret;
  std::shared_ptr<const rlwe::PublicKey> public_key;
  std::shared_ptr<const discrete::Evaluator> evaluator;
  discrete::Decryptor decryptor;

  explicit DiscreteWorld(const discrete::Literal& literal);
};

/// The k-th of kDiscreteWorlds, made at its first use.
inline constexpr std::size_t kDiscreteWorlds = 6;
const DiscreteWorld& discrete_world(std::size_t k);

/// A ciphertext, and the numbers that it holds, if every operand of it was honest: N for each
/// vector.
struct DiscreteKnown {
  discrete::Ciphertext x;
  std::optional<Numbers> numbers{};
};

class DiscreteRun {
 public:
  DiscreteRun(const DiscreteWorld& world, Stream& stream);

  const DiscreteWorld& world;
  Stream& in;
  Pool<DiscreteKnown> pool;

  const discrete::Evaluator& ev() const { return *world.evaluator; }
  const discrete::Params& params() const { return *world.params; }
  const discrete::PlainModulus& modulus() const { return params().modulus(); }
  std::size_t n() const { return params().n(); }
  const DiscreteKnown& any() { return pool.any(in); }
  /// One that is like x more often than any is: in its batch.
  const DiscreteKnown& beside(const DiscreteKnown& x);

  discrete::Overflow overflow() {
    return in.once_in(3) ? discrete::Overflow::wrap : discrete::Overflow::refuse;
  }
  int level() { return in.once_in(8) ? in.integer() : static_cast<int>(in.below(4)); }
  int steps() { return in.once_in(8) ? in.integer() : static_cast<int>(in.below(4)) - 1; }
  /// Most often a small one, and else one at which something changes.
  std::int64_t integer();
  /// Numbers from low to high, of which some are the ends.
  Numbers numbers(std::int64_t low, std::int64_t high, std::size_t count);
  /// Clear numbers as an operand of x, and their encoding.
  std::pair<Numbers, discrete::Plaintext> clear(const discrete::Ciphertext& x,
                                                discrete::Overflow overflow);

  DiscreteKnown honest();
  /// Bytes with a valid checksum and hostile content; empty if the loader refuses them.
  std::optional<DiscreteKnown> hostile();

  /// Looks at a result: its figures, its bytes, and its numbers. exact(i): number i, of any size,
  /// if all operands were known.
  template <class Exact>
  void keep(discrete::Ciphertext x, bool known, const Exact& exact) {
    examine(x);
    std::optional<Numbers> numbers;
    if (known) {
      Numbers& out = numbers.emplace(x.batch() * n());
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = represented(exact(i), x);
      compare(x, out);
    }
    if (x.batch() <= kMostVectors) pool.add({std::move(x), std::move(numbers)});
  }
  /// The same numbers as those of another one.
  void keep(discrete::Ciphertext x, const DiscreteKnown& of) {
    keep(std::move(x), of.numbers.has_value(),
         [&](std::size_t i) { return Wide{(*of.numbers)[i]}; });
  }

  /// Its figures are in range, and its bytes are read again to the same bytes.
  void examine(const discrete::Ciphertext& x) const;

 private:
  static constexpr std::size_t kMostVectors = 4;  // bounds the work on one input

  /// The number as decryption shows it: a residue if the numbers wrap. Else it must lie in the
  /// range.
  std::int64_t represented(Wide number, const discrete::Ciphertext& x) const;
  void compare(const discrete::Ciphertext& x, const Numbers& expected) const;
};

/// Its name is that of a report.
using DiscreteOperation = std::pair<const char*, void (*)(DiscreteRun&)>;

// Each in the file of its name; in the order of the headers.
std::span<const DiscreteOperation> discrete_evaluator_operations();
std::span<const DiscreteOperation> discrete_client_operations();
std::span<const DiscreteOperation> discrete_circuit_operations();

}  // namespace jali::fuzz
