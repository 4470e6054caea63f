#include "jali/circuits/ckks/block_transform.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "jali/base/error.h"
#include "jali/circuits/ckks/block_norm.h"
#include "jali/circuits/ckks/roundings.h"
#include "jali/circuits/common/baby_giant.h"
#include "jali/params/ckks/noise.h"
#include "jali/schemes/ckks/range.h"

namespace jali::circuits {
namespace {

using ckks::Ciphertext;
using ckks::Extended;
using ckks::Rotation;

bool close(double a, double b) { return std::abs(a - b) <= std::ldexp(std::abs(b), -20); }

}  // namespace

Ciphertext bring_down(const ckks::Evaluator& evaluator, const Ciphertext& a, int level,
                      double scale, const char* what) {
  require<InvalidArgument>(a.parts.size() == 2, [&] {
    return std::string(what) + " takes ciphertexts of two parts: relinearise first";
  });
  require<DepthExhausted>(a.level >= level, [&] {
    return std::string(what) + " was built for level " + std::to_string(level) +
           ", and the ciphertext has level " + std::to_string(a.level) +
           ": build it for that level, or take parameters with depth " +
           std::to_string(a.params->depth() + level - a.level);
  });
  if (a.level > level) return evaluator.adjust(a, level, scale);
  require<ScaleMismatch>(close(a.scale, scale), [&] {
    return std::string(what) + " was built for inputs of scale 2^" +
           std::to_string(std::log2(scale)) + ", and the ciphertext has 2^" +
           std::to_string(std::log2(a.scale)) + ": rescale it, or set input_scale";
  });
  return evaluator.copy(a);
}

BlockTransform::BlockTransform(ckks::ParamsPtr params, const BlockDiagonals& diagonals, Fill fill,
                               const TransformOptions& options)
    : params_(std::move(params)), fill_(std::move(fill)), summed_rows_(options.summed_rows) {
  level_ = options.level < 0 ? params_->depth() : options.level;
  const int full = params_->log_n() - 1;
  log_slots_ = options.log_slots < 0 ? full : options.log_slots;
  require<InvalidArgument>(level_ <= params_->top(), [&] {
    return "level " + std::to_string(level_) + " is above the top level " +
           std::to_string(params_->top());
  });
  require<DepthExhausted>(level_ >= 1, [&] {
    return "a linear transform takes one level, and its input has level " + std::to_string(level_) +
           ": take parameters with depth " + std::to_string(params_->depth() + 1);
  });
  require<InvalidArgument>(log_slots_ <= full, [&] {
    return "log_slots " + std::to_string(log_slots_) + " is above " + std::to_string(full);
  });
  input_scale_ = options.input_scale > 0 ? options.input_scale : params_->scale(level_);
  output_scale_ = options.output_scale > 0 ? options.output_scale : params_->scale(level_ - 1);
  diagonal_scale_ = output_scale_ * (params_->ratio(level_) / input_scale_);
  require<ScaleMismatch>(diagonal_scale_ >= 2, [&] {
    return "an input scale of 2^" + std::to_string(std::log2(input_scale_)) +
           " leaves no room for the diagonals: rescale the input first";
  });
  plan_ = plan_bsgs(*params_, level_, std::size_t{1} << log_slots_, diagonals, options.bsgs);
}

std::vector<PrimeIndex> BlockTransform::diagonal_primes() const {
  auto primes = params_->level(level_).primes;
  if (plan_.hoisting == Hoisting::twice)
    primes.insert(primes.end(), params_->p_primes().begin(), params_->p_primes().end());
  return primes;
}

std::size_t BlockTransform::plaintext_bytes(ckks::Storage storage) const {
  if (storage == ckks::Storage::residues) {
    return plan_.diagonal_count() * diagonal_primes().size() * params_->n() *
           word_bytes(params_->word());
  }
  require_numbers();
  std::size_t total = 0;
  std::vector<std::complex<double>> entries(plan_.slots);
  for (std::size_t o = 0; o < plan_.giants.size(); ++o) {
    for (const auto& giant : plan_.giants[o]) {
      for (const auto& term : giant.terms) {
        std::ranges::fill(entries, 0.0);
        fill_(o, term.input, term.diagonal, entries);
        double sum = 0;
        for (const auto& e : entries) sum += std::abs(e.real()) + std::abs(e.imag());
        require<InvalidArgument>(
            1.001 * sum * diagonal_scale_ / static_cast<double>(plan_.slots) + 1 < 0x1p62,
            "the matrix has numbers that are too large for integers of 62 bits: keep it over all "
            "primes, or scale it down");
        total += ckks::compact_bytes(entries);
      }
    }
  }
  return total;
}

std::size_t BlockTransform::bytes() const {
  std::size_t total = 0;
  for (const auto& giants : encoded_) {
    for (const auto& terms : giants) {
      for (const Diagonal& d : terms) total += d.poly.bytes() + d.compact.bytes();
    }
  }
  return total;
}

void BlockTransform::require_numbers() const {
  require<InvalidArgument>(
      fill_ != nullptr,
      "the plan gave up the numbers of its matrix: make a plan for each evaluator");
}

void BlockTransform::forget() {
  require<InvalidArgument>(prepared(), "prepare the plan before it gives up its numbers");
  fill_ = nullptr;
}

BlockTransform::Diagonal BlockTransform::encode(const ckks::Encoder& encoder, std::size_t output,
                                                int giant, const BsgsPlan::Term& term,
                                                ckks::Storage storage) const {
  std::vector<std::complex<double>> entries(plan_.slots);
  fill_(output, term.input, term.diagonal, entries);
  double power = 0, peak = 0;
  bool real = true;
  for (const auto& e : entries) {
    power += std::norm(e);
    peak = std::max(peak, std::abs(e));
    real = real && e.imag() == 0;
  }
  // rot_{-g}: entry s of the encoded diagonal is entry s - g of the diagonal.
  const auto turn =
      ((giant + plan_.offset) % static_cast<long>(plan_.slots) + plan_.slots) % plan_.slots;
  std::rotate(entries.begin(), entries.end() - static_cast<std::ptrdiff_t>(turn), entries.end());
  Diagonal out;
  out.message = std::sqrt(power / static_cast<double>(plan_.slots));
  out.peak = peak;
  out.real = real;
  if (storage == ckks::Storage::residues) {
    out.poly = encoder.encode_over(entries, 1, diagonal_primes(), diagonal_scale_, log_slots_);
  } else {
    out.compact = encoder.compact(entries, 1, diagonal_scale_, log_slots_,
                                  storage == ckks::Storage::streamed);
  }
  return out;
}

std::vector<double> BlockTransform::row_sums(std::size_t output) const {
  require_numbers();
  std::vector<std::complex<double>> entries(plan_.slots);
  std::vector<double> rows(plan_.slots, 0);
  for (const auto& giant : plan_.giants[output]) {
    for (const auto& term : giant.terms) {
      std::ranges::fill(entries, 0.0);
      fill_(output, term.input, term.diagonal, entries);
      for (std::size_t s = 0; s < rows.size(); ++s) rows[s] += std::abs(entries[s]);
    }
  }
  return rows;
}

// What tells of the roundings of a diagonal: its numbers less their mean, whose rounding is that of
// one coefficient, projected on two sets of random signs, in units of the encoded integers.
struct Print {
  double first, second;
};

static Print print_of(std::span<const std::complex<double>> entries, double scale) {
  std::complex<double> mean = 0;
  for (const auto& e : entries) mean += e;
  mean /= static_cast<double>(entries.size());
  // They are no secret, and have to be the same for every diagonal.
  std::minstd_rand signs;  // NOLINT(bugprone-random-generator-seed)
  Print out{0, 0};
  for (const auto& e : entries) {
    const auto bits = signs();
    const double re = e.real() - mean.real(), im = e.imag() - mean.imag();
    out.first += (bits & 0x100 ? re : -re) + (bits & 0x200 ? im : -im);
    out.second += (bits & 0x400 ? re : -re) + (bits & 0x800 ? im : -im);
  }
  const double unit = scale / std::sqrt(static_cast<double>(entries.size()));
  const double sign =
      out.first < 0 ? -unit : unit;  // a change of sign changes that of roundings alone
  return {out.first * sign, out.second * sign};
}

// How many pairs of diagonals are rounded alike, each with itself included. A coefficient is the
// mean of n numbers times roots of unity, so coefficients differ by less than a quarter if numbers
// differ by less than sqrt(n) / 4 units. Diagonals that have no print are made of equal numbers.
static double alike_pairs(std::vector<Print>& prints, std::size_t slots) {
  const double near = std::sqrt(static_cast<double>(slots)) / 4;
  std::ranges::sort(prints, {}, &Print::first);
  double pairs = 0, count = 0;
  for (std::size_t i = 0; i < prints.size(); ++i) {
    const bool none = prints[i].first < near && std::fabs(prints[i].second) < near;
    const bool alike = count > 0 && prints[i].first - prints[i - 1].first < near &&
                       std::fabs(prints[i].second - prints[i - 1].second) < near;
    count = none ? 0 : alike ? count + 1 : 1;
    pairs += none ? 1 : 2 * count - 1;
  }
  return pairs;
}

BlockTransform::Rows BlockTransform::rows_of(std::size_t output) const {
  const auto sums = row_sums(output);
  const auto zeros = static_cast<std::size_t>(std::ranges::count(sums, 0.0));
  const double slots = static_cast<double>(sums.size());
  const bool summed = !summed_rows_.empty();
  const bool all = summed || zeros == sums.size();
  // What the sums of rows have of the roundings is that of the sums of the diagonals' numbers.
  const std::size_t period = summed ? summed_rows_[output] : plan_.slots;
  std::vector<std::complex<double>> folded(period);
  const double filled = all ? slots : slots - static_cast<double>(zeros);
  Rows out{std::ranges::max(sums), slots / filled};
  std::vector<std::complex<double>> entries(plan_.slots);
  std::vector<Print> prints;
  Roundings roundings(plan_.slots, period, diagonal_scale_);
  std::vector<double> norms(period);  // the squares of those of the rows
  for (std::size_t input = 0; input < plan_.babies.size(); ++input) {
    BlockNorm block(plan_.slots);
    for (const auto& giant : plan_.giants[output]) {
      for (const auto& term : giant.terms) {
        if (term.input != input) continue;
        std::ranges::fill(entries, 0.0);
        fill_(output, input, term.diagonal, entries);
        block.add(term.diagonal, entries);
        ++out.diagonals;
        for (std::size_t r = 0; r < entries.size(); ++r) norms[r % period] += std::norm(entries[r]);
        // Of equal numbers, one coefficient is rounded and not N, so that as many roundings may be
        // added as if they were independent.
        const bool one =
            std::ranges::all_of(entries, [&](const auto& e) { return e == entries[0]; });
        if (one) continue;
        std::ranges::fill(folded, 0.0);
        for (std::size_t s = 0; s < entries.size(); ++s) folded[s % period] += entries[s];
        prints.push_back(print_of(folded, diagonal_scale_));
        roundings.add(entries);
      }
    }
    if (block.squares() == 0) continue;
    const double largest = block.largest(), mean = block.squares() / filled;
    out.squares += block.squares();
    out.message += std::sqrt(largest * out.share);
    out.principal = std::max(out.principal, largest / mean);
  }
  const double others = out.diagonals - static_cast<double>(prints.size());
  if (out.diagonals > 0) {
    out.alike =
        std::max((others + alike_pairs(prints, plan_.slots)) / out.diagonals, roundings.alike());
  }
  const auto rows =
      static_cast<double>(std::ranges::count_if(norms, [](double x) { return x > 0; }));
  if (rows > 0) out.uneven = std::max(std::ranges::max(norms) * rows / out.squares, 1.0);
  return out;
}

const std::vector<BlockTransform::Rows>& BlockTransform::rows() const {
  std::call_once(known_->once, [&] {
    std::vector<Rows> made;
    for (std::size_t o = 0; o < plan_.giants.size(); ++o) made.push_back(rows_of(o));
    known_->rows = std::move(made);
  });
  return known_->rows;
}

void BlockTransform::Rows::narrow(params::Estimate& sum) const {
  sum.bound_peak(largest);
  sum.bound_message();
}

void BlockTransform::Rows::finish(params::Estimate& sum) const {
  sum.rows(largest, message, principal, uneven);
}

void BlockTransform::prepare(const ckks::Encoder& encoder, ckks::Storage storage) {
  require_numbers();
  std::vector<std::vector<std::vector<Diagonal>>> encoded(plan_.giants.size());
  for (std::size_t o = 0; o < plan_.giants.size(); ++o) {
    for (const auto& giant : plan_.giants[o]) {
      auto& terms = encoded[o].emplace_back();
      for (const auto& term : giant.terms)
        terms.push_back(encode(encoder, o, giant.rotation, term, storage));
    }
  }
  encoded_ = std::move(encoded);
  storage_ = storage;
  rows();
}

// --- what baby and giant steps ask of the diagonals ----------------------------------------------

class BlockTransform::Scheme {
 public:
  using Evaluator = ckks::Evaluator;

  /// rows: what is known of the outputs' rows, in units of their numbers.
  Scheme(const BlockTransform& transform, const Evaluator& evaluator, std::span<const Rows> rows)
      : transform_(transform), evaluator_(evaluator), rows_(rows) {}

  struct Weight {
    const Diagonal* diagonal;
    backend::ConstView residues;
    backend::ConstView view() const { return residues; }
  };

  class Weights {
   public:
    explicit Weights(const Scheme& scheme) : scheme_(scheme), primes_(scheme.weight_primes()) {}

    void restart(std::size_t most) {
      made_.clear();
      made_.reserve(most);
      used_ = 0;
    }

    Weight get(std::size_t output, std::size_t giant, std::size_t term) {
      const BlockTransform& t = scheme_.transform_;
      const ckks::Evaluator& evaluator = scheme_.evaluator_;
      if (!t.prepared()) {
        const BsgsPlan::Giant& step = t.plan_.giants[output][giant];
        made_.push_back(t.encode(evaluator.encoder(), output, step.rotation, step.terms[term]));
      }
      const Diagonal& d = t.prepared() ? t.encoded_[output][giant][term] : made_.back();
      if (!d.poly.empty()) return {&d, d.poly.view()};
      if (used_ == expanded_.size()) expanded_.push_back(evaluator.ring()->make_secret(primes_));
      evaluator.encoder().expand(d.compact, expanded_[used_]);
      return {&d, std::as_const(expanded_[used_++]).view()};
    }

    template <class Sum, class Operand>
    void add(Sum& sum, bool fresh, const Operand& x, const Weight& weight,
             std::size_t output) const {
      const BlockTransform& t = scheme_.transform_;
      const params::NoiseModel& noise = scheme_.evaluator_.noise();
      // With sparse packing, only every (N/2 / slots)-th coefficient of a diagonal is rounded.
      const double density =
          static_cast<double>(t.plan_.slots) / static_cast<double>(t.params_->slots());
      // Numbers and their errors lie in the rows that are not zero, the roundings of diagonals in
      // all.
      const Rows& all = t.rows()[output];
      const Diagonal& d = *weight.diagonal;
      const params::Estimate diagonal =
          noise.diagonal({d.message, d.peak, d.real, density, std::sqrt(all.share), all.alike},
                         t.diagonal_scale_, t.log_slots_);
      const auto weighed = noise.multiply(x.estimate, x.scale, diagonal, t.diagonal_scale_);
      sum.estimate = fresh ? weighed : noise.add(sum.estimate, weighed);
      sum.scale = x.scale * t.diagonal_scale_;
    }

   private:
    const Scheme& scheme_;
    const std::vector<PrimeIndex> primes_;
    std::vector<Diagonal> made_;
    std::vector<ring::Poly> expanded_;  // one after the other for other diagonals
    std::size_t used_ = 0;  // of these
  };

  bool resident() const { return transform_.resident(); }
  std::vector<PrimeIndex> weight_primes() const { return transform_.diagonal_primes(); }
  Weights weights() const { return Weights(*this); }

  Ciphertext like(const Ciphertext& x) const { return metadata<Ciphertext>(x, x.scale); }
  Extended like(const Extended& x) const { return metadata<Extended>(x, x.scale); }
  Extended like(const Rotation& x) const { return metadata<Extended>(*x.source, x.scale); }

  void inner(std::size_t output, Ciphertext& sum) const { rows_[output].narrow(sum.estimate); }
  void inner(std::size_t output, Extended& sum) const { rows_[output].narrow(sum.estimate); }
  void partial(std::size_t output, Extended& sum) const {
    sum.estimate.bound_peak(rows_[output].largest);
  }
  void whole(std::size_t output, Ciphertext& sum) const { rows_[output].finish(sum.estimate); }
  void whole(std::size_t output, Extended& sum) const { rows_[output].finish(sum.estimate); }

  Ciphertext zero(const Ciphertext& like, bool rescale) const {
    Ciphertext product = evaluator_.multiply_scalar(like, 0.0, transform_.diagonal_scale_);
    return rescale ? evaluator_.rescale(product) : std::move(product);
  }

 private:
  template <class Sum, class Source>
  static Sum metadata(const Source& x, double scale) {
    Sum out;
    out.params = x.params;
    out.key_id = x.key_id;
    out.level = x.level;
    out.scale = scale;
    out.log_slots = x.log_slots;
    return out;
  }

  const BlockTransform& transform_;
  const Evaluator& evaluator_;
  const std::span<const Rows> rows_;
};

std::vector<Ciphertext> BlockTransform::apply(const ckks::Evaluator& evaluator,
                                              std::span<const Ciphertext> inputs, bool rescale,
                                              double peak) const {
  require<InvalidArgument>(inputs.size() == plan_.babies.size(), [&] {
    return "the transform takes " + std::to_string(plan_.babies.size()) + " ciphertexts, not " +
           std::to_string(inputs.size());
  });
  require<ParamsMismatch>(evaluator.params()->hash() == params_->hash(),
                          "the transform was built for other parameters than the evaluator's");
  if (plan_.sequence) {
    require_rotation_keys(evaluator, plan_.rotations(), "the linear transform", level_);
  } else {
    require_rotations(evaluator, plan_.rotations(), "the linear transform", level_);
  }
  rlwe::KeyId key_id;
  for (const Ciphertext& x : inputs) key_id = rlwe::common_key(key_id, x.key_id);
  std::vector<Ciphertext> down;
  std::vector<const Ciphertext*> at;
  down.reserve(inputs.size());
  for (const Ciphertext& x : inputs) {
    require<InvalidArgument>(x.log_slots == log_slots_, [&] {
      return "the transform was built for 2^" + std::to_string(log_slots_) +
             " slots, and the ciphertext has 2^" + std::to_string(x.log_slots);
    });
    require<InvalidArgument>(x.batch() == inputs[0].batch(),
                             "all input ciphertexts need the same batch");
    if (x.level == level_ && x.parts.size() == 2 && close(x.scale, input_scale_)) {
      at.push_back(&x);
    } else {
      down.push_back(bring_down(evaluator, x, level_, input_scale_, "the linear transform"));
      at.push_back(&down.back());
    }
  }
  const auto slots = static_cast<double>(plan_.slots);
  double largest = 0, message = 0, most = 0;
  std::uint32_t degree = 1;
  bool term = false;
  for (const Ciphertext* x : at) {
    largest = std::max(largest, x->estimate.peak);
    message = std::max(message, x->estimate.claim().message);
    most = std::max(most, x->estimate.claimed_largest(slots));
    degree = std::max(degree, params::degree_of(x->estimate.lineage));
    term = term || x->estimate.lineage.term;
  }
  std::vector<Rows> known = rows();
  std::vector<std::uint32_t> degrees;
  for (Rows& row : known) {
    const bool gathers = row.gathers() && !term;
    degrees.push_back(gathers ? params::kAnyDegree : degree);
    if (!gathers && !term) row.message = std::max(row.message, row.largest);
    // The roundings of few diagonals are multiplied by few inputs, which may be the largest.
    if (degree == params::kAnyDegree && message > 0) {
      row.uneven *=
          std::min(slots / std::max(row.diagonals, 1.0), most * most / (message * message));
    }
    row.largest = ckks::claimed_peak(peak, row.largest * largest);
    row.message *= message;
  }
  const Scheme scheme(*this, evaluator, known);
  auto outputs = BabyGiant<Scheme>(scheme, evaluator, plan_, level_).apply(at, rescale);
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    Ciphertext& y = outputs[o];
    y.key_id = key_id;
    y.estimate.set_unknown(degrees[o]);
    if (rescale) y.scale = output_scale_;  // equal except for the roundings of their products
  }
  return outputs;
}

}  // namespace jali::circuits
