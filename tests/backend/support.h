// Helpers of the backend tests: primes, blocks of residues and their fillings, and seeds.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "../seeded.h"
#include "jali/backend/embedding_ops.h"
#include "jali/backend/engine.h"
#include "jali/backend/engines.h"
#include "jali/backend/ref/modular.h"
#include "jali/backend/ref/natural.h"
#include "jali/backend/ring_ops.h"
#include "jali/backend/rlwe_ops.h"
#include "sanitized.h"

namespace jali::backend::test {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using jali::test::test_seed;
using ref::Natural;
using PrimeList = std::vector<PrimeIndex>;

inline u64 below(std::mt19937_64& rng, u64 bound) {
  return std::uniform_int_distribution<u64>(0, bound - 1)(rng);
}

/// The `count` largest primes below `limit` that are 1 modulo 2n.
inline std::vector<u64> primes_below(u64 limit, std::size_t n, std::size_t count) {
  std::vector<u64> primes;
  const u64 step = 2 * n;
  for (u64 q = (limit - 2) / step * step + 1; primes.size() < count && q > step; q -= step) {
    if (ref::is_prime(q)) primes.push_back(q);
  }
  return primes;
}

/// `count` primes of a word: the largest that it holds, alternating with smaller ones of every
/// size.
inline std::vector<u64> primes_for(Word word, std::size_t n, std::size_t count) {
  const int top = word_prime_bits(word);
  int bottom = 1;
  while ((u64{1} << bottom) < 16 * n) ++bottom;
  std::vector<u64> large = primes_below(u64{1} << top, n, count), primes;
  for (std::size_t i = 0; i < count; ++i) {
    u64 q = large[i];
    if (i % 3 == 2) {
      const int bits =
          bottom + static_cast<int>((i / 3 * 7) % static_cast<std::size_t>(top - bottom));
      for (const u64 small : primes_below(u64{1} << bits, n, count)) {
        if (std::ranges::find(primes, small) == primes.end()) {
          q = small;
          break;
        }
      }
    }
    primes.push_back(q);
  }
  return primes;
}

inline PrimeList range(std::size_t from, std::size_t to) {
  PrimeList list(to - from);
  std::iota(list.begin(), list.end(), static_cast<PrimeIndex>(from));
  return list;
}

enum class Fill { random, zero, max, alternating, half };
inline constexpr Fill kFills[] = {Fill::random, Fill::zero, Fill::max, Fill::alternating,
                                  Fill::half};

/// A block of residues with memory of its own, exactly as long as its shape, so that a sanitizer
/// sees every access beyond it. It is poisoned until it is filled.
class Block {
 public:
  Block(const Config& config, PrimeList primes, std::size_t batch, std::size_t blocks = 1)
      : config_(&config),
        primes_(std::move(primes)),
        batch_(batch),
        blocks_(blocks),
        data_(static_cast<std::byte*>(::operator new(bytes(), std::align_val_t{64}))) {
    poison();
  }
  Block(const Block& other) : Block(*other.config_, other.primes_, other.batch_, other.blocks_) {
    std::memcpy(data_.get(), other.data_.get(), bytes());
  }
  Block(Block&&) = default;
  Block& operator=(const Block&) = delete;

  View view(std::size_t block = 0) {
    return {data_.get() + block * bytes() / blocks_, primes_, batch_};
  }
  ConstView view(std::size_t block = 0) const {
    return {data_.get() + block * bytes() / blocks_, primes_, batch_};
  }
  operator View() { return view(); }             // NOLINT: a block is a view of itself
  operator ConstView() const { return view(); }  // NOLINT

  std::size_t n() const { return config_->n; }
  const PrimeList& primes() const { return primes_; }
  std::size_t batch() const { return batch_; }
  std::size_t size() const { return blocks_ * primes_.size() * batch_ * n(); }
  std::size_t bytes() const { return size() * word_bytes(config_->word); }
  const void* data() const { return data_.get(); }
  u64 prime(std::size_t limb) const { return config_->primes[primes_[limb]]; }

  /// The residue at a position, counted over (block, limb, batch, coefficient).
  u64 at(std::size_t index) const {
    if (config_->word == Word::w32) return reinterpret_cast<const u32*>(data_.get())[index];
    return reinterpret_cast<const u64*>(data_.get())[index];
  }
  u64 at(std::size_t limb, std::size_t b, std::size_t k) const {
    return at((limb * batch_ + b) * n() + k);
  }
  void set(std::size_t index, u64 value) {
    if (config_->word == Word::w32) {
      reinterpret_cast<u32*>(data_.get())[index] = static_cast<u32>(value);
    } else {
      reinterpret_cast<u64*>(data_.get())[index] = value;
    }
  }
  void set(std::size_t limb, std::size_t b, std::size_t k, u64 value) {
    set((limb * batch_ + b) * n() + k, value);
  }

  Block& poison() {
    std::memset(data_.get(), 0xAB, bytes());
    return *this;
  }

  Block& fill(Fill kind, std::mt19937_64& rng) {
    const std::size_t rows = size() / n();
    for (std::size_t r = 0; r < rows; ++r) {
      const u64 q = prime(r / batch_ % primes_.size());
      for (std::size_t k = 0; k < n(); ++k) {
        u64 v = 0;
        switch (kind) {
          case Fill::random: v = below(rng, q); break;
          case Fill::zero: v = 0; break;
          case Fill::max: v = q - 1; break;
          case Fill::alternating: v = k % 2 == 0 ? 0 : q - 1; break;
          case Fill::half: v = k % 2 == 0 ? (q - 1) / 2 : (q + 1) / 2; break;
        }
        set(r * n() + k, v);
      }
    }
    return *this;
  }
  Block& random(std::mt19937_64& rng) { return fill(Fill::random, rng); }

  friend bool operator==(const Block& a, const Block& b) {
    return a.bytes() == b.bytes() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t{64}); }
  };
  const Config* config_;
  PrimeList primes_;
  std::size_t batch_, blocks_;
  std::unique_ptr<std::byte, Free> data_;
};

/// Element k of the transform of a row, by the definition: the value of the row's polynomial at
/// psi^(2 k' + 1), where k' has the bits of k in reverse order.
inline u64 transformed(const Block& coefficients, std::size_t limb, std::size_t batch,
                       std::size_t k, u64 psi) {
  const std::size_t n = coefficients.n();
  std::size_t reversed = 0;
  for (std::size_t bit = 1; bit < n; bit *= 2) reversed = 2 * reversed + (k & bit ? 1 : 0);
  const u64 q = coefficients.prime(limb), at = ref::power(psi, 2 * reversed + 1, q);
  u64 value = 0;
  for (std::size_t j = n; j-- > 0;) {
    value = ref::add(ref::mul(value, at, q), coefficients.at(limb, batch, j), q);
  }
  return value;
}

/// Compares bit for bit; a failure names the first difference.
inline testing::AssertionResult same(const Block& have, const Block& want) {
  if (have == want) return testing::AssertionSuccess();
  if (have.size() != want.size()) return testing::AssertionFailure() << "sizes differ";
  std::size_t first = have.size(), count = 0;
  for (std::size_t i = have.size(); i-- > 0;) {
    if (have.at(i) != want.at(i)) {
      first = i;
      ++count;
    }
  }
  const std::size_t n = have.n(), row = first / n;
  return testing::AssertionFailure()
         << count << " of " << have.size() << " residues differ; first in row " << row << " (limb "
         << row / have.batch() % have.primes().size() << ", prime "
         << have.prime(row / have.batch() % have.primes().size()) << "), index " << first % n
         << ": have " << have.at(first) << ", want " << want.at(first);
}

/// A key of random residues over all primes of a ring, ordered by (digit, part, prime,
/// coefficient).
class Key {
 public:
  Key(const Config& config, std::size_t digits, std::mt19937_64& rng)
      : digits_(digits), block_(config, range(0, config.primes.size()), 1, 2 * digits) {
    block_.random(rng);
  }
  /// The same key over fewer primes.
  Key(const Config& config, const Key& whole, const PrimeList& primes)
      : digits_(whole.digits_), block_(config, primes, 1, 2 * digits_) {
    const std::size_t total = whole.block_.primes().size(), n = config.n;
    for (std::size_t part = 0; part < 2 * digits_; ++part) {
      for (std::size_t i = 0; i < primes.size(); ++i) {
        for (std::size_t k = 0; k < n; ++k) {
          block_.set((part * primes.size() + i) * n + k,
                     whole.block_.at((part * total + primes[i]) * n + k));
        }
      }
    }
  }
  KeyView view() const { return {block_.data(), digits_, block_.primes()}; }

 private:
  std::size_t digits_;
  Block block_;
};

inline Natural product(const Config& config, const PrimeList& primes) {
  Natural p = 1;
  for (const PrimeIndex i : primes) p *= config.primes[i];
  return p;
}

/// The integers in [0, Q) of a block in coefficient form, ordered by (batch, coefficient), by icrt
/// of `engine`.
inline std::vector<Natural> integers(const Engine& engine, const Block& x,
                                     IcrtMethod method = IcrtMethod::product_sum) {
  const std::size_t words = product(engine.config(), x.primes()).words();
  const std::size_t count = x.batch() * x.n();
  std::vector<u64> flat(words * count, 0xABABABABABABABAB);
  engine.ring().icrt(flat, words, x, method);
  std::vector<Natural> result;
  std::vector<u64> one(words);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t w = 0; w < words; ++w) one[w] = flat[w * count + i];
    result.push_back(Natural::from_words(one));
  }
  return result;
}

}  // namespace jali::backend::test
