#include "jali/params/ckks_params.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <set>
#include <string>

#include "jali/base/error.h"
#include "jali/params/canonical.h"
#include "jali/params/ckks/choose.h"
#include "jali/params/ckks/part_levels.h"
#include "jali/params/real.h"
#include "jali/params/security.h"

namespace jali::ckks {

using namespace params;

struct ParamsBuilder {
  static ParamsPtr build(const Literal& literal, const Choice& choice);
};

namespace {

/// Checks the security of the sparse secret, whose key has a modulus of its own. Throws
/// InsecureParams.
void check_sparse(const Literal& literal, int log_n, const LevelTable& table) {
  if (!literal.bootstrap || literal.security == 0) return;
  std::vector<std::uint64_t> small;
  for (PrimeIndex i : table.levels[0]) small.push_back(table.q[i]);
  for (PrimeIndex i : table.sparse_p) small.push_back(table.q[i]);
  const double most = max_log_sparse_modulus(log_n, literal.bootstrap->weight);
  require<InsecureParams>(
      literal.security == 128 && product_bits(small) <= static_cast<int>(most), [&] {
        return "a sparse secret of weight " + std::to_string(literal.bootstrap->weight) +
               " would be used at a modulus of " + std::to_string(product_bits(small)) +
               " bits, and at log_n " + std::to_string(log_n) + " and security " +
               std::to_string(literal.security) + " there is a figure for " +
               std::to_string(literal.security == 128 ? static_cast<int>(most) : 0) +
               ": use log_n >= 15, weight >= 32, security 128, and fewer integer_bits";
      });
}

/// SHA-256 of everything that computation depends on. The name is not part of it.
rlwe::ParamsHash hash_of(const Literal& literal, const rlwe::ParamsSpec& spec,
                         const std::vector<double>& scales) {
  Canonical bytes;
  bytes.put(std::uint64_t{1});  // version of this list
  bytes.put(static_cast<std::uint64_t>(spec.log_n));
  bytes.put(static_cast<std::uint64_t>(spec.word));
  bytes.put(literal.scale_bits);
  bytes.put(literal.integer_bits);
  const double std = std::sqrt(rlwe::kErrorVariance);
  bytes.put(std * std);
  bytes.put(static_cast<std::uint64_t>(spec.q.size()));
  std::vector<std::uint64_t> primes = spec.q;
  primes.insert(primes.end(), spec.p.begin(), spec.p.end());
  bytes.put(primes);
  bytes.put(spec.digit_begin);
  bytes.put(static_cast<std::uint64_t>(spec.levels.size()));
  for (std::size_t l = 0; l < spec.levels.size(); ++l) {
    bytes.put(spec.levels[l]);
    bytes.put(scales[l]);
  }
  if (const auto& b = literal.bootstrap) {
    bytes.put(static_cast<std::uint64_t>(literal.depth));
    bytes.put(static_cast<std::uint64_t>(b->order));
    for (int x : {b->weight, b->range, b->degree, b->doublings, b->inverse_sine, b->cts_levels,
                  b->stc_levels}) {
      bytes.put(static_cast<std::uint64_t>(x));
    }
    bytes.put(b->ratio_bits);
    if (b->head_bits != 0) bytes.put(static_cast<std::uint64_t>(b->head_bits));
    bytes.put(spec.sparse_p);
  }
  return bytes.digest();
}

}  // namespace

ParamsPtr ParamsBuilder::build(const Literal& asked, const Choice& choice) {
  const LevelTable& table = choice.table;
  Literal literal = asked;
  literal.integer_bits += 0.0;  // -0 is 0
  literal.log_n = choice.log_n;
  literal.word = choice.word;
  literal.dnum = static_cast<int>(choice.gadget.dnum());
  rlwe::ParamsSpec spec;
  spec.log_n = choice.log_n;
  spec.word = choice.word;
  spec.q = table.q;
  spec.p = choice.gadget.p;
  spec.levels = table.levels;
  spec.digit_begin = choice.gadget.digit_begin;
  spec.sparse_weight = literal.bootstrap ? literal.bootstrap->weight : 0;
  spec.sparse_p = table.sparse_p;
  spec.security = literal.security;
  spec.hash = hash_of(literal, spec, table.scale);
  std::shared_ptr<Params> params(new Params(spec));
  check_sparse(literal, choice.log_n, table);
  params->literal_ = std::move(literal);
  params->plan_ = choice.plan;
  params->drift_ = table.drift;
  for (std::size_t l = 0; l < table.levels.size(); ++l) {
    auto& [scale, ratio] = params->scales_.emplace_back();
    scale = table.scale[l];
    if (static_cast<int>(l) > asked.depth) {
      ratio = modulus_ratio(table.q, table.levels[l], table.levels[l - 1]);
    } else if (l > 0) {
      // Taken from the recursion of the canonical scales, so that products rescale to them exactly.
      ratio = scale / table.scale[l - 1] * scale;
    }
  }
  return params;
}

ParamsPtr Params::create(const Literal& literal, const Checkpoint& checkpoint) {
  return ParamsBuilder::build(literal, choose(literal, checkpoint));
}

ParamsPtr Params::create_written(const Literal& literal, std::optional<PlanNumbers> plan,
                                 bool search) {
  return ParamsBuilder::build(literal, choose_written(literal, plan, search));
}

namespace {

/// The levels of bootstrapping without the primes that the computation's levels above `depth` have
/// added. The ratios between levels stay the same. Empty if a level of bootstrapping lacks such a
/// prime, or if level `depth` has a prime that the computation's highest level lacks.
std::vector<std::vector<PrimeIndex>> without_lost(const Params& whole, int depth) {
  const auto& computed = whole.level(whole.depth()).primes;
  const auto& kept = whole.level(depth).primes;
  if (!std::ranges::includes(computed, kept)) return {};
  std::vector<PrimeIndex> lost;
  std::ranges::set_difference(computed, kept, std::back_inserter(lost));
  std::vector<std::vector<PrimeIndex>> out;
  for (int l = whole.depth() + 1; l <= whole.top(); ++l) {
    const auto& primes = whole.level(l).primes;
    if (!std::ranges::includes(primes, lost)) return {};
    std::ranges::set_difference(primes, lost, std::back_inserter(out.emplace_back()));
  }
  return out;
}

/// Sets the scales of the powers T_1, T_2, T_4, ... of the reduction, from the last power upwards.
/// The scale of T_{2i} is the square of the scale of T_i over the ratio. Upwards, an error of a
/// ratio is halved from level to level; downwards it would be doubled.
template <class Scales>
void fit_power_scales(const BootstrapLiteral& b, Scales& levels) {
  const auto first = levels.size() - 1 - static_cast<std::size_t>(b.cts_levels);
  const auto squares =
      static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(b.degree))) - 1;
  for (std::size_t l = first - squares + 1; l <= first; ++l) {
    levels[l].scale = std::sqrt(levels[l - 1].scale * levels[l].ratio);
  }
}

}  // namespace

ParamsPtr Params::with_depth(int depth) const {
  require<InvalidArgument>(depth >= 0 && depth <= this->depth(), [&] {
    return "depth must be 0 to " + std::to_string(this->depth()) + ", not " + std::to_string(depth);
  });
  if (!bootstrap()) return nullptr;
  if (&whole() != this) return whole().with_depth(depth);
  auto above = without_lost(*this, depth);
  const bool same_steps = !above.empty();
  if (!same_steps) above = part_levels(*this, depth);
  if (above.empty()) return nullptr;

  std::shared_ptr<Params> out(new Params(*this));
  out->literal_.depth = depth;
  const std::size_t kept = static_cast<std::size_t>(depth) + 1;
  out->scales_.resize(kept);
  Canonical bytes;
  for (std::uint8_t byte : hash()) bytes.put(static_cast<std::uint64_t>(byte));
  bytes.put(static_cast<std::uint64_t>(depth));
  for (std::size_t j = 0; j < above.size(); ++j) {
    LevelScale at = scales_[static_cast<std::size_t>(this->depth()) + 1 + j];
    if (!same_steps) {
      at.ratio = modulus_ratio(primes(), above[j], j == 0 ? level(depth).primes : above[j - 1]);
      bytes.put(above[j]);
    }
    out->scales_.push_back(at);
  }
  if (!same_steps) fit_power_scales(*literal_.bootstrap, out->scales_);
  out->replace_levels(shared_from_this(), kept, above, bytes.digest());
  return out;
}

}  // namespace jali::ckks
