#include "jali/params/security.h"

#include <bit>
#include <vector>

#include "jali/base/error.h"

namespace jali::params {

double max_log_qp(int log_n, int security) {
  require<InvalidArgument>(security == 128 || security == 192 || security == 256,
                           "security must be 128, 192 or 256");
  for (const SecurityRow& row : kSecurityTable) {
    if (row.log_n == log_n) {
      return security == 128 ? row.bits128 : security == 192 ? row.bits192 : row.bits256;
    }
  }
  return 0;
}

int product_bits(std::span<const std::uint64_t> factors) {
  __extension__ using Wide = unsigned __int128;
  std::vector<std::uint64_t> product{1};  // little end first
  for (std::uint64_t f : factors) {
    Wide carry = 0;
    for (std::uint64_t& word : product) {
      carry += static_cast<Wide>(word) * f;
      word = static_cast<std::uint64_t>(carry);
      carry >>= 64;
    }
    if (carry != 0) product.push_back(static_cast<std::uint64_t>(carry));
  }
  return static_cast<int>(64 * (product.size() - 1)) + std::bit_width(product.back());
}

bool is_secure(std::span<const std::uint64_t> primes, int log_n, int security) {
  // A product of odd primes is never 2^bound: PQ <= 2^bound exactly when it has at most bound bits.
  return product_bits(primes) <= static_cast<int>(max_log_qp(log_n, security));
}

int granted_security(std::span<const std::uint64_t> primes, int log_n) {
  for (int security : {256, 192, 128}) {
    if (is_secure(primes, log_n, security)) return security;
  }
  return 0;
}

// J.-P. Bossuat, J. Troncoso-Pastoriza and J.-P. Hubaux, eprint 2022/024, estimate secrets of
// weight 32 at 128 bits or more in these rings with moduli of this size.
double max_log_sparse_modulus(int log_n, int weight) {
  return weight >= 32 && log_n >= 15 ? 128 : 0;
}

}  // namespace jali::params
