// The inner sums of a BlockTransform: sums of ciphertexts, each times an encoded diagonal. Operands
// are ciphertexts over Q or, over Q and P, extended ones and rotations that are computed as they
// are used.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "jali/backend/rlwe_ops.h"
#include "jali/circuits/ckks/block_transform.h"
#include "jali/params/noise.h"

namespace jali::circuits {

namespace block_sums {

using ckks::Ciphertext;
using ckks::Extended;
using ckks::Rotation;

// Diagonals that are encoded, or expanded, for one use are multiplied a few at a time, while they
// are in the cache.
constexpr std::size_t kStreamed = 4;

inline const ring::Poly& part(const Ciphertext& x, std::size_t c) { return x.parts[c]; }
inline ring::Poly& part(Ciphertext& x, std::size_t c) { return x.parts[c]; }
inline const ring::Poly& part(const Extended& x, std::size_t c) { return c == 0 ? x.c0 : x.c1; }
inline ring::Poly& part(Extended& x, std::size_t c) { return c == 0 ? x.c0 : x.c1; }

// The metadata of x, and two uninitialised polynomials over `primes`.
inline Ciphertext blank(const ring::Ring& ring, const Ciphertext& x,
                        std::span<const PrimeIndex> primes) {
  Ciphertext out;
  out.params = x.params;
  out.key_id = x.key_id;
  out.level = x.level;
  out.scale = x.scale;
  out.log_slots = x.log_slots;
  for (std::size_t c = 0; c < 2; ++c) out.parts.push_back(ring.make(primes, x.batch()));
  return out;
}
inline Extended blank(const ring::Ring& ring, const Extended& x,
                      std::span<const PrimeIndex> primes) {
  Extended out;
  out.params = x.params;
  out.key_id = x.key_id;
  out.level = x.level;
  out.scale = x.scale;
  out.log_slots = x.log_slots;
  out.c0 = ring.make(primes, x.c0.batch());
  out.c1 = ring.make(primes, x.c1.batch());
  return out;
}
inline Extended blank(const ring::Ring& ring, const Rotation& x,
                      std::span<const PrimeIndex> primes) {
  Extended out;
  out.params = x.source->params;
  out.key_id = x.source->key_id;
  out.level = x.source->level;
  out.scale = x.scale;
  out.log_slots = x.source->log_slots;
  out.c0 = ring.make(primes, x.source->batch());
  out.c1 = ring.make(primes, x.source->batch());
  return out;
}

template <class Operand>
void weigh(const ckks::Evaluator& evaluator, std::span<const Operand* const> operands,
           std::span<const backend::WeightedSum> sums) {
  if constexpr (std::is_same_v<Operand, Rotation>) {
    std::vector<Rotation> rotations;
    for (const Rotation* x : operands) rotations.push_back(*x);
    evaluator.rotated_sums(rotations, sums);
  } else {
    std::vector<backend::ConstView> a0, a1;
    for (const Operand* x : operands) {
      a0.push_back(part(*x, 0).view());
      a1.push_back(part(*x, 1).view());
    }
    evaluator.ring()->engine().rlwe().weighted_sums(a0, a1, sums);
  }
}

}  // namespace block_sums

// Resident diagonals are used all at once, others are expanded or encoded, and used, a few at a
// time.
template <class Operand, class At>
void BlockTransform::add_terms(const ckks::Evaluator& evaluator, std::size_t output,
                               std::size_t first, std::span<const Operand* const> operands, At at,
                               std::span<std::optional<SumOf<Operand>>> sums) const {
  const params::NoiseModel& noise = evaluator.noise();
  const auto primes = diagonal_primes();
  // With sparse packing, only every (N/2 / slots)-th coefficient of a diagonal is rounded.
  const double density = static_cast<double>(plan_.slots) / static_cast<double>(params_->slots());
  // Numbers and their errors lie in the rows that are not zero, the roundings of diagonals in all.
  const double rows = std::sqrt(this->rows()[output].share);
  struct Terms {
    std::vector<std::uint32_t> operands;
    std::vector<backend::ConstView> weights;
  };
  std::vector<std::vector<std::size_t>> chosen(sums.size());
  for (std::size_t g = 0; g < sums.size(); ++g) {
    const auto& terms = plan_.giants[output][first + g].terms;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      if (at(terms[t]) >= 0) chosen[g].push_back(t);
    }
  }
  std::vector<ring::Poly> expanded;  // one after the other for other diagonals
  for (std::size_t begin = 0;; begin += block_sums::kStreamed) {
    std::vector<Diagonal> made;
    made.reserve(sums.size() * block_sums::kStreamed);
    std::size_t used = 0;  // of `expanded`
    std::vector<Terms> terms(sums.size());
    std::vector<backend::WeightedSum> weighed_sums;
    for (std::size_t g = 0; g < sums.size(); ++g) {
      const auto& giant = plan_.giants[output][first + g];
      const std::size_t end =
          resident() ? chosen[g].size() : std::min(begin + block_sums::kStreamed, chosen[g].size());
      Terms& list = terms[g];
      const bool more = sums[g].has_value();
      for (std::size_t k = begin; k < end; ++k) {
        const std::size_t t = chosen[g][k];
        const auto& term = giant.terms[t];
        if (!prepared()) {
          made.push_back(encode(evaluator.encoder(), output, giant.rotation, term));
        }
        const Diagonal& d = prepared() ? encoded_[output][first + g][t] : made.back();
        const bool compact = d.poly.empty();
        if (compact) {
          if (used == expanded.size()) {
            expanded.push_back(evaluator.ring()->make_secret(primes));
          }
          evaluator.encoder().expand(d.compact, expanded[used]);
          ++used;
        }
        const auto index = static_cast<std::size_t>(at(term));
        const Operand& x = *operands[index];
        list.operands.push_back(static_cast<std::uint32_t>(index));
        list.weights.push_back(std::as_const(compact ? expanded[used - 1] : d.poly).view());
        const params::Estimate diagonal =
            noise.diagonal({d.message, d.peak, d.real, density, rows, this->rows()[output].alike},
                           diagonal_scale_, log_slots_);
        const auto weighed = noise.multiply(x.estimate, x.scale, diagonal, diagonal_scale_);
        const bool fresh = !sums[g];
        if (fresh) sums[g] = block_sums::blank(*evaluator.ring(), x, primes);
        sums[g]->estimate = fresh ? weighed : noise.add(sums[g]->estimate, weighed);
        sums[g]->scale = x.scale * diagonal_scale_;
      }
      if (list.operands.empty()) continue;
      weighed_sums.push_back({block_sums::part(*sums[g], 0).view(),
                              block_sums::part(*sums[g], 1).view(), list.operands, list.weights,
                              more});
    }
    if (weighed_sums.empty()) break;
    block_sums::weigh<Operand>(evaluator, operands, weighed_sums);
    if (resident()) break;
  }
}

// The inner sums of the giant steps [first, last) of an output.
template <class Operand>
std::vector<BlockTransform::SumOf<Operand>> BlockTransform::inner_sums(
    const ckks::Evaluator& evaluator, std::size_t output, std::size_t first, std::size_t last,
    const Babies<Operand>& babies) const {
  std::vector<const Operand*> operands;
  std::vector<std::size_t> offset;
  for (const auto& row : babies) {
    offset.push_back(operands.size());
    for (const Operand& x : row) operands.push_back(&x);
  }
  std::vector<std::optional<SumOf<Operand>>> sums(last - first);
  add_terms<Operand>(
      evaluator, output, first, operands,
      [&](const BsgsPlan::Term& term) { return static_cast<int>(offset[term.input] + term.baby); },
      sums);
  std::vector<SumOf<Operand>> out;
  for (auto& sum : sums) out.push_back(std::move(*sum));
  return out;
}

}  // namespace jali::circuits
