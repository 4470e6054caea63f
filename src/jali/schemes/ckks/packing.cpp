#include "jali/schemes/ckks/packing.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "jali/base/error.h"

namespace jali::ckks {

namespace {

std::size_t slots_of(const Ciphertext& a) { return std::size_t{1} << a.log_slots; }

/// How many numbers a period has room for; 0 stands for all slots.
std::size_t room(const Tiling& t) { return std::size_t{t.window} * t.count; }
std::size_t period(const Tiling& t) { return std::size_t{t.stride} * t.count; }

bool has_rest(const Packing& a) { return a.view || (a.length != 0 && a.length != room(a.tiling)); }

/// The form that a packing has if every slot holds a number.
Packing settled(Packing a) {
  if (!has_rest(a)) a.rest = params::kUnbounded;
  return a;
}

double bounded(double rest) { return std::min(rest, params::kUnbounded); }
double product_of(double a, double b) { return a == 0 || b == 0 ? 0 : bounded(a * b); }

bool lie_alike(const Tiling& a, const Tiling& b) {
  return a.window == b.window && a.stride == b.stride && a.count == b.count;
}

/// How the numbers lie that two vectors of equal length hold in the same slots, or nothing if they
/// lie in different orders. If both lie in order, the one that repeats less often decides.
std::optional<Tiling> common(const Packing& a, const Packing& b) {
  Tiling out = a.tiling;
  if (!lie_alike(a.tiling, b.tiling)) {
    if (!is_in_order(a) || !is_in_order(b)) return std::nullopt;
    const bool b_decides =
        a.tiling.window != 0 && (b.tiling.window == 0 || b.tiling.window > a.tiling.window);
    if (b_decides) out = b.tiling;
  }
  if (a.tiling.first != b.tiling.first) out.first = 0;
  return out;
}

/// A bound on the slots of a that hold no number under this tiling. If a repeats more often, its
/// numbers lie there.
double beside(const Tiling& t, const Ciphertext& a) {
  return lie_alike(t, a.packing.tiling) ? rest_of(a) : a.estimate.peak;
}

Packing merge(const Ciphertext& a, const Ciphertext& b) {
  const std::size_t la = length_of(a), lb = length_of(b);
  require<InvalidArgument>(a.log_slots == b.log_slots, [&] {
    return "operands are packed in " + std::to_string(slots_of(a)) + " and " +
           std::to_string(slots_of(b)) + " slots: encrypt both with the same slots=";
  });
  // A vector of one number is no exception: NumPy would repeat it, and here it lies in one slot.
  const bool all_slots = a.packing.length == 0 || b.packing.length == 0;
  require<InvalidArgument>(la == lb || (all_slots && la != 1 && lb != 1), [&] {
    return "operands have the lengths " + std::to_string(la) + " and " + std::to_string(lb) +
           ": make them equal, or call with_length() if the zeros past the end are part of the "
           "vector";
  });
  require<InvalidArgument>(a.batch() == b.batch() || a.batch() == 1 || b.batch() == 1, [&] {
    return "operands have the batches " + std::to_string(a.batch()) + " and " +
           std::to_string(b.batch()) + ": make them equal, or one of them 1";
  });
  require<InvalidArgument>(
      a.packing.view == b.packing.view,
      "the operands are arrays that lie differently in their slots: move one to where "
      "the other lies first");
  Packing out;
  out.view = a.packing.view;
  out.batched = a.packing.batched || b.packing.batched;
  out.complex_values = a.packing.complex_values || b.packing.complex_values;
  if (la == lb) {
    out.length = a.packing.length;
    const auto tiling = common(a.packing, b.packing);
    require<InvalidArgument>(tiling.has_value(), [&] {
      return "the operands lie differently: " + described(a.packing, a.log_slots) + ", and " +
             described(b.packing, b.log_slots) +
             ". Encrypt both in one layout, or bring one into order first: natural()";
    });
    out.tiling = *tiling;
  }
  return out;
}

Packing merge(const Ciphertext& a, const Numbers& b) {
  const std::size_t la = length_of(a);
  require<InvalidArgument>(b.count() == la || b.count() == slots_of(a), [&] {
    return "the array has the length " + std::to_string(b.count()) + ", the ciphertext " +
           std::to_string(la) + " of " + std::to_string(slots_of(a)) +
           " slots: give an array of one of these two lengths, or a number";
  });
  require<InvalidArgument>(b.batch == 1 || b.batch == a.batch(), [&] {
    return "the array has " + std::to_string(b.batch) + " rows, the ciphertext a batch of " +
           std::to_string(a.batch()) + ": give one row, or one for each";
  });
  Packing out = a.packing;
  if (b.count() != la) {
    out.length = 0;
    out.tiling = {};
  }
  out.batched = a.packing.batched || b.batched;
  out.complex_values = a.packing.complex_values || b.complex_values;
  return out;
}

}  // namespace

std::size_t length_of(const Ciphertext& a) {
  return a.packing.length == 0 ? slots_of(a) : a.packing.length;
}

std::size_t length_of(const ProductSum& a) {
  return a.packing.length == 0 ? std::size_t{1} << a.log_slots() : a.packing.length;
}

bool is_batched(const Ciphertext& a) { return a.packing.batched || a.batch() > 1; }
bool is_batched(const ProductSum& a) { return a.packing.batched || a.batch() > 1; }

// --- how numbers lie -----------------------------------------------------------------------------

// If stride is window, (s / stride mod count) window + (s mod stride) is s mod (count window), and
// if count is 1, only s mod window is left: windows are then one window.
Tiling tiling_of(std::size_t first, std::size_t window, std::size_t stride, std::size_t count,
                 std::size_t slots) {
  require<InvalidArgument>(std::has_single_bit(window) && std::has_single_bit(stride) &&
                               std::has_single_bit(count) && window <= stride && stride <= slots &&
                               count <= slots / stride &&
                               first <= std::numeric_limits<std::uint32_t>::max(),
                           "a tiling needs powers of two, windows that fit their stride, and "
                           "strides that fit the slots");
  if (stride == window) window *= count, stride = window, count = 1;
  if (count == 1) stride = window;
  Tiling out{static_cast<std::uint32_t>(first), 0, 0, 0};
  if (window == slots) return out;
  out.window = static_cast<std::uint32_t>(window);
  out.stride = static_cast<std::uint32_t>(stride);
  out.count = static_cast<std::uint32_t>(count);
  return out;
}

Packing packing_of_tiling(std::size_t count, const Tiling& tiling, std::size_t slots) {
  Packing out;
  out.length = count == slots ? 0 : static_cast<std::uint32_t>(count);
  out.tiling = tiling;
  out.rest = 0;
  return settled(out);
}

bool is_possible(const Packing& a, int log_slots) {
  const std::size_t slots = std::size_t{1} << log_slots;
  const Tiling& t = a.tiling;
  if (a.length > slots) return false;
  if (a.view) return a.length == 0 && a.batched && t == Tiling{};  // is_within() says the rest
  if (t.window == 0) return t.stride == 0 && t.count == 0;
  return std::has_single_bit(t.window) && std::has_single_bit(t.stride) &&
         std::has_single_bit(t.count) && t.stride <= slots && t.count <= slots / t.stride &&
         (t.count == 1 ? t.stride == t.window && t.window < slots : t.stride > t.window) &&
         a.length >= 1 && a.length <= room(t);
}

bool is_in_order(const Packing& a) { return a.tiling.count <= 1; }

bool rest_is_zero(const Packing& a) { return a.rest == 0 || !has_rest(a); }

double rest_of(const Ciphertext& a) {
  return has_rest(a.packing) ? std::min(a.packing.rest, a.estimate.peak) : 0;
}

std::vector<std::uint32_t> numbers_in_slots(const Packing& a, std::size_t slots) {
  const Tiling& t = a.tiling;
  const std::size_t length = a.length == 0 ? slots : a.length;
  std::vector<std::uint32_t> out(slots, kNoNumber);
  for (std::size_t s = 0; s < slots; ++s) {
    const std::size_t number =
        t.window == 0 ? s : (s / t.stride % t.count * t.window + s % t.stride) % room(t);
    if (number < length) out[s] = static_cast<std::uint32_t>(number);
  }
  return out;
}

std::vector<std::complex<double>> to_slots(std::span<const std::complex<double>> numbers,
                                           std::size_t batch, const Packing& a, std::size_t slots) {
  const auto held = numbers_in_slots(a, slots);
  const std::size_t length = numbers.size() / batch;
  std::vector<std::complex<double>> out(batch * slots);
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t s = 0; s < slots; ++s) {
      if (held[s] != kNoNumber) out[b * slots + s] = numbers[b * length + held[s]];
    }
  }
  return out;
}

std::vector<std::complex<double>> from_slots(std::span<const std::complex<double>> values,
                                             std::size_t batch, const Packing& a) {
  const std::size_t slots = values.size() / batch;
  const std::size_t length = a.length == 0 ? slots : a.length;
  const auto held = numbers_in_slots(a, slots);
  std::vector<std::complex<double>> out(batch * length);
  for (std::size_t s = slots; s-- > 0;) {
    if (held[s] == kNoNumber) continue;
    for (std::size_t b = 0; b < batch; ++b) out[b * length + held[s]] = values[b * slots + s];
  }
  return out;
}

std::string described(const Packing& a, int log_slots) {
  const Tiling& t = a.tiling;
  const std::string slots = std::to_string(std::size_t{1} << log_slots);
  if (a.view) return "an array of several axes";
  if (a.length == 0) return "a number in each of " + slots + " slots";
  std::string out = std::to_string(a.length) + (a.length == 1 ? " number" : " numbers");
  if (t.window == 0) {
    out += " in the first of " + slots + " slots";
  } else if (t.count == 1) {
    out += a.length == 1 ? " that repeats" : " that repeat";
    out += " every " + std::to_string(t.window) + " slots";
  } else {
    out += " in " + std::to_string(t.count) + " windows of " + std::to_string(t.window) +
           " that begin every " + std::to_string(t.stride) + " slots";
  }
  if (t.first != 0) out += " (from number " + std::to_string(t.first) + " of a longer vector)";
  if (!has_rest(a)) return out;
  out += t.window == 0 ? ", behind them " : ", in the other slots ";
  return out + (a.rest == 0 ? "zeros" : "anything");
}

// --- what operations make of it ------------------------------------------------------------------

Packing packing_of_fresh(std::size_t count, int log_slots, bool batched, bool complex_values) {
  const std::size_t slots = std::size_t{1} << log_slots;
  require<InvalidArgument>(count <= slots, [&] {
    return "a vector of " + std::to_string(count) + " numbers does not fit " +
           std::to_string(slots) +
           " slots: spread it over several vectors (dense_view), or use a larger log_n";
  });
  Packing out;
  out.length = count == slots ? 0 : static_cast<std::uint32_t>(count);
  out.batched = batched;
  out.complex_values = complex_values;
  out.rest = 0;
  return settled(out);
}

Packing packing_of_sum(const Ciphertext& a, const Ciphertext& b) {
  Packing out = merge(a, b);
  out.rest = bounded(beside(out.tiling, a) + beside(out.tiling, b));
  return settled(out);
}

Packing packing_of_product(const Ciphertext& a, const Ciphertext& b) {
  Packing out = merge(a, b);
  out.rest = product_of(beside(out.tiling, a), beside(out.tiling, b));
  return settled(out);
}

Packing packing_of_sum(const Ciphertext& a, const Numbers& b) {
  Packing out = merge(a, b);
  if (out.view) out.rest = params::kUnbounded;  // b may hold a number in any slot
  return settled(out);
}

Packing packing_of_product(const Ciphertext& a, const Numbers& b) {
  Packing out = merge(a, b);
  // A row of b is zero in the other slots of a vector. In those of an array it may hold a number.
  out.rest = out.view && !rest_is_zero(a.packing) ? params::kUnbounded : 0;
  return settled(out);
}

Packing packing_of_sum(const Ciphertext& a, std::complex<double> b) {
  Packing out = a.packing;
  out.rest = bounded(rest_of(a) + std::abs(b));
  out.complex_values = a.packing.complex_values || b.imag() != 0;
  return settled(out);
}

Packing packing_of_product(const Ciphertext& a, std::complex<double> b) {
  Packing out = a.packing;
  out.rest = product_of(rest_of(a), std::abs(b));
  out.complex_values = a.packing.complex_values || b.imag() != 0;
  return settled(out);
}

Packing packing_of_each(const Packing& a, double of_zero) {
  Packing out = a;
  out.rest = rest_is_zero(a) ? of_zero : params::kUnbounded;
  return settled(out);
}

Packing packing_of_rotated(const Packing& a, std::int64_t steps, std::size_t slots) {
  const std::size_t every = a.tiling.window == 0 ? slots : period(a.tiling);
  return steps % static_cast<std::int64_t>(every) == 0 ? a : packing_of_neighbours(a);
}

// If slots s and s + p are equal for all s before, they are so afterwards. What is not known to be
// zero in other slots need not repeat.
Packing packing_of_neighbours(const Packing& a) {
  Packing out = packing_of_moved(a);
  if (is_in_order(a) && rest_is_zero(a)) out.tiling = a.tiling;
  out.tiling.first = 0;
  return out;
}

Packing packing_of_moved(const Packing& a) {
  Packing out = a;
  if (!is_in_order(a)) out.length = 0;
  out.tiling = {};
  out.rest = params::kUnbounded;
  out.view.reset();
  return out;
}

Packing packing_of_scaled(const Packing& a) {
  return a.tiling.window == 0 ? packing_of_each(a, 0) : packing_of_moved(a);
}

Packing packing_of_joined(const Ciphertext& a, const Ciphertext& b) {
  const auto tiling = common(a.packing, b.packing);
  Packing out;
  if (a.packing.length == b.packing.length && a.packing.view == b.packing.view &&
      a.log_slots == b.log_slots && tiling) {
    out.view = a.packing.view;
    out.length = a.packing.length;
    out.tiling = *tiling;
    if (beside(*tiling, a) == 0 && beside(*tiling, b) == 0) out.rest = 0;
  }
  out.batched = a.packing.batched || b.packing.batched;
  out.complex_values = a.packing.complex_values || b.packing.complex_values;
  return settled(out);
}

Packing packing_of_length(const Packing& a, std::size_t length, std::size_t slots) {
  require<InvalidArgument>(length >= 1 && length <= slots, [&] {
    return "length " + std::to_string(length) + " is outside 1 to " + std::to_string(slots);
  });
  Packing out = a;
  out.view.reset();
  out.length = length == slots ? 0 : static_cast<std::uint32_t>(length);
  const std::size_t before = a.length == 0 ? slots : a.length;
  // Only zeros are known to repeat with the numbers.
  const std::size_t most = a.tiling.window == 0 ? slots : rest_is_zero(a) ? room(a.tiling) : before;
  if (length > most) {
    require<InvalidArgument>(is_in_order(a) || length == slots, [&] {
      return "this vector in windows cannot become longer than " + std::to_string(most) +
             " numbers, and length " + std::to_string(length) +
             " was asked for: bring it into order first with natural(), or take all " +
             std::to_string(slots) + " slots as they are";
    });
    out.tiling = {};
    out.rest = params::kUnbounded;
    return out;
  }
  if (a.view || length < before) out.rest = params::kUnbounded;  // numbers lie behind the length
  return settled(out);
}

}  // namespace jali::ckks
