#include "jali/backend/ref/contract.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <set>
#include <string>

#include "jali/backend/ref/modular.h"
#include "jali/base/error.h"

namespace jali::backend::ref {

void check_config(const Config& config) {
  const std::size_t n = config.n;
  require<InvalidArgument>(std::has_single_bit(n) && n >= 4 && n <= (std::size_t{1} << 17), [&] {
    return "n must be a power of two in [2^2, 2^17], not " + std::to_string(n);
  });
  require<InvalidArgument>(config.threads >= 1, "threads must be at least 1");
  require<InvalidArgument>(!config.primes.empty() && config.primes.size() <= 65536,
                           "a ring needs between 1 and 65536 primes");
  std::set<std::uint64_t> seen;
  for (const std::uint64_t q : config.primes) {
    const auto name = [&](const char* what) { return std::to_string(q) + what; };
    require<InvalidArgument>(q >> word_prime_bits(config.word) == 0,
                             [&] { return name(" is too large a prime for the word"); });
    require<InvalidArgument>(q % (2 * n) == 1, [&] { return name(" is not 1 modulo 2n"); });
    require<InvalidArgument>(is_prime(q), [&] { return name(" is not a prime"); });
    require<InvalidArgument>(seen.insert(q).second, [&] { return name(" is given twice"); });
  }
}

void Contract::fail(const char* message) const {
  throw InvalidArgument(std::string(op_) + ": " + message);
}

void Contract::check(bool condition, const char* message) const {
  if (!condition) fail(message);
}

void Contract::view(const char* name, ConstView x, std::size_t blocks) const {
  const auto that = [&](bool condition, const char* message) {
    if (!condition) fail((std::string(name) + " " + message).c_str());
  };
  that(x.data != nullptr, "has no data");
  that(!x.primes.empty(), "has no limbs");
  that(x.batch >= 1, "has an empty batch");
  that(blocks >= 1, "has no blocks");
  for (std::size_t i = 0; i < x.primes.size(); ++i) {
    that(x.primes[i] < config_.primes.size(), "names a prime that the ring lacks");
    that(i == 0 || x.primes[i - 1] < x.primes[i], "has primes that do not ascend");
  }
  that(reinterpret_cast<std::uintptr_t>(x.data) % word_bytes(config_.word) == 0, "is not aligned");
}

void Contract::same_primes(ConstView a, ConstView b) const {
  check(std::ranges::equal(a.primes, b.primes), "operands have different primes");
}

void Contract::same_batch(ConstView a, ConstView b) const {
  check(a.batch == b.batch, "operands have different batches");
}

void Contract::same_shape(ConstView a, ConstView b) const {
  same_primes(a, b);
  same_batch(a, b);
}

void Contract::batch_or_broadcast(ConstView a, ConstView b) const {
  check(b.batch == a.batch || b.batch == 1, "the second operand's batch is neither equal nor 1");
}

void Contract::scalars(ConstView x, std::span<const std::uint64_t> s) const {
  length("scalars", s.size(), x.primes.size());
  for (std::size_t i = 0; i < s.size(); ++i) {
    check(s[i] < config_.primes[x.primes[i]], "a scalar is not below its prime");
  }
}

void Contract::digits(std::span<const std::uint32_t> digit_limbs, std::size_t limbs) const {
  check(!digit_limbs.empty(), "there is no digit");
  std::size_t sum = 0;
  for (const std::uint32_t l : digit_limbs) {
    check(l >= 1, "a digit has no limb");
    sum += l;
  }
  check(sum == limbs, "the digits do not add up to the limbs");
}

void Contract::key(KeyView key, std::span<const std::uint32_t> digit_ids,
                   std::span<const PrimeIndex> primes) const {
  view("the key", {key.data, key.primes, 1}, key.digits);
  check(is_subset(primes, key.primes), "a prime that the key lacks is asked for");
  check(!digit_ids.empty(), "there is no digit");
  for (const std::uint32_t id : digit_ids) {
    check(id < key.digits, "a digit that the key lacks is asked for");
  }
}

void Contract::galois(std::uint64_t g) const { check(g % 2 == 1, "a Galois element must be odd"); }

void Contract::length(const char* name, std::size_t have, std::size_t want) const {
  if (have != want) fail((std::string(name) + ": the length does not fit the shape").c_str());
}

Block Contract::block(const char* name, ConstView x, std::size_t blocks) const {
  return {name, x.data, blocks * x.primes.size() * x.batch * config_.n * word_bytes(config_.word)};
}

namespace {
bool overlap(const Block& a, const Block& b) {
  const auto from_a = reinterpret_cast<std::uintptr_t>(a.data);
  const auto from_b = reinterpret_cast<std::uintptr_t>(b.data);
  return from_a < from_b + b.bytes && from_b < from_a + a.bytes;
}
}  // namespace

void Contract::same_or_apart(Block out, std::initializer_list<Block> others) const {
  for (const Block& b : others) {
    const bool same = out.data == b.data && out.bytes == b.bytes;
    if (!same && overlap(out, b)) {
      fail((std::string(out.name) + " overlaps a part of " + b.name).c_str());
    }
  }
}

void Contract::apart(Block out, std::initializer_list<Block> others) const {
  for (const Block& b : others) {
    if (overlap(out, b)) fail((std::string(out.name) + " overlaps " + b.name).c_str());
  }
}

bool contains(std::span<const PrimeIndex> primes, PrimeIndex p) {
  return std::ranges::find(primes, p) != primes.end();
}

bool is_subset(std::span<const PrimeIndex> inner, std::span<const PrimeIndex> outer) {
  return std::ranges::all_of(inner, [&](PrimeIndex p) { return contains(outer, p); });
}

}  // namespace jali::backend::ref
