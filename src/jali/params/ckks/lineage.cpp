#include "jali/params/ckks/lineage.h"

#include <algorithm>
#include <bit>

namespace jali::params {

namespace {

/// Limits powers and degrees. Larger ones make no difference.
std::uint32_t capped(std::uint64_t x) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(x, kAnyDegree));
}

/// The finaliser of SplitMix64.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// The bit of Lineage::inputs that stands for an encryption.
std::uint64_t bit_of(std::uint64_t root) { return std::uint64_t{1} << (mix(root) & 63); }

/// Whether these are the numbers of one encryption, or multiples or rotations of them, whose root a
/// difference inverts (ckks/sums.cpp). One in 32 sums of rotations of one vector passes for such,
/// too.
bool is_one_encryption(const Lineage& a) {
  return a.root != 0 && a.power == 1 && a.degree == 1 &&
         (a.inputs == bit_of(a.root) || a.inputs == bit_of(~a.root));
}

}  // namespace

Lineage lineage_received(std::uint64_t root, std::uint64_t turn, std::uint32_t power,
                         std::uint32_t degree, std::uint64_t inputs) {
  return {root, turn, power, degree, inputs};
}

bool are_kin(const Lineage& a, const Lineage& b) { return a.root != 0 && a.root == b.root; }

bool are_same(const Lineage& a, const Lineage& b) { return are_kin(a, b) && a.turn == b.turn; }

Lineage joined(const Lineage& a, const Lineage& b, std::uint64_t degree) {
  if (a.term || b.term) return lineage_of_term();
  if (a.root == 0 || b.root == 0) return lineage_of_unknown(degree);
  const auto one = [&](const Lineage& l) { return mix(mix(l.root + l.power) + l.turn); };
  const std::uint64_t root = mix(one(a) + one(b) + degree);
  return {std::max<std::uint64_t>(root, 1), 1, 1, capped(degree), a.inputs | b.inputs};
}

Lineage lineage_of_product(const Lineage& a, const Lineage& b) {
  if (!are_same(a, b)) {
    return joined(a, b, std::uint64_t{degree_of(a)} + degree_of(b));
  }
  Lineage out = a;
  out.power = capped(std::uint64_t{a.power} + b.power);
  return out;
}

Lineage lineage_of_negative(const Lineage& a) {
  Lineage out = a;
  if (out.root != 0) out.root = ~out.root;
  return out;
}

Lineage lineage_of_turned(const Lineage& a, std::uint64_t galois_element, std::size_t n) {
  Lineage out = a;
  out.turn = out.turn * galois_element % (2 * n);
  return out;
}

bool apart(const Lineage& a, const Lineage& b) {
  return is_one_encryption(a) && is_one_encryption(b) && a.root != b.root && a.root != ~b.root;
}

Lineage lineage_of_result(const Lineage& example, std::span<const Lineage* const> inputs) {
  // The inputs are of no higher degree than the examples (ckks/program.cpp).
  const Lineage unknown = lineage_of_unknown(degree_of(example));
  if (example.root == 0) return unknown;
  Lineage out{example.root + example.turn + example.power, 1, 1, 1, 0};
  std::uint32_t degree = 1;
  for (const Lineage* input : inputs) {
    if (input->root == 0) return unknown;
    out.root = mix(mix(out.root + input->root + input->power) + input->turn);
    out.inputs |= input->inputs;
    degree = std::max(degree, degree_of(*input));
  }
  out.degree = capped(std::uint64_t{degree_of(example)} * degree);
  // It must not pass for an encryption, which would be independent of the inputs.
  while (out.root == 0 || out.inputs == bit_of(out.root) || out.inputs == bit_of(~out.root)) {
    out.root = mix(out.root + 1);
  }
  return out;
}

std::uint32_t degree_of(const Lineage& a) { return capped(std::uint64_t{a.degree} * a.power); }

Lineage lineage_of(std::uint64_t root) {
  root = std::max<std::uint64_t>(root, 1);
  return {root, 1, 1, 1, bit_of(root)};
}

Lineage lineage_of_term() {
  Lineage out;
  out.term = true;
  return out;
}

Lineage lineage_of_unknown(std::uint64_t degree) {
  Lineage out;
  out.degree = capped(degree);
  return out;
}

Lineage lineage_of_itself(const Lineage& unknown) { return {1, 1, 1, degree_of(unknown), 0}; }

Lineage lineage_of(double message, double peak) {
  return lineage_of(
      mix(mix(std::bit_cast<std::uint64_t>(message)) + std::bit_cast<std::uint64_t>(peak)));
}

}  // namespace jali::params
