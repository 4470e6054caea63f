// From residues to integers in [0, Q).
#include <algorithm>
#include <cstring>

#include "jali/backend/cpu/mixed_radix.h"
#include "jali/backend/cpu/ring.h"
#include "jali/backend/embedding.h"
#include "jali/base/error.h"

namespace jali::backend::cpu {
namespace {

using Natural = std::vector<std::uint64_t>;  // little end first, fixed length

/// x += a b.
void multiply_add(std::uint64_t* x, const std::uint64_t* a, std::uint64_t b, std::size_t words) {
  std::uint64_t carry = 0;
  for (std::size_t w = 0; w < words; ++w) {
    const arith::uint128 t = static_cast<arith::uint128>(a[w]) * b + x[w] + carry;
    x[w] = static_cast<std::uint64_t>(t);
    carry = static_cast<std::uint64_t>(t >> 64);
  }
}

/// x -= a.
void subtract(std::uint64_t* x, const std::uint64_t* a, std::size_t words) {
  std::uint64_t borrow = 0;
  for (std::size_t w = 0; w < words; ++w) {
    const arith::uint128 t = static_cast<arith::uint128>(x[w]) - a[w] - borrow;
    x[w] = static_cast<std::uint64_t>(t);
    borrow = static_cast<std::uint64_t>(t >> 64) & 1;
  }
}

bool less(const std::uint64_t* a, const std::uint64_t* b, std::size_t words) {
  for (std::size_t w = words; w-- > 0;) {
    if (a[w] != b[w]) return a[w] < b[w];
  }
  return false;
}

/// Product of the primes but one, in `words` words.
Natural product(std::span<const std::uint64_t> primes, std::size_t skip, std::size_t words) {
  Natural x(words, 0);
  x[0] = 1;
  for (std::size_t i = 0; i < primes.size(); ++i) {
    if (i == skip) continue;
    Natural next(words, 0);
    multiply_add(next.data(), x.data(), primes[i], words);
    x = next;
  }
  return x;
}

/// sum_i (Q / q_i) [x_i (Q / q_i)^-1 mod q_i], less Q while it is not below.
class ProductSum {
 public:
  explicit ProductSum(const std::vector<const PrimeTables*>& primes) : wide_(primes.size() + 1) {
    for (const PrimeTables* p : primes) q_.push_back(p->row.q);
    big_q_ = product(q_, q_.size(), wide_);
    for (std::size_t i = 0; i < q_.size(); ++i) {
      const arith::Modulus& mod = primes[i]->mod;
      hat_.push_back(product(q_, i, wide_));
      std::uint64_t residue = 1;
      for (std::size_t j = 0; j < q_.size(); ++j) {
        if (j != i) residue = mod.mul(residue, mod.reduce(q_[j]));
      }
      inverse_.push_back(mod.shoup(mod.inverse(residue)));
    }
  }

  /// T: of the rows' words.
  template <class T>
  void compose(std::uint64_t* out, std::size_t words, std::size_t stride,
               const std::byte* rows) const {
    const T* const x = reinterpret_cast<const T*>(rows);
    Natural sum(wide_);
    for (std::size_t k = 0; k < kBlock; ++k) {
      std::fill(sum.begin(), sum.end(), 0);
      for (std::size_t i = 0; i < q_.size(); ++i) {
        multiply_add(sum.data(), hat_[i].data(),
                     arith::mul_shoup(x[i * kBlock + k], inverse_[i], q_[i]), wide_);
        if (!less(sum.data(), big_q_.data(), wide_)) subtract(sum.data(), big_q_.data(), wide_);
      }
      for (std::size_t w = 0; w < words; ++w) out[w * stride + k] = w < wide_ ? sum[w] : 0;
    }
  }

 private:
  std::size_t wide_;  // words: sums of two terms, each below Q
  std::vector<std::uint64_t> q_;
  Natural big_q_;
  std::vector<Natural> hat_;
  std::vector<ShoupConstant> inverse_;
};

}  // namespace

void CpuRing::icrt(std::span<std::uint64_t> integers, std::size_t words, ConstView x,
                   IcrtMethod method) const {
  check(x);
  const std::size_t limbs = x.primes.size(), stride = x.batch * n_;
  require<InvalidArgument>(words >= 1 && integers.size() == words * stride,
                           "icrt needs `words` words for each coefficient");
  const auto primes = tables_of(x.primes);
  std::vector<std::uint64_t> q;
  for (const PrimeTables* p : primes) q.push_back(p->row.q);
  require<InvalidArgument>(product_words(q).size() <= words,
                           "icrt: the words given cannot hold the modulus");
  const bool garner = method != IcrtMethod::product_sum;  // the faster one: vectors of coefficients
  const MixedRadix radix(garner ? primes : std::vector<const PrimeTables*>(), kernels_);
  const ProductSum sums(garner ? std::vector<const PrimeTables*>() : primes);
  const std::size_t word = word_bytes(config_.word), row_block = kBlock * word;
  pool_.parallel(stride / kBlock, [&](std::size_t block) {
    const std::size_t k = block * kBlock;
    const auto lease = scratch_.lend_secret(std::max<std::size_t>(limbs, 1) * row_block +
                                            words * MixedRadix::kLanes * sizeof(std::uint64_t));
    for (std::size_t i = 0; i < limbs; ++i) {
      std::memcpy(lease.data() + i * row_block, row(x, i, k / n_) + k % n_ * word, row_block);
    }
    std::uint64_t* const out = integers.data() + k;
    if (garner) {
      radix.digits(lease.data());
      auto* const work = reinterpret_cast<std::uint64_t*>(lease.data() + limbs * row_block);
      radix.compose(out, words, stride, lease.data(), work);
    } else if (word == 4) {
      sums.compose<std::uint32_t>(out, words, stride, lease.data());
    } else {
      sums.compose<std::uint64_t>(out, words, stride, lease.data());
    }
  });
}

}  // namespace jali::backend::cpu
