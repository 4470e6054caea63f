// The negacyclic transform, computed in two ways: by its definition, and by the textbook recursion,
// which the tests compare with the definition. Rows are coefficients on one side and, on the other,
// values at psi^(2 brv(k) + 1) for index k.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace jali::backend::ref {

using Row = std::vector<std::uint64_t>;

/// The log2(n) low bits of k, reversed.
std::size_t bit_reverse(std::size_t k, std::size_t n);

// O(N^2): out[k] = sum_j x[j] psi^(j (2 brv(k) + 1)), and
// out[j] = N^-1 sum_k x[k] psi^(-j (2 brv(k) + 1)).
Row ntt_by_definition(const Row& x, std::uint64_t psi, std::uint64_t q);
Row intt_by_definition(const Row& x, std::uint64_t psi, std::uint64_t q);

// O(N log N): the cyclic transform of x[j] psi^j with omega = psi^2 by even and odd halves.
Row ntt_by_recursion(const Row& x, std::uint64_t psi, std::uint64_t q);
Row intt_by_recursion(const Row& x, std::uint64_t psi, std::uint64_t q);

/// x(X^g) modulo X^N + 1 from coefficients: X^j goes to X^(jg), and X^N = -1. g is odd.
Row automorphism(const Row& x, std::uint64_t g, std::uint64_t q);
/// The same from values: x(X^g) at psi^e is x at psi^(eg).
Row automorphism_of_values(const Row& x, std::uint64_t g);

}  // namespace jali::backend::ref
