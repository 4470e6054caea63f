#include "jali/integers/tfhe_machine.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "jali/base/error.h"
#include "jali/tfhe/table.h"

namespace jali::integers {

namespace {

using backend::LweCombination;

// Rotated accumulators are large; so many are in memory at once.
constexpr std::size_t kRotations = 2048;
constexpr std::size_t kMostBytes = std::size_t{4} << 30;

const lwe::LweBlock& block_of(const Rows& rows) {
  return *static_cast<const TfheRows&>(rows).block();
}

/// Rows [first, first + count).
backend::ConstLweView part(const lwe::LweBlock& block, std::size_t first, std::size_t count) {
  const auto* data = static_cast<const std::byte*>(block.data.data());
  return {data + first * block.row_bytes(), block.torus, block.dimension, count};
}
backend::LweView part(lwe::LweBlock& block, std::size_t first, std::size_t count) {
  auto* data = static_cast<std::byte*>(block.data.data());
  return {data + first * block.row_bytes(), block.torus, block.dimension, count};
}

/// Tables in an engine's memory, and where each of a circuit's tables lies among them.
struct Polynomials {
  device::Buffer data;
  std::size_t count = 0;
  std::vector<std::uint32_t> of_input;
};

/// The polynomials of the tables that are used, each once.
Polynomials polynomials(const tfhe::ParamsPtr& params, const backend::TfheOps& engine,
                        std::span<const std::uint8_t> tables,
                        std::span<const std::uint32_t> of_input) {
  const std::size_t size = params->value_modulus();
  const std::size_t bytes = params->N().value * backend::torus_bytes(params->torus());
  Polynomials out;
  std::unordered_map<std::uint32_t, std::uint32_t> place;
  std::vector<std::uint8_t> words;
  std::vector<std::uint64_t> values(size);
  out.of_input.reserve(of_input.size());
  for (const std::uint32_t table : of_input) {
    const auto [at, fresh] = place.emplace(table, static_cast<std::uint32_t>(place.size()));
    out.of_input.push_back(at->second);
    if (!fresh) continue;
    std::ranges::copy(tables.subspan(table * size, size), values.begin());
    const auto polynomial = tfhe::LookUpTable(params, values).polynomial();
    words.insert(words.end(), polynomial.begin(), polynomial.end());
  }
  out.count = place.size();
  out.data = engine.device()->pool()->allocate(out.count * bytes);
  engine.device()->memory()->copy_in(out.data.data(), words.data(), words.size());
  return out;
}

}  // namespace

TfheMachine::TfheMachine(std::shared_ptr<const tfhe::Evaluator> evaluator, std::size_t wave,
                         std::size_t memory)
    : evaluator_(std::move(evaluator)), memory_(memory) {
  const tfhe::Params& params = *evaluator_->params();
  space_ =
      validated({params.message_bits(), params.carry_bits(), params.max_norm2(),
                 params.message_bits() + params.carry_bits() - 1, std::max<std::size_t>(wave, 1)});
}

std::shared_ptr<const Rows> TfheMachine::rows_of(const tfhe::Ciphertext& digits) {
  const std::uint64_t radix = digits.params->message_modulus();
  require<RangeExceeded>(digits.max_degree() < radix, [&] {
    return "a digit of the integers could be as large as " + std::to_string(digits.max_degree()) +
           ", and digits are below " + std::to_string(radix) +
           ": encrypt the integers digit by digit, as encrypt_uint does, or refresh the digits";
  });
  // Nothing writes to the rows of an operand.
  return std::make_shared<const TfheRows>(std::const_pointer_cast<lwe::LweBlock>(digits.data));
}

tfhe::Ciphertext TfheMachine::ciphertext(const Rows& digits, std::span<const int> largest,
                                         double noise) const {
  tfhe::Ciphertext out;
  out.params = evaluator_->params();
  out.key_id = evaluator_->key_id();
  out.data = static_cast<const TfheRows&>(digits).block();
  out.degree.resize(digits.count());
  for (std::size_t i = 0; i < out.degree.size(); ++i) {
    out.degree[i] = static_cast<std::uint32_t>(largest[i % largest.size()]);
  }
  out.history = tfhe::History::fresh(digits.count(), noise);
  return out;
}

std::size_t TfheMachine::available_rows() const {
  std::size_t bytes = memory_;
  if (bytes == 0) {
    const std::size_t free = evaluator_->engine().device()->memory()->available();
    bytes = free == device::kUnknown ? kMostBytes : std::min(free / 2, kMostBytes);
  }
  return bytes / evaluator_->params()->ciphertext_bytes();
}

std::unique_ptr<Rows> TfheMachine::allocate(std::size_t count) const {
  const tfhe::Params& params = *evaluator_->params();
  return std::make_unique<TfheRows>(std::make_shared<lwe::LweBlock>(
      lwe::make_lwe(*evaluator_->engine().device()->pool(), params.ciphertext_torus(),
                    params.dimension(), count)));
}

void TfheMachine::copy(Rows& out, std::size_t out_first, const Rows& in, std::size_t in_first,
                       std::size_t count) const {
  lwe::LweBlock& to = *static_cast<TfheRows&>(out).block();
  const lwe::LweBlock& from = block_of(in);
  evaluator_->engine().device()->memory()->copy(
      part(to, out_first, count).data, part(from, in_first, count).data, count * from.row_bytes());
}

void TfheMachine::combine(Rows& out, std::size_t out_first, const Rows& in,
                          const RowCombination& c) const {
  const std::size_t rows = c.begin.size() - 1;
  if (rows == 0) return;
  const std::uint64_t step = evaluator_->params()->step();
  std::vector<std::uint64_t> words(c.constant.size());
  std::ranges::transform(c.constant, words.begin(),
                         [&](std::int64_t x) { return static_cast<std::uint64_t>(x) * step; });
  lwe::LweBlock& to = *static_cast<TfheRows&>(out).block();
  const backend::TfheOps& engine = evaluator_->engine();
  const LweCombination sums{c.begin, c.column, c.weight, words};
  if (in.count() > 0) {
    engine.combine(part(to, out_first, rows), block_of(in).view(), sums);
    return;
  }
  // Constants alone, of a circuit that reads nothing: engines take no empty input.
  const auto none = allocate(1);
  lwe::LweBlock& zero = *static_cast<TfheRows&>(*none).block();
  engine.device()->memory()->fill(zero.data.data(), 0, zero.bytes());
  engine.combine(part(to, out_first, rows), std::as_const(zero).view(), sums);
}

void TfheMachine::look_up(Rows& out, std::size_t out_first, const Rows& in,
                          const RowLookUps& look_ups) const {
  if (look_ups.of_input.empty()) return;
  const backend::TfheOps& engine = evaluator_->engine();
  const tfhe::ParamsPtr& params = evaluator_->params();
  const lwe::PreparedKeys& keys = evaluator_->prepared_keys();
  const bool switches_first = params->order() == tfhe::Order::switch_first;
  device::Pool& pool = *engine.device()->pool();
  lwe::LweBlock& to = *static_cast<TfheRows&>(out).block();
  const lwe::LweBlock& from = block_of(in);
  const Polynomials tables = polynomials(params, engine, look_ups.tables, look_ups.of_input);
  std::size_t row = 0, result = out_first;
  for (const RowLookUps::Group& group : look_ups.groups) {
    const std::span<const std::uint32_t> of_group =
        std::span(tables.of_input).subspan(row, group.count);
    if (group.log_many == 0) {
      if (group.count > 0) {
        const backend::TableView view{tables.data.data(), tables.count, false, of_group, 0};
        const auto results = part(to, result, group.count);
        const auto inputs = part(from, row, group.count);
        if (switches_first) {
          engine.switch_bootstrap(results, inputs, view, keys.switching.data(),
                                  keys.rotation.data());
        } else {
          engine.bootstrap_switch(results, inputs, view, keys.switching.data(),
                                  keys.rotation.data());
        }
      }
      row += group.count;
      result += group.count;
      continue;
    }
    // Tables that lie side by side: result j is coefficient j N / 2^log_many of the rotated accumulator.
    const std::size_t many = std::size_t{1} << group.log_many;
    for (std::size_t first = 0; first < group.count; first += kRotations) {
      const std::size_t count = std::min(kRotations, group.count - first);
      const backend::TableView view{tables.data.data(), tables.count, false,
                                    of_group.subspan(first, count), 0};
      std::vector<std::uint32_t> coefficients(count * many);
      for (std::size_t i = 0; i < coefficients.size(); ++i) {
        coefficients[i] = static_cast<std::uint32_t>(i % many * (params->N().value / many));
      }
      lwe::GlweBlock rotations =
          lwe::make_glwe(pool, params->torus(), params->k(), params->N(), count);
      const auto inputs = part(from, row, count);
      const auto results = part(to, result, count * many);
      if (switches_first) {
        lwe::LweBlock small = lwe::make_lwe(pool, lwe::Torus::t32, params->n(), count);
        engine.key_switch(small.view(), inputs, keys.switching.data());
        engine.blind_rotate(rotations.view(), small.view(), view, keys.rotation.data());
        engine.extract(results, rotations.view(), coefficients, many);
      } else {
        engine.blind_rotate(rotations.view(), inputs, view, keys.rotation.data());
        lwe::LweBlock large = lwe::make_lwe(pool, params->torus(), params->large(), count * many);
        engine.extract(large.view(), rotations.view(), coefficients, many);
        engine.key_switch(results, large.view(), keys.switching.data());
      }
      row += count;
      result += count * many;
    }
  }
}

}  // namespace jali::integers
