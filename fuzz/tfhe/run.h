// One input on its way through the operations of TFHE, and what an operation is.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../runner.h"
#include "jali/api/jali.h"
#include "jali/integers/arithmetic.h"
#include "jali/integers/tfhe_machine.h"

namespace jali::fuzz {

using Values = std::vector<std::uint64_t>;

/// Small parameters with honest keys. They have no security, but noise for which results are right.
struct TfheWorld {
  tfhe::ParamsPtr params;
  mutable tfhe::Client client;
  std::shared_ptr<const tfhe::Evaluator> evaluator;
  std::unique_ptr<const tfhe::Gates> gates;  // if a ciphertext holds one bit
  std::unique_ptr<const integers::Arithmetic> arithmetic;  // if it holds two or more, and carries

  explicit TfheWorld(const tfhe::Literal& literal);
};

/// The k-th of kWorlds, made at its first use.
inline constexpr std::size_t kWorlds = 4;
const TfheWorld& tfhe_world(std::size_t k);

/// A vector, and what it holds, if every operand of it was honest.
struct Known {
  tfhe::Ciphertext x;
  std::optional<Values> values;
};

class TfheRun {
 public:
  TfheRun(const TfheWorld& world, Stream& stream);

  const TfheWorld& world;
  Stream& in;
  Pool<Known> pool;

  const tfhe::Evaluator& ev() const { return *world.evaluator; }
  const tfhe::Params& params() const { return *world.params; }
  const Known& any() { return pool.any(in); }
  /// A number that is small, or one at which something changes.
  std::uint64_t number();
  std::size_t index(std::size_t size);
  /// Of values that mostly fit.
  tfhe::LookUpTable table();

  Known honest();
  /// Bytes with a valid checksum and hostile content; empty if the loader refuses them.
  std::optional<Known> hostile();

  /// Looks at a result: its figures, its bytes, and its values. expected: modulo `modulus`, if all
  /// operands were known.
  void keep(tfhe::Ciphertext x, std::optional<Values> expected, std::uint64_t modulus = 0);
  /// Of what honest operands gave: its check passes.
  Values decrypted(const tfhe::Ciphertext& x) const;
};

/// Its name is that of a report.
using TfheOperation = std::pair<const char*, void (*)(TfheRun&)>;

// Each in the file of its name; in the order of the headers.
std::span<const TfheOperation> tfhe_evaluator_operations();
std::span<const TfheOperation> tfhe_client_operations();
std::span<const TfheOperation> tfhe_integer_operations();

/// f of every element, and of the elements of two vectors, of which one may have a single one;
/// empty if one is unknown, or if their sizes differ.
template <class F>
std::optional<Values> each(const Known& a, const F& f) {
  if (!a.values) return std::nullopt;
  Values out;
  for (const std::uint64_t v : *a.values) out.push_back(f(v));
  return out;
}
template <class F>
std::optional<Values> each(const Known& a, const Known& b, const F& f) {
  if (!a.values || !b.values) return std::nullopt;
  const Values &x = *a.values, &y = *b.values;
  if (x.size() != y.size() && x.size() != 1 && y.size() != 1) return std::nullopt;  // refused
  Values out;
  for (std::size_t i = 0; i < (x.size() == 1 ? y : x).size(); ++i) {
    out.push_back(f(x[x.size() == 1 ? 0 : i], y[y.size() == 1 ? 0 : i]));
  }
  return out;
}

}  // namespace jali::fuzz
