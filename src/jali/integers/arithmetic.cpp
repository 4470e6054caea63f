#include "jali/integers/arithmetic.h"

#include <algorithm>
#include <numeric>

#include "jali/base/error.h"
#include "jali/integers/operations/operation.h"

namespace jali::integers {
namespace {

/// Results of an operation have at most this noise, so that it is paid once and not by every
/// operation that follows.
constexpr double output_noise = 4;
constexpr std::size_t plans_kept = 512;

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
    append(key, input.type);
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

Arithmetic::Cost Arithmetic::cost_of(
    const std::function<void(const Arithmetic&)>& operation) const {
  Cost cost;
  Arithmetic counting(machine_);
  counting.cost_ = &cost;
  operation(counting);
  return cost;
}

}  // namespace jali::integers
