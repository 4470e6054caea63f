#include "jali/schemes/tfhe/table.h"

#include <algorithm>
#include <bit>
#include <string>

#include "jali/base/error.h"

namespace jali::tfhe {

namespace {

void require_params(const ParamsPtr& params) {
  require<InvalidArgument>(params != nullptr, "a look-up table needs parameters");
}

void check_value(const Params& params, std::size_t input, std::uint64_t value) {
  require<InvalidArgument>(value < params.value_modulus(), [&] {
    return "the function is " + std::to_string(static_cast<std::int64_t>(value)) + " at " +
           std::to_string(input) + ", and results must be 0 to " +
           std::to_string(params.value_modulus() - 1) + ": take it modulo " +
           std::to_string(params.message_modulus()) + ", or use a preset with more bits";
  });
}

}  // namespace

LookUpTable::LookUpTable(ParamsPtr params, std::span<const std::uint64_t> values)
    : params_(std::move(params)) {
  require_params(params_);
  require<InvalidArgument>(!values.empty() && values.size() <= params_->value_modulus(), [&] {
    return "a look-up table has 1 to " + std::to_string(params_->value_modulus()) +
           " values, not " + std::to_string(values.size());
  });
  for (std::size_t v = 0; v < values.size(); ++v) check_value(*params_, v, values[v]);
  values_.emplace_back(values.begin(), values.end());
}

LookUpTable::LookUpTable(ParamsPtr params, const std::function<std::uint64_t(std::uint64_t)>& f)
    : params_(std::move(params)) {
  require_params(params_);
  auto& values = values_.emplace_back();
  for (std::uint64_t v = 0; v < params_->value_modulus(); ++v) {
    values.push_back(f(v));
    check_value(*params_, v, values.back());
  }
}

LookUpTable LookUpTable::of_two(
    ParamsPtr params, const std::function<std::uint64_t(std::uint64_t, std::uint64_t)>& f) {
  require_params(params);
  const std::uint64_t m = params->message_modulus();
  require<InvalidArgument>(params->carry_bits() > 0,
                           "a table of two inputs needs carry bits for the second one: use a "
                           "preset with carries, as message_2_carry_2");
  return LookUpTable(std::move(params), [&](std::uint64_t v) { return f(v % m, v / m); });
}

LookUpTable LookUpTable::together(std::span<const LookUpTable> tables) {
  require<InvalidArgument>(std::has_single_bit(tables.size()),
                           "tables on one rotation must be 1, 2, 4, ... in number: repeat one to "
                           "fill up");
  LookUpTable out;
  out.params_ = tables[0].params_;
  for (const LookUpTable& table : tables) {
    require<ParamsMismatch>(table.params_->hash() == out.params_->hash(),
                            "tables on one rotation must be of the same parameters");
    require<InvalidArgument>(table.count() == 1, "a table of several cannot be one of several");
    out.values_.push_back(table.values_[0]);
  }
  const std::uint64_t p = out.params_->value_modulus();
  out.side_by_side_ = tables.size() > 1 && tables.size() <= p &&
                      std::ranges::all_of(out.values_, [&](const auto& v) {
                        return v.size() <= p / tables.size();
                      });
  const std::size_t most = out.params_->N().value / (2 * p);
  require<InvalidArgument>(out.side_by_side_ || tables.size() <= most, [&] {
    return std::to_string(tables.size()) +
           " tables of all values do not fit one rotation, at most " + std::to_string(most) +
           " do: give them fewer values, if the inputs are smaller";
  });
  return out;
}

int LookUpTable::log_many() const { return side_by_side_ ? 0 : std::countr_zero(values_.size()); }

std::size_t LookUpTable::shortest() const {
  return std::ranges::min(values_, {}, &std::vector<std::uint64_t>::size).size();
}

std::uint32_t LookUpTable::largest(std::size_t j, std::uint32_t degree) const {
  const auto at = values(j).first(std::min<std::size_t>(degree + std::size_t{1}, values(j).size()));
  return static_cast<std::uint32_t>(*std::ranges::max_element(at));
}

std::vector<std::uint8_t> LookUpTable::polynomial() const {
  const std::size_t n = params_->N().value, p = params_->value_modulus(), many = count();
  const std::uint64_t step = params_->step(params_->torus());
  const std::size_t bytes = backend::torus_bytes(params_->torus());
  const auto value = [&](std::size_t j, std::size_t v) -> std::uint64_t {
    return v < values_[j].size() ? values_[j][v] * step : 0;
  };
  std::vector<std::uint8_t> out;
  out.reserve(n * bytes);
  for (std::size_t t = 0; t < n; ++t) {
    const std::size_t first = side_by_side_ ? t : t / many * many;
    const std::size_t j = t - first;  // of interleaved functions
    const std::size_t box = (first + n / (2 * p)) / (n / p);
    std::uint64_t word = 0;
    if (box == p) {
      word = 0 - value(j, 0);
    } else if (side_by_side_) {
      word = value(box / (p / many), box % (p / many));
    } else {
      word = value(j, box);
    }
    for (std::size_t i = 0; i < bytes; ++i) {
      out.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
    }
  }
  return out;
}

std::vector<std::int64_t> LookUpTable::halves() const {
  const std::size_t p = params_->value_modulus(), many = count();
  std::vector<std::int64_t> out(side_by_side_ ? p : p * many);
  for (std::size_t j = 0; j < many; ++j) {
    for (std::size_t v = 0; v < values_[j].size(); ++v) {
      out[side_by_side_ ? j * (p / many) + v : v * many + j] =
          2 * static_cast<std::int64_t>(values_[j][v]);
    }
  }
  return out;
}

TableOrigin LookUpTable::origin(std::span<const std::int64_t> halves, std::size_t j,
                                std::int64_t half_steps) const {
  const int bits = params_->message_bits() + params_->carry_bits();
  if (side_by_side_) {  // its result is that of a table shifted by j P / M boxes
    return table_origin(
        halves, bits,
        half_steps + static_cast<std::int64_t>(2 * j * (params_->value_modulus() / count())));
  }
  return table_origin(halves, bits, half_steps, j);
}

}  // namespace jali::tfhe
