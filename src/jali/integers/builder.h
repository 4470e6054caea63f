// Builds a circuit from linear forms and look-ups, and holds it to the limits of the space.
//
// What a builder does by itself, so that algorithms need not:
//   Waves. A look-up runs in the first wave in which its inputs are there.
//   Several tables on one rotation. Look-ups of the same form share rotations, as many as the range of the form allows.
//   Noise. If a form has more noise than the budget, its term with the most noise is replaced by a look-up that gives the
//   scaled digit directly. If the digit came from a look-up, then that is one more table there, in the same wave.
//   Folding. Look-ups of constants, of the identity, of the same form with the same table, and look-ups that no output
//   needs, do not happen.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "jali/integers/circuit.h"

namespace jali::integers {

/// A sum of weight * digit plus a constant, which is known to lie in [lo, hi].
struct Form {
  struct Term {
    std::uint32_t source = 0;
    std::int32_t weight = 0;
    friend bool operator==(const Term&, const Term&) = default;
  };
  std::vector<Term> terms;  // by ascending source, no weight is 0
  std::int32_t constant = 0;
  std::int32_t lo = 0, hi = 0;

  Form() = default;
  Form(std::int32_t number) : constant(number), lo(number), hi(number) {}
  bool is_constant() const { return terms.empty(); }
  /// The same form, of which the caller knows more than its terms say.
  Form within(std::int32_t low, std::int32_t high) const;

  Form& operator+=(const Form& other);
  Form& operator*=(std::int32_t factor);
  friend Form operator+(Form a, const Form& b) { return a += b; }
  friend Form operator*(Form a, std::int32_t factor) { return a *= factor; }
  friend Form operator-(Form a) { return a *= -1; }
  friend Form operator-(Form a, const Form& b) { return a += b * -1; }
};

class Builder {
 public:
  explicit Builder(const Space& space);

  const Space& space() const { return space_; }
  int m() const { return space_.message_bits; }
  int p() const { return space_.bits(); }
  int top() const { return space_.size() - 1; }  // the largest number of a digit

  /// The digits of one more operand; digit i is at most largest[i].
  std::vector<Form> operand(std::span<const int> largest, double noise);
  /// One more clear digit of each lane, at most `largest`.
  Form clear(int largest);
  /// Whether a form has clear digits and no encrypted ones. True for constants.
  bool is_clear(const Form& form) const;

  /// f(x). f: int -> int, on [x.lo, x.hi], which has at most 2^p numbers. So have its values, first to last.
  template <class F>
  Form look_up(const Form& x, const F& f) {
    std::array<std::int32_t, 256> values{};
    check_range(x);
    for (int v = x.lo; v <= x.hi; ++v) values[static_cast<std::size_t>(v - x.lo)] = f(v);
    return look_up_values(x, values.data(), nullptr, false);
  }
  /// f(x, y) of a message x and a digit y of the same space: a look-up of x + 2^m y, or, if y is clear, of x alone.
  template <class F>
  Form look_up_two(const Form& x, const Form& y, const F& f) {
    if (x.is_constant()) return look_up(y, [&](int b) { return f(x.constant, b); });
    if (is_clear(x)) return look_up_keyed(y, x, [&](int b, int a) { return f(a, b); });
    if (y.is_constant()) return look_up(x, [&](int a) { return f(a, y.constant); });
    if (is_clear(y)) return look_up_keyed(x, y, f);
    const int span = x.hi - x.lo + 1;
    return look_up(packed(x, y, span), [&](int v) { return f(v % span + x.lo, v / span + y.lo); });
  }
  /// f(x, key), where key is clear and differs from lane to lane.
  template <class F>
  Form look_up_keyed(const Form& x, const Form& key, const F& f) {
    if (key.is_constant()) return look_up(x, [&](int v) { return f(v, key.constant); });
    check_range(x);
    check_range(key);
    const auto size = static_cast<std::size_t>(x.hi - x.lo + 1);
    std::vector<std::int32_t> values;
    values.reserve(size * static_cast<std::size_t>(key.hi - key.lo + 1));
    for (int k = key.lo; k <= key.hi; ++k) {
      for (int v = x.lo; v <= x.hi; ++v) values.push_back(f(v, k));
    }
    return look_up_values(x, values.data(), &key, false);
  }
  /// The same number with the noise of a look-up.
  Form refreshed(const Form& x);
  /// The variance of a form's noise.
  double noise(const Form& form) const;
  /// The wave after which a form is known.
  int level(const Form& form) const;

  /// The circuit with these outputs. Output i is in [0, largest[i]]; one with more noise than `noise` is refreshed.
  std::shared_ptr<const Circuit> finish(std::span<const Form> outputs, std::span<const int> largest,
                                        double noise);

 private:
  struct Source {
    std::int32_t node = -1;  // of a look-up; else an operand or a clear digit
    std::int32_t operand = -1;  // negative and node negative: clear
    std::uint32_t index = 0;  // of the operand's digits, of the clear digits, of the node's outputs
    std::int32_t hi = 0;
    double noise = 0;
    int level = 0;
  };
  struct Output {
    std::uint32_t values = 0;  // where its tables begin in values_
    std::uint32_t source = 0;
    bool live = false;
    std::uint32_t rotation = 0, place = 0;  // set by finish
  };
  struct Node {
    Form input;  // in [0, top]
    Form key;
    int keys = 1;  // 1: one table; else one for each number of the key
    int level = 0;
    std::vector<Output> outputs;
  };

  void check_range(const Form& x) const;
  /// (x - lo) + (y - lo) * span. Sums that are too noisy for this are refreshed.
  Form packed(const Form& x, const Form& y, int span);
  Form of_source(std::uint32_t source) const;
  Form look_up_values(const Form& x, const std::int32_t* values, const Form* key, bool always);
  std::uint32_t output_of(std::uint32_t node, std::vector<std::uint8_t> table);
  std::uint32_t node_of(Form input, const Form* key);
  Form tamed(Form x);
  std::uint32_t scaled(std::uint32_t source, int factor);
  void append(Circuit::Combinations& to, const Form& form,
              std::span<const std::uint32_t> column_of) const;

  const Space space_;
  std::vector<Source> sources_;
  std::vector<Node> nodes_;
  std::vector<std::uint8_t> values_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> node_at_;
  std::vector<std::uint32_t> operands_;
  std::uint32_t clear_digits_ = 0;
};

}  // namespace jali::integers
