// What the tables demand of their callers, checked in full. Shapes, orders and overlaps that are
// wrong throw InvalidArgument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "jali/backend/config.h"
#include "jali/backend/rlwe_ops.h"
#include "jali/backend/view.h"

namespace jali::backend::ref {

/// N, primes and threads as Config says. Primes are proved.
void check_config(const Config& config);

/// A block of memory and what it is called in messages.
struct Block {
  const char* name;
  const void* data;
  std::size_t bytes;
};

class Contract {
 public:
  /// The config must outlive it.
  Contract(const Config& config, const char* operation) : config_(config), op_(operation) {}

  /// There is data, at least one limb and one batch entry; primes ascend and belong to the ring.
  void view(const char* name, ConstView x, std::size_t blocks = 1) const;
  void same_primes(ConstView a, ConstView b) const;
  void same_batch(ConstView a, ConstView b) const;
  void same_shape(ConstView a, ConstView b) const;
  /// b has the batch of a, or 1.
  void batch_or_broadcast(ConstView a, ConstView b) const;
  /// One scalar a limb, each below its prime.
  void scalars(ConstView x, std::span<const std::uint64_t> s) const;
  void digits(std::span<const std::uint32_t> digit_limbs, std::size_t limbs) const;
  /// It has the digits and the primes that are asked for.
  void key(KeyView key, std::span<const std::uint32_t> digit_ids,
           std::span<const PrimeIndex> primes) const;
  void galois(std::uint64_t g) const;
  void length(const char* name, std::size_t have, std::size_t want) const;
  /// The output is each input's very block, or does not touch it.
  void same_or_apart(Block out, std::initializer_list<Block> others) const;
  void apart(Block out, std::initializer_list<Block> others) const;

  Block block(const char* name, ConstView x, std::size_t blocks = 1) const;
  [[noreturn]] void fail(const char* message) const;

 private:
  void check(bool condition, const char* message) const;
  const Config& config_;
  const char* op_;
};

/// Every prime of `inner` is one of `outer`; both ascend.
bool is_subset(std::span<const PrimeIndex> inner, std::span<const PrimeIndex> outer);
bool contains(std::span<const PrimeIndex> primes, PrimeIndex p);

}  // namespace jali::backend::ref
