// The security table, and exact comparison with it.
#pragma once

#include <cstdint>
#include <span>

namespace jali::params {

inline constexpr int kMinLogN = 10;
inline constexpr int kMaxLogN = 17;

/// The largest log2(PQ) for uniform ternary secrets, errors of standard deviation 3.19 and
/// classical attacks, from eprint 2024/463, Table 5.2. 0: the table has no entry.
struct SecurityRow {
  int log_n, bits128, bits192, bits256;
};
inline constexpr SecurityRow kSecurityTable[] = {
    {10, 26, 0, 0},      {11, 53, 36, 27},    {12, 106, 73, 56},     {13, 214, 147, 114},
    {14, 430, 297, 230}, {15, 868, 597, 462}, {16, 1747, 1199, 929}, {17, 3523, 2411, 1866},
};

/// The table's entry for log_n, or 0 if it has none. Throws InvalidArgument unless security is 128,
/// 192 or 256.
double max_log_qp(int log_n, int security);

/// The number of bits of the product of `factors`, floor(log2) + 1, computed exactly with big
/// integers.
int product_bits(std::span<const std::uint64_t> factors);

/// Whether the product of `primes` is at most 2^max_log_qp(log_n, security), computed exactly.
bool is_secure(std::span<const std::uint64_t> primes, int log_n, int security);

/// The strongest of 256, 192 and 128 bits that the table grants, computed exactly, or 0.
int granted_security(std::span<const std::uint64_t> primes, int log_n);

/// The largest log2(q_0 P') at which a sparse secret of this weight has 128 bits of security, or 0
/// if no figure is known. See docs/security.md.
double max_log_sparse_modulus(int log_n, int weight);

}  // namespace jali::params
