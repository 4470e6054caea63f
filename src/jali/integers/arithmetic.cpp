#include "jali/integers/arithmetic.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "jali/base/error.h"
#include "jali/integers/arrays.h"
#include "jali/integers/columns.h"

namespace jali::integers {
namespace {

/// Results of an operation have at most this noise, so that it is paid once and not by every operation that follows.
constexpr double output_noise = 4;
/// The ways to find carries that are compared: deep and few, or flat and many.
constexpr Carries carries_of[] = {{0}, {4}, {8}, {Carries::one_by_one}};
constexpr std::size_t ways = std::size(carries_of);
constexpr std::size_t plans_kept = 512;

std::string text(Wide number) {
  if (number < 0) return std::string("-").append(text(-number));
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(number % 10)));
    number /= 10;
  } while (number > 0);
  return digits;
}

std::string name(IntegerType type) {
  return (type.is_signed ? "signed integers of " : "unsigned integers of ") +
         std::to_string(type.bits) + " bits";
}

void check_type(IntegerType type) {
  require<InvalidArgument>(type.bits >= 1 && type.bits <= 64, [&] {
    return "integers have 1 to 64 bits, not " + std::to_string(type.bits);
  });
}

void check_values(std::span<const Wide> values, IntegerType type) {
  for (const Wide value : values) {
    require<InvalidArgument>(value >= 0 || type.is_signed, [&] {
      return "the clear value " + text(value) + " is negative, and the integers are unsigned: " +
             "encrypt them as signed, or give a value from 0 to " + text(type.highest());
    });
    require<InvalidArgument>(value >= type.lowest() && value <= type.highest(), [&] {
      return "the clear value " + text(value) + " is no number of " + name(type) +
             ", which go from " + text(type.lowest()) + " to " + text(type.highest()) +
             ": cast the integers to a wider type first";
    });
  }
}

void append(std::string& key, const void* data, std::size_t bytes) {
  key.append(static_cast<const char*>(data), bytes);
}

/// Integer i of a word that has the digits of several.
Word part(const Word& words, std::size_t i, IntegerType type, int m) {
  const auto n = static_cast<std::size_t>(type.digits(m));
  const auto first = words.digits.begin() + static_cast<std::ptrdiff_t>(i * n);
  return {type, {first, first + static_cast<std::ptrdiff_t>(n)}, {}};
}

Word bit(Form form) { return {boolean, {std::move(form)}, {}}; }

/// A number that is scaled by a clear weight, as the rows of a sum. If the weight is negative, then -w x =
/// w (2^bits - 1 - x) + w modulo 2^bits.
void add_scaled(Builder& b, Columns& columns, const Word& x, Wide weight, IntegerType type,
                Wide& constants) {
  const int m = b.m(), q = 1 << m;
  const auto n = static_cast<std::size_t>(type.digits(m));
  Word of = x;
  if (weight < 0) {
    for (std::size_t i = 0; i < of.size(); ++i) of[i] = -of[i] + (radix(x, i, b) - 1);
    constants += -weight;
    weight = -weight;
  }
  for (std::size_t j = 0; j < n && weight > 0; ++j, weight >>= m) {
    const int digit = static_cast<int>(weight & (q - 1));
    if (digit == 0) continue;
    for (std::size_t i = 0; i < of.size() && i + j < n; ++i) {
      Form low = b.look_up(of[i], [&](int v) { return v * digit % q; });
      columns[i + j].push_back(std::move(low));
      if (i + j + 1 < n) {
        columns[i + j + 1].push_back(b.look_up(of[i], [&](int v) { return v * digit / q; }));
      }
    }
  }
}

/// Batcher's merge exchange for any number of elements (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M): the
/// stages of pairs that are compared, the smaller to the first.
std::vector<std::vector<std::pair<std::size_t, std::size_t>>> sorting_network(std::size_t n) {
  std::vector<std::vector<std::pair<std::size_t, std::size_t>>> stages;
  if (n < 2) return stages;
  const std::size_t half = std::bit_ceil(n) / 2;
  for (std::size_t p = half; p > 0; p /= 2) {
    std::size_t q = half, r = 0, d = p;
    while (true) {
      std::vector<std::pair<std::size_t, std::size_t>> stage;
      for (std::size_t i = 0; i + d < n; ++i) {
        if ((i & p) == r) stage.emplace_back(i, i + d);
      }
      if (!stage.empty()) stages.push_back(std::move(stage));
      if (q == p) break;
      d = q - p;
      q /= 2;
      r = p;
    }
  }
  return stages;
}

}  // namespace

struct Arithmetic::Plan {
  std::vector<std::shared_ptr<const Circuit>> circuits;
  std::vector<IntegerType> outputs;
};

Arithmetic::Arithmetic(std::shared_ptr<const Machine> machine)
    : machine_(std::move(machine)), space_(validated(machine_->space())) {}

std::shared_ptr<const Arithmetic::Plan> Arithmetic::plan(std::string key,
                                                         std::span<const Input> inputs,
                                                         std::size_t candidates,
                                                         const Build& build) const {
  for (const Input& input : inputs) {
    const Clear* clear = input.value.clear();
    key += clear ? (clear->scalar ? 's' : 'v') : 'e';
    append(key, &input.type.bits, sizeof input.type.bits);
    key += input.type.is_signed ? '-' : '+';
    append(key, &input.length, sizeof input.length);
    if (clear && clear->scalar) append(key, clear->values.data(), sizeof(Wide));
    const double noise = clear ? 0 : input.value.encrypted()->noise();
    append(key, &noise, sizeof noise);
  }
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = plans_.find(key); at != plans_.end()) return at->second;
  }
  auto made = std::make_shared<Plan>();
  for (std::size_t candidate = 0; candidate < candidates; ++candidate) {
    Builder b(space_);
    Words words;
    for (const Input& input : inputs) {
      if (const Clear* clear = input.value.clear()) {
        if (clear->scalar) {
          words.push_back(constant(clear->values[0], input.type, b));
          continue;
        }
        Word word{input.type, {}, {}};
        for (const int largest : largest_digits(input.type, b.m())) {
          word.digits.push_back(b.clear(largest));
        }
        if (input.type.is_signed) word.turned_top = b.clear(word.digits.back().hi);
        words.push_back(std::move(word));
        continue;
      }
      std::vector<int> largest;
      for (std::size_t i = 0; i < input.length; ++i) {
        const std::vector<int> one = largest_digits(input.type, b.m());
        largest.insert(largest.end(), one.begin(), one.end());
      }
      words.push_back({input.type, b.operand(largest, input.value.encrypted()->noise()), {}});
    }
    const Words results = build(b, words, candidate);
    std::vector<Form> outputs;
    std::vector<int> largest;
    made->outputs.clear();
    for (const Word& result : results) {
      outputs.insert(outputs.end(), result.digits.begin(), result.digits.end());
      const std::vector<int> one = largest_digits(result.type, b.m());
      largest.insert(largest.end(), one.begin(), one.end());
      made->outputs.push_back(result.type);
    }
    made->circuits.push_back(b.finish(outputs, largest, output_noise));
  }
  const std::lock_guard lock(mutex_);
  if (plans_.size() >= plans_kept) plans_.clear();  // clear scalars make a plan for each value
  return plans_.emplace(std::move(key), std::move(made)).first->second;
}

std::vector<Integers> Arithmetic::run(std::string key, std::span<const Input> inputs,
                                      std::size_t candidates, const Build& build) const {
  std::size_t lanes = 1;
  for (const Input& input : inputs) {
    const Clear* clear = input.value.clear();
    if (clear) check_values(clear->values, input.type);
    const std::size_t count =
        clear ? clear->values.size() : input.value.encrypted()->count() / input.length;
    if (count == 1) continue;
    require<InvalidArgument>(lanes == 1 || lanes == count, [&] {
      return "the operands have " + std::to_string(lanes) + " and " + std::to_string(count) +
             " integers: give as many of each, or one";
    });
    lanes = count;
  }
  const std::shared_ptr<const Plan> found = plan(std::move(key), inputs, candidates, build);
  const Circuit* circuit = found->circuits[0].get();
  for (const auto& other : found->circuits) {
    if (other->time(lanes, space_.wave) < circuit->time(lanes, space_.wave)) circuit = other.get();
  }
  if (cost_) {
    cost_->look_ups += circuit->look_ups() * lanes;
    cost_->depth += circuit->depth();
  }

  std::vector<Operand> operands;
  std::vector<std::uint8_t> clear_digits(circuit->clear_digits * lanes);
  std::size_t offset = 0;
  for (const Input& input : inputs) {
    const Clear* clear = input.value.clear();
    if (!clear) {
      const Integers& x = *input.value.encrypted();
      operands.push_back({&x.rows(), x.count() == input.length});
      continue;
    }
    if (clear->scalar) continue;
    const auto n = static_cast<std::size_t>(input.type.digits(space_.message_bits));
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      std::uint8_t* digits = clear_digits.data() + lane * circuit->clear_digits + offset;
      split(clear->values[clear->values.size() == 1 ? 0 : lane], input.type, space_.message_bits,
            {digits, n});
      if (input.type.is_signed) {
        const int top = input.type.digit_bits(static_cast<int>(n) - 1, space_.message_bits);
        digits[n] = static_cast<std::uint8_t>(digits[n - 1] ^ (1 << (top - 1)));
      }
    }
    offset += n + (input.type.is_signed ? 1 : 0);
  }
  std::shared_ptr<const Rows> rows = machine_->run(*circuit, {operands, clear_digits, lanes});
  const double noise = std::max(1.0, circuit->output_noise);
  if (found->outputs.size() == 1) return {Integers(found->outputs[0], lanes, rows, noise)};
  std::vector<std::size_t> all(lanes);
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<Integers> out;
  offset = 0;
  for (const IntegerType type : found->outputs) {
    out.push_back(gathered(*rows, noise, type, circuit->outputs.rows(), offset, all));
    offset += static_cast<std::size_t>(type.digits(space_.message_bits));
  }
  return out;
}

Integers Arithmetic::run_one(
    std::string key, std::initializer_list<Input> inputs, std::size_t candidates,
    const std::function<Word(Builder&, const Words&, std::size_t)>& build) const {
  return run(std::move(key), {inputs.begin(), inputs.size()}, candidates,
             [&](Builder& b, const Words& words, std::size_t candidate) {
               return Words{build(b, words, candidate)};
             })[0];
}

Arithmetic::Flagged Arithmetic::run_two(std::string key, std::initializer_list<Input> inputs,
                                        std::size_t candidates, const Build& build) const {
  std::vector<Integers> out =
      run(std::move(key), {inputs.begin(), inputs.size()}, candidates, build);
  return {std::move(out[0]), std::move(out[1])};
}

IntegerType Arithmetic::common_type(const Value& x, const Value& y) const {
  const Integers *u = x.encrypted(), *v = y.encrypted();
  require<InvalidArgument>(u || v,
                           "both operands are clear: encrypt one of them, or compute in the clear");
  if (u && v) {
    require<InvalidArgument>(u->type() == v->type(), [&] {
      return "the operands are " + name(u->type()) + " and " + name(v->type()) +
             ": cast one of them to the type of the other first";
    });
  }
  const IntegerType type = u ? u->type() : v->type();
  check_type(type);
  return type;
}

Integers Arithmetic::gathered(const Rows& rows, double noise, IntegerType type, std::size_t stride,
                              std::size_t offset, std::span<const std::size_t> indices) const {
  const auto n = static_cast<std::size_t>(type.digits(space_.message_bits));
  std::vector<std::uint32_t> which;
  which.reserve(indices.size() * n);
  for (const std::size_t index : indices) {
    for (std::size_t j = 0; j < n; ++j) {
      which.push_back(static_cast<std::uint32_t>(index * stride + offset + j));
    }
  }
  return {type, indices.size(), machine_->gather(rows, which), noise};
}

Integers Arithmetic::take(const Integers& x, std::span<const std::size_t> indices) const {
  for (const std::size_t index : indices) {
    require<InvalidArgument>(index < x.count(), [&] {
      return "the index " + std::to_string(index) + " is beyond the " + std::to_string(x.count()) +
             " integers: give indices from 0 on";
    });
  }
  const auto n = static_cast<std::size_t>(x.type().digits(space_.message_bits));
  return gathered(x.rows(), x.noise(), x.type(), n, 0, indices);
}

/// The integers of x, then those of y.
Integers Arithmetic::after(const Integers& x, const Integers& y) const {
  const auto n = static_cast<std::size_t>(x.type().digits(space_.message_bits));
  std::shared_ptr<Rows> rows = machine_->allocate((x.count() + y.count()) * n);
  if (x.count()) machine_->copy(*rows, 0, x.rows(), 0, x.count() * n);
  if (y.count()) machine_->copy(*rows, x.count() * n, y.rows(), 0, y.count() * n);
  return {x.type(), x.count() + y.count(), rows, std::max(x.noise(), y.noise())};
}

std::size_t Arithmetic::rows_of(const Integers& x, std::size_t length) const {
  require<InvalidArgument>(length > 0 && x.count() % length == 0, [&] {
    return std::to_string(x.count()) + " integers are no rows of " + std::to_string(length) +
           ": give a length that divides their number";
  });
  return x.count() / length;
}

Integers Arithmetic::trivial(std::span<const Wide> values, IntegerType type) const {
  check_type(type);
  check_values(values, type);
  const auto n = static_cast<std::size_t>(type.digits(space_.message_bits));
  std::vector<std::uint8_t> digits(n);
  std::vector<std::int64_t> constants;
  for (const Wide value : values) {
    split(value, type, space_.message_bits, digits);
    constants.insert(constants.end(), digits.begin(), digits.end());
  }
  const std::vector<std::uint32_t> begin(constants.size() + 1, 0);
  const auto nothing = machine_->allocate(0);
  std::shared_ptr<Rows> rows = machine_->allocate(constants.size());
  if (!constants.empty()) machine_->combine(*rows, 0, *nothing, {begin, {}, {}, constants});
  return {type, values.size(), rows, 1};
}

// --- sums and products ----------------------------------------------------------------------------

Integers Arithmetic::add(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_one("add", {{x, type}, {y, type}}, ways,
                 [](Builder& b, const Words& w, std::size_t c) -> Word {
                   return {w[0].type, integers::add(b, w[0], w[1], carries_of[c]).digits, {}};
                 });
}

Integers Arithmetic::subtract(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_one("subtract", {{x, type}, {y, type}}, ways,
                 [](Builder& b, const Words& w, std::size_t c) -> Word {
                   return {w[0].type, integers::subtract(b, w[0], w[1], carries_of[c]).digits, {}};
                 });
}

Integers Arithmetic::negate(const Integers& x) const { return subtract(Clear(0), x); }

Integers Arithmetic::multiply(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  if (!x.encrypted()) std::swap(x, y);
  const bool scalar = y.clear() && y.clear()->scalar;
  if (scalar) {
    const Wide weight = y.clear()->values[0];
    return run_one("scale", {{x, type}, {y, type}}, ways,
                   [&](Builder& b, const Words& w, std::size_t c) {
                     Columns columns(w[0].size());
                     Wide constants = 0;
                     // The sign that has fewer digits that are not 0.
                     Wide other = weight - (Wide{1} << type.bits);
                     const auto digits = [&](Wide v) {
                       int count = 0;
                       for (Wide u = v < 0 ? -v : v; u > 0; u >>= b.m()) {
                         count += (u & ((1 << b.m()) - 1)) != 0;
                       }
                       return count;
                     };
                     if (weight < 0) other = weight + (Wide{1} << type.bits);
                     const Wide best = digits(other) < digits(weight) ? other : weight;
                     add_scaled(b, columns, w[0], best, type, constants);
                     const Word rest = constant(constants, type, b);
                     for (std::size_t k = 0; k < rest.size(); ++k) columns[k].push_back(rest[k]);
                     return sum_of_columns(b, std::move(columns), type, carries_of[c]);
                   });
  }
  const bool squares = !y.clear() && space_.message_bits >= 2 && space_.max_log_many >= 1;
  return run_one("multiply", {{x, type}, {y, type}}, squares ? 3 : 2,
                 [](Builder& b, const Words& w, std::size_t c) {
                   if (c == 2) return multiply_by_squares(b, w[0], w[1], w[0].type);
                   const Carries how{c ? Carries::one_by_one : 0};
                   return integers::multiply(b, w[0], w[1], w[0].type, how);
                 });
}

namespace {

/// Whether the sign of a sum differs from two equal signs: s_x + s_y + (1 - s) is 0 or 3. turn: 1 if y is subtracted.
Form sign_overflow(Builder& b, const Word& x, const Word& y, const Word& sum, bool turn) {
  const int half = radix(y, y.size() - 1, b) / 2;
  const Form of_y = b.look_up(y.digits.back(), [&](int v) { return (v >= half) != turn; });
  return b.look_up(sign_of(b, x) + of_y - sign_of(b, sum) + 1,
                   [](int v) { return v == 0 || v == 3 ? 1 : 0; });
}

}  // namespace

Arithmetic::Flagged Arithmetic::add_overflow(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_two("add overflow", {{x, type}, {y, type}}, ways,
                 [](Builder& b, const Words& w, std::size_t c) -> Words {
                   Sum sum = integers::add(b, w[0], w[1], carries_of[c]);
                   Word word{w[0].type, std::move(sum.digits), {}};
                   if (!w[0].type.is_signed) return {word, bit(sum.carry)};
                   const Form flag = sign_overflow(b, w[0], w[1], word, false);
                   return {word, bit(flag)};
                 });
}

Arithmetic::Flagged Arithmetic::subtract_overflow(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_two("subtract overflow", {{x, type}, {y, type}}, ways,
                 [](Builder& b, const Words& w, std::size_t c) -> Words {
                   Sum sum = integers::subtract(b, w[0], w[1], carries_of[c]);
                   Word word{w[0].type, std::move(sum.digits), {}};
                   if (!w[0].type.is_signed) return {word, bit(-sum.carry + 1)};
                   const Form flag = sign_overflow(b, w[0], w[1], word, true);
                   return {word, bit(flag)};
                 });
}

Arithmetic::Flagged Arithmetic::multiply_overflow(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  // The signs of clear vectors would be looked up; an encryption that hides nothing does as well.
  if (x.clear() && !x.clear()->scalar) {
    check_values(x.clear()->values, type);
    return multiply_overflow(trivial(x.clear()->values, type), y);
  }
  if (y.clear() && !y.clear()->scalar) {
    check_values(y.clear()->values, type);
    return multiply_overflow(x, trivial(y.clear()->values, type));
  }
  return run_two(
      "multiply overflow", {{x, type}, {y, type}}, 2,
      [](Builder& b, const Words& w, std::size_t c) -> Words {
        const Carries how{c ? Carries::one_by_one : 0};
        const IntegerType size{w[0].type.bits, false};
        Word u = w[0], v = w[1];
        Form differ;
        if (w[0].type.is_signed) {
          const Form s = sign_of(b, w[0]), t = sign_of(b, w[1]);
          u = {size, negate_if(b, w[0], s, how).digits, {}};
          v = {size, negate_if(b, w[1], t, how).digits, {}};
          differ = b.look_up_two(s, t, [](int f, int g) { return f != g ? 1 : 0; });
        }
        std::vector<Form> lost;
        const Word product = integers::multiply(b, u, v, size, how, &lost);
        const Form beyond = product_overflows(b, u, v, lost);
        if (!w[0].type.is_signed) return {product, bit(beyond)};
        // -2^(bits-1) is a number of the type, and 2^(bits-1) is none.
        std::vector<Form> rest;
        const std::size_t top = product.size() - 1;
        const int half = radix(product, top, b) / 2;
        for (std::size_t i = 0; i < top; ++i) {
          rest.push_back(b.look_up(product[i], [](int d) { return d != 0 ? 1 : 0; }));
        }
        rest.push_back(b.look_up(product[top], [half](int d) { return d % half != 0 ? 1 : 0; }));
        const Form exact =
            b.look_up_two(none(b, std::move(rest)), differ, [](int z, int d) { return z & d; });
        const Form above =
            b.look_up_two(sign_of(b, product), exact, [](int s, int e) { return s & (1 - e); });
        const Form flag = b.look_up_two(above, beyond, [](int f, int g) { return f | g; });
        return {{w[0].type, negate_if(b, product, differ, how).digits, {}}, bit(flag)};
      });
}

std::pair<Integers, Integers> Arithmetic::divide(Value x, Value y, Rounding rounding) const {
  const IntegerType type = common_type(x, y);
  if (x.clear() && !x.clear()->scalar) {
    check_values(x.clear()->values, type);
    return divide(trivial(x.clear()->values, type), y, rounding);
  }
  const std::string key = rounding == Rounding::floor ? "divide floor" : "divide truncate";
  const Clear* divisor = y.clear();
  if (divisor && divisor->scalar && !type.is_signed && divisor->values[0] > 0) {
    check_values(divisor->values, type);
    const Wide by = divisor->values[0];
    return run_two("divide constant", {{x, type}, {y, type}}, 2,
                   [&](Builder& b, const Words& w, std::size_t c) -> Words {
                     Quotient out = divide_by_constant(b, w[0], by, {c ? Carries::one_by_one : 0});
                     return {std::move(out.quotient), std::move(out.remainder)};
                   });
  }
  if (divisor && type.is_signed && !divisor->scalar) {
    check_values(divisor->values, type);
    return divide(x, trivial(divisor->values, type), rounding);
  }
  // The multiples of clear divisors are clear.
  const int m = space_.message_bits;
  const IntegerType wide{(type.digits(m) + 1) * m, false};
  std::vector<Clear> multiples;
  std::vector<Input> inputs{{x, type}, {y, type}};
  if (divisor) {
    check_values(divisor->values, type);
    for (int k = 1; k < 1 << m; ++k) {
      Clear multiple = *divisor;
      for (Wide& value : multiple.values) value = k * (value < 0 ? -value : value);
      multiples.push_back(std::move(multiple));
    }
    for (const Clear& multiple : multiples) inputs.push_back({multiple, wide});
  }
  std::vector<Integers> out =
      run(key, inputs, 2, [&](Builder& b, const Words& w, std::size_t c) -> Words {
        const Division how{c == 1, {c ? Carries::one_by_one : 0}};
        Quotient quotient = integers::divide(b, w[0], w[1], std::span(w).subspan(2), rounding, how);
        return {std::move(quotient.quotient), std::move(quotient.remainder)};
      });
  return {std::move(out[0]), std::move(out[1])};
}

// --- bits -----------------------------------------------------------------------------------------

Integers Arithmetic::bit_and(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_one("and", {{x, type}, {y, type}}, 1, [](Builder& b, const Words& w, std::size_t) {
    return bitwise(b, w[0], w[1], [](int u, int v) { return u & v; });
  });
}

Integers Arithmetic::bit_or(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_one("or", {{x, type}, {y, type}}, 1, [](Builder& b, const Words& w, std::size_t) {
    return bitwise(b, w[0], w[1], [](int u, int v) { return u | v; });
  });
}

Integers Arithmetic::bit_xor(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_one("xor", {{x, type}, {y, type}}, 1, [](Builder& b, const Words& w, std::size_t) {
    return bitwise(b, w[0], w[1], [](int u, int v) { return u ^ v; });
  });
}

Integers Arithmetic::bit_not(const Integers& x) const {
  check_type(x.type());
  return run_one("not", {{x, x.type()}}, 1, [](Builder& b, const Words& w, std::size_t) {
    Word out = w[0];
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = -out[i] + (radix(out, i, b) - 1);
    return out;
  });
}

Integers Arithmetic::move(Move move, const Integers& x, Value amount) const {
  check_type(x.type());
  std::string key = "move";
  key += static_cast<char>('0' + static_cast<int>(move));
  if (const Integers* by = amount.encrypted()) {
    require<InvalidArgument>(!by->type().is_signed,
                             "amounts of shifts and rotations are unsigned: cast them first");
    return run_one(key, {{x, x.type()}, {*by, by->type()}}, 1,
                   [move](Builder& b, const Words& w, std::size_t) {
                     return moved_by(b, w[0], move, bits_of(b, w[1]));
                   });
  }
  const Clear& by = *amount.clear();
  const bool rotates = move == Move::rotate_left || move == Move::rotate_right;
  std::vector<Wide> amounts;
  for (const Wide value : by.values) {
    require<InvalidArgument>(value >= 0, [&] {
      return "the amount " + text(value) + " is negative: move by " + text(-value) +
             " in the other direction";
    });
    amounts.push_back(rotates ? value % x.type().bits : std::min(value, Wide{x.type().bits}));
  }
  if (by.scalar) {
    const int places = static_cast<int>(amounts[0]);
    return run_one(key + "by" + std::to_string(places), {{x, x.type()}}, 1,
                   [&](Builder& b, const Words& w, std::size_t) {
                     return moved(b, w[0], w[0].type, bits_from(w[0].type, move, places));
                   });
  }
  if (x.type().bits % space_.message_bits == 0) return moved_each(move, x, amounts);
  // One clear digit for each bit of the amount.
  std::vector<Clear> bits;
  std::vector<Input> inputs{{x, x.type()}};
  const int count = static_cast<int>(std::bit_width(static_cast<unsigned>(x.type().bits)));
  for (int i = 0; i < count; ++i) {
    std::vector<Wide> of;
    for (const Wide value : amounts) of.push_back(value >> i & 1);
    bits.push_back(Clear(std::move(of)));
  }
  for (const Clear& bit : bits) inputs.push_back({bit, boolean});
  return run(key + "each", inputs, 1, [move](Builder& b, const Words& w, std::size_t) {
    std::vector<Form> flags;
    for (std::size_t i = 1; i < w.size(); ++i) flags.push_back(w[i][0]);
    return Words{moved_by(b, w[0], move, flags)};
  })[0];
}

Integers Arithmetic::moved_each(Move move, const Integers& x, std::span<const Wide> amounts) const {
  // An amount is d digits and r bits. First the digits are gathered, with one more below (to the left) or above (to the
  // right), then one look-up of two neighbours moves the bits.
  const int m = space_.message_bits, q = 1 << m;
  const bool left = move == Move::left || move == Move::rotate_left;
  const bool rotates = move == Move::rotate_left || move == Move::rotate_right;
  const auto n = static_cast<std::size_t>(x.type().digits(m));
  const std::size_t lanes = x.count() == 1 ? amounts.size() : x.count();
  require<InvalidArgument>(amounts.size() == lanes || amounts.size() == 1, [&] {
    return "there are " + std::to_string(x.count()) + " integers and " +
           std::to_string(amounts.size()) + " amounts: give as many of each, or one";
  });
  std::shared_ptr<const Rows> from;
  const bool by_sign = move == Move::right && x.type().is_signed;
  if (by_sign) {  // what comes in from the left, after the integers
    const Integers sign = run_one(
        "sign digit", {{x, x.type()}}, 1, [&](Builder& b, const Words& w, std::size_t) -> Word {
          return {{m, false},
                  {b.look_up(w[0].digits.back(), [&](int v) { return v >= q / 2 ? q - 1 : 0; })},
                  {}};
        });
    auto rows = machine_->allocate(x.count() * (n + 1));
    if (x.count()) {
      machine_->copy(*rows, 0, x.rows(), 0, x.count() * n);
      machine_->copy(*rows, x.count() * n, sign.rows(), 0, x.count());
    }
    from = std::move(rows);
  }
  std::vector<std::uint32_t> which;
  std::vector<Wide> bits;
  which.reserve(lanes * (n + 1));
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const auto amount = static_cast<std::int64_t>(amounts[amounts.size() == 1 ? 0 : lane]);
    const auto digits = static_cast<std::int64_t>(n), by = amount / m;
    const std::size_t of = x.count() == 1 ? 0 : lane;
    bits.push_back(amount % m);
    for (std::int64_t i = 0; i <= digits; ++i) {
      std::int64_t source = left ? i - 1 - by : i + by;
      if (rotates) source = ((source % digits) + digits) % digits;
      if (source >= 0 && source < digits) {
        which.push_back(static_cast<std::uint32_t>(of * n + static_cast<std::size_t>(source)));
      } else {
        which.push_back(by_sign ? static_cast<std::uint32_t>(x.count() * n + of) : Machine::none);
      }
    }
  }
  const IntegerType longer{x.type().bits + m, false};
  const std::size_t count = which.size() / (n + 1);
  const Integers gathered(longer, count, machine_->gather(by_sign ? *from : x.rows(), which),
                          x.noise());
  const IntegerType of_bits{
      std::max(1, static_cast<int>(std::bit_width(static_cast<unsigned>(m - 1)))), false};
  const Clear each{std::move(bits)};
  std::string key = left ? "bits left" : "bits right";
  key += std::to_string(x.type().bits);
  key += x.type().is_signed ? '-' : '+';
  return run_one(
      key, {{gathered, longer}, {each, of_bits}}, 1, [&](Builder& b, const Words& w, std::size_t) {
        Word out{x.type(), {}, {}};
        for (std::size_t i = 0; i < n; ++i) {
          if (m == 1) {  // an amount is digits alone
            out.digits.push_back(w[0][left ? i + 1 : i]);
            continue;
          }
          out.digits.push_back(
              b.look_up_keyed(w[0][i] + w[0][i + 1] * q, w[1][0], [&](int v, int r) {
                return left ? v << std::min(r, m) >> m & (q - 1) : v >> std::min(r, m) & (q - 1);
              }));
        }
        return out;
      });
}

Integers Arithmetic::cast(const Integers& x, IntegerType type) const {
  check_type(x.type());
  check_type(type);
  if (x.type() == type) return x;
  std::string key = "cast";
  append(key, &type.bits, sizeof type.bits);
  key += type.is_signed ? '-' : '+';
  return run_one(key, {{x, x.type()}}, 1, [type](Builder& b, const Words& w, std::size_t) {
    return integers::cast(b, w[0], type);
  });
}

namespace {

constexpr IntegerType byte{8, false};

}  // namespace

Integers Arithmetic::leading_zeros(const Integers& x) const {
  check_type(x.type());
  return run_one("leading", {{x, x.type()}}, 2, [](Builder& b, const Words& w, std::size_t c) {
    return zeros(b, w[0], false, -1, byte, {c ? Carries::one_by_one : 0});
  });
}

Integers Arithmetic::trailing_zeros(const Integers& x) const {
  check_type(x.type());
  return run_one("trailing", {{x, x.type()}}, 2, [](Builder& b, const Words& w, std::size_t c) {
    return zeros(b, w[0], true, -1, byte, {c ? Carries::one_by_one : 0});
  });
}

Integers Arithmetic::ilog2(const Integers& x) const {
  check_type(x.type());
  return run_one("ilog2", {{x, x.type()}}, 2, [](Builder& b, const Words& w, std::size_t c) {
    return zeros(b, w[0], false, w[0].type.bits - 1, byte, {c ? Carries::one_by_one : 0});
  });
}

// --- comparisons ----------------------------------------------------------------------------------

Integers Arithmetic::compare(Comparison how, Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  std::string key = "compare";
  key += static_cast<char>('0' + static_cast<int>(how));
  return run_one(key, {{x, type}, {y, type}}, 1, [how](Builder& b, const Words& w, std::size_t) {
    switch (how) {
      case Comparison::equal: return bit(is_equal(b, w[0], w[1]));
      case Comparison::not_equal: return bit(-is_equal(b, w[0], w[1]) + 1);
      case Comparison::less: return bit(is_less(b, w[0], w[1], false));
      case Comparison::less_equal: return bit(is_less(b, w[0], w[1], true));
      case Comparison::greater: return bit(is_less(b, w[1], w[0], false));
      case Comparison::greater_equal: break;
    }
    return bit(is_less(b, w[1], w[0], true));
  });
}

Integers Arithmetic::minimum(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_one("minimum", {{x, type}, {y, type}}, 1, [](Builder& b, const Words& w, std::size_t) {
    return integers::select(b, is_less(b, w[0], w[1], true), w[0], w[1]);
  });
}

Integers Arithmetic::maximum(Value x, Value y) const {
  const IntegerType type = common_type(x, y);
  return run_one("maximum", {{x, type}, {y, type}}, 1, [](Builder& b, const Words& w, std::size_t) {
    return integers::select(b, is_less(b, w[0], w[1], true), w[1], w[0]);
  });
}

Integers Arithmetic::select(const Integers& flag, Value x, Value y) const {
  require<InvalidArgument>(flag.type() == boolean, [&] {
    return "a choice needs a flag of one bit, not " + name(flag.type()) +
           ": compare them with a number first";
  });
  const IntegerType type = common_type(x, y);
  return run_one("select", {{flag, boolean}, {x, type}, {y, type}}, 1,
                 [](Builder& b, const Words& w, std::size_t) {
                   return integers::select(b, w[0][0], w[1], w[2]);
                 });
}

// --- rows of integers -----------------------------------------------------------------------------

Integers Arithmetic::dot(const Integers& x, std::span<const Wide> weights, IntegerType type) const {
  check_type(x.type());
  check_type(type);
  const std::size_t length = weights.size();
  rows_of(x, length);
  const Wide bound = Wide{1} << type.bits;
  for (const Wide weight : weights) {
    require<InvalidArgument>(weight > -bound && weight < bound, [&] {
      return "the weight " + text(weight) + " has more bits than the sum: give a wider type";
    });
  }
  std::string key = "dot";
  append(key, &type.bits, sizeof type.bits);
  key += type.is_signed ? '-' : '+';
  append(key, weights.data(), weights.size_bytes());
  return run_one(key, {{x, x.type(), length}}, 2, [&](Builder& b, const Words& w, std::size_t c) {
    Columns columns(static_cast<std::size_t>(type.digits(b.m())));
    Wide constants = 0;
    for (std::size_t i = 0; i < length; ++i) {
      const Word one = part(w[0], i, x.type(), b.m());
      add_scaled(b, columns, integers::cast(b, one, type), weights[i], type, constants);
    }
    const Word rest = constant(constants, type, b);
    for (std::size_t k = 0; k < rest.size(); ++k) columns[k].push_back(rest[k]);
    return sum_of_columns(b, std::move(columns), type, {c ? Carries::one_by_one : 0});
  });
}

Integers Arithmetic::sum(const Integers& x, std::size_t length, IntegerType type) const {
  rows_of(x, length);
  const std::vector<Wide> ones(length, 1);
  return dot(x, ones, type);
}

Integers Arithmetic::sort(const Integers& x, std::size_t length, bool descending) const {
  check_type(x.type());
  const std::size_t rows = rows_of(x, length);
  const auto n = static_cast<std::size_t>(x.type().digits(space_.message_bits));
  Integers now = x;
  for (const auto& stage : sorting_network(length)) {
    std::vector<std::size_t> first, second, place(x.count());
    std::iota(place.begin(), place.end(), std::size_t{0});
    for (std::size_t row = 0; row < rows; ++row) {
      for (const auto& [i, j] : stage) {
        place[row * length + i] = x.count() + first.size();
        first.push_back(row * length + i);
        second.push_back(row * length + j);
      }
    }
    for (std::size_t k = 0; k < second.size(); ++k) {
      place[second[k]] = x.count() + first.size() + k;
    }
    const Flagged pair = run_two(
        "exchange", {{take(now, first), x.type()}, {take(now, second), x.type()}}, 1,
        [](Builder& b, const Words& w, std::size_t) -> Words {
          const Form less = is_less(b, w[0], w[1], true);
          return {integers::select(b, less, w[0], w[1]), integers::select(b, less, w[1], w[0])};
        });
    const Integers all =
        after(now, descending ? after(pair.second, pair.first) : after(pair.first, pair.second));
    now = gathered(all.rows(), all.noise(), x.type(), n, 0, place);
  }
  return now;
}

std::pair<Integers, Integers> Arithmetic::extreme(const Integers& x, std::size_t length,
                                                  bool largest) const {
  check_type(x.type());
  const std::size_t rows = rows_of(x, length);
  const IntegerType of_index{std::max(1, static_cast<int>(std::bit_width(length - 1))), false};
  std::vector<Wide> indices(x.count());
  for (std::size_t i = 0; i < x.count(); ++i) indices[i] = static_cast<Wide>(i % length);
  Integers now = x, where = trivial(indices, of_index);
  for (std::size_t left = length; left > 1; left = (left + 1) / 2) {
    // Entry 2 i against entry 2 i + 1; a last one without a partner goes on.
    std::vector<std::size_t> first, second;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < left / 2; ++i) {
        first.push_back(row * left + 2 * i);
        second.push_back(row * left + 2 * i + 1);
      }
    }
    const Flagged best = run_two(
        largest ? "larger" : "smaller",
        {{take(now, first), x.type()},
         {take(now, second), x.type()},
         {take(where, first), of_index},
         {take(where, second), of_index}},
        1, [&](Builder& b, const Words& w, std::size_t) -> Words {
          const Form keep = largest ? is_less(b, w[1], w[0], true) : is_less(b, w[0], w[1], true);
          return {integers::select(b, keep, w[0], w[1]), integers::select(b, keep, w[2], w[3])};
        });
    std::vector<std::size_t> order;
    const std::size_t pairs = left / 2;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = 0; i < pairs; ++i) order.push_back(x.count() + row * pairs + i);
      if (left % 2) order.push_back(row * left + left - 1);
    }
    // The old entries come first in what is gathered from.
    for (std::size_t& index : order) {
      if (index >= x.count()) index = index - x.count() + now.count();
    }
    now = take(after(now, best.first), order);
    where = take(after(where, best.second), order);
  }
  return {now, where};
}

Integers Arithmetic::read(std::span<const Wide> table, IntegerType type,
                          const Integers& index) const {
  check_type(type);
  check_values(table, type);
  require<InvalidArgument>(!index.type().is_signed, "an index is unsigned: cast it first");
  require<InvalidArgument>(!table.empty(), "an array has at least one entry");
  std::string key = "read clear";
  append(key, &type.bits, sizeof type.bits);
  key += type.is_signed ? '-' : '+';
  append(key, table.data(), table.size_bytes());
  return run_one(key, {{index, index.type()}}, 1, [&](Builder& b, const Words& w, std::size_t) {
    return integers::read(b, w[0], table, type);
  });
}

Integers Arithmetic::read(const Integers& table, const Integers& index) const {
  require<InvalidArgument>(!index.type().is_signed, "an index is unsigned: cast it first");
  require<InvalidArgument>(table.count() > 0, "an array has at least one entry");
  check_type(table.type());
  return run_one("read", {{table, table.type(), table.count()}, {index, index.type()}}, 1,
                 [&](Builder& b, const Words& w, std::size_t) {
                   Words entries;
                   for (std::size_t i = 0; i < table.count(); ++i) {
                     entries.push_back(part(w[0], i, table.type(), b.m()));
                   }
                   return integers::read(b, w[1], entries);
                 });
}

Arithmetic::Cost Arithmetic::cost_of(
    const std::function<void(const Arithmetic&)>& operation) const {
  Cost cost;
  Arithmetic counting(machine_);
  counting.cost_ = &cost;
  operation(counting);
  return cost;
}

}  // namespace jali::integers
