// Builds a circuit from linear forms and look-ups, and holds it to the limits of the space.
//
// What a builder does by itself, so that algorithms need not:
//   Waves. There are as many as the longest chain of look-ups.
//   Several tables on one rotation. Look-ups of the same form share rotations, as many as the range
//   of the form allows. Places in waves. A rotation that can wait goes into a later wave, if its
//   first one has more than the machine takes at once. Noise. If a form has more noise than the
//   budget, its term with the most noise is replaced by a look-up that gives the scaled digit
//   directly. If the digit came from a look-up, then that is one more table there, in the same
//   wave. Folding. Look-ups of constants, of the identity, of the same form with the same table,
//   and look-ups that no output needs, do not happen.
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

  /// f(x). f: int -> int, on [x.lo, x.hi], which has at most 2^p numbers. So have its values, first
  /// to last.
  template <class F>
  Form look_up(const Form& x, const F& f) {
    std::array<std::int32_t, 256> values{};
    check_range(x);
    for (int v = x.lo; v <= x.hi; ++v) values[static_cast<std::size_t>(v - x.lo)] = f(v);
    return look_up_values(x, values.data(), nullptr, false);
  }
  /// f(x, y) of a message x and a digit y of the same space: a look-up of x + 2^m y, or, if y is
  /// clear, of x alone.
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
  /// amount * [x >= at]. On a negacyclic machine x may have up to 2^(p + 1) numbers, at most 2^p on
  /// either side of `at`. Two neighbouring thresholds of one form share a rotation.
  Form threshold(const Form& x, int at, int amount = 1);
  /// Whether threshold takes numbers from low to high.
  bool takes(int low, int high, int at) const {
    return space_.negacyclic ? high - at < space_.size() && at - low <= space_.size()
                             : high - low < space_.size();
  }
  /// The same number with the noise of a look-up.
  Form refreshed(const Form& x);
  /// The variance of a form's noise.
  double noise(const Form& form) const;
  /// The wave after which a form is known.
  int level(const Form& form) const;

  /// The circuit with these outputs. Output i is in [0, largest[i]]; one with more noise than
  /// `noise` is refreshed.
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
  static constexpr std::uint32_t nowhere = ~std::uint32_t{0};
  struct Output {
    std::uint32_t values = 0;  // where its tables begin in values_
    std::int32_t at = 0;  // of a threshold
    std::uint32_t source = 0;
    int deadline = 0;  // the last wave in which it may be looked up; 0: nobody needs it
    std::uint32_t rotation = nowhere;  // set by finish
  };
  struct Node {
    Form input;  // in [0, top]; of thresholds, a form without a constant
    Form key;
    int keys = 1;  // 1: one table; else one for each number of the key
    int amount = 0;  // of thresholds; else 0
    int level = 0;
    std::vector<Output> outputs;
  };
  /// Results of one rotation of a node.
  struct Rotation {
    std::uint32_t node = 0;
    int stride = 0;
    std::vector<std::uint32_t> outputs;
    int deadline = 0, wave = 0, last_use = 0;
    std::uint32_t slot = 0;
  };

  void check_range(const Form& x) const;
  /// (x - lo) + (y - lo) * span. Sums that are too noisy for this are refreshed.
  Form packed(const Form& x, const Form& y, int span);
  Form of_source(std::uint32_t source) const;
  Form look_up_values(const Form& x, const std::int32_t* values, const Form* key, bool always);
  std::uint32_t output_of(std::uint32_t node, std::span<const std::int16_t> table);
  std::uint32_t node_of(Form input, const Form* key, int amount = 0);
  std::uint32_t threshold_of(std::uint32_t node, std::int32_t at);
  Form tamed(Form x);
  std::uint32_t scaled(std::uint32_t source, int factor);
  void append(Circuit::Combinations& to, const Form& form,
              std::span<const std::uint32_t> column_of) const;
  /// What finish does, in this order: deadlines, rotations, waves, and the circuit.
  int need(std::span<const Form> results);
  std::vector<Rotation> rotations();
  void place(std::vector<Rotation>& rotations, int depth) const;

  const Space space_;
  std::vector<Source> sources_;
  std::vector<Node> nodes_;
  std::vector<std::int16_t> values_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> node_at_;
  std::vector<std::uint32_t> operands_;
  std::uint32_t clear_digits_ = 0;
};

}  // namespace jali::integers
