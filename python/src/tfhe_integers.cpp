// Encrypted integers of several digits for Python.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "jali/integers/arithmetic.h"
#include "jali/integers/tfhe_machine.h"
#include "log.h"
#include "tfhe_evaluator.h"

namespace jali::python {

using namespace nb::literals;

namespace {

using integers::Clear;
using integers::Integers;
using integers::IntegerType;
using integers::Value;
using integers::Wide;
/// Clear integers modulo 2^64.
using Words = std::vector<std::uint64_t>;
using Pair = std::pair<TfheArray, TfheArray>;

IntegerType type_of(const TfheArray& a) { return {a.bits, a.is_signed}; }
Wide wide(std::uint64_t word, bool is_signed) {
  return is_signed ? Wide{static_cast<std::int64_t>(word)} : Wide{word};
}
std::vector<Wide> wides(const Words& words, bool is_signed) {
  std::vector<Wide> out;
  for (const std::uint64_t word : words) out.push_back(wide(word, is_signed));
  return out;
}

/// Arithmetic on the integers of one evaluator. Results are vectors; the Python side gives them
/// their shape.
class TfheIntegers {
 public:
  explicit TfheIntegers(const TfheEvaluator& evaluator)
      : machine_(std::make_shared<const integers::TfheMachine>(
            evaluator.shared(),
            integers::TfheMachineOptions{
                .unrecorded =
                    [] {
                      const nb::gil_scoped_acquire gil;
                      log_info("no memory to record a circuit: its steps are launched one by one");
                    }})),
        arithmetic_(machine_) {}

  TfheArray binary(const std::string& name, const TfheArray& x, const TfheArray& y) const {
    const Integers a = taken(x), b = taken(y);
    return given(computed(name, a, b));
  }
  /// With clear numbers on the right, or, if `reversed`, on the left.
  TfheArray binary_clear(const std::string& name, const TfheArray& x, const Words& words,
                         bool reversed) const {
    const Integers a = taken(x);
    const Clear b = clear(words, x.is_signed);
    return given(reversed ? computed(name, b, a) : computed(name, a, b));
  }
  Pair divide(const TfheArray& x, const TfheArray& y, bool floor) const {
    const Integers a = taken(x), b = taken(y);
    return given(arithmetic_.divide(a, b, rounding(floor)));
  }
  Pair divide_clear(const TfheArray& x, const Words& words, bool reversed, bool floor) const {
    const Integers a = taken(x);
    const Clear b = clear(words, x.is_signed);
    return given(reversed ? arithmetic_.divide(b, a, rounding(floor))
                          : arithmetic_.divide(a, b, rounding(floor)));
  }
  Pair overflowing(const std::string& name, const TfheArray& x, const TfheArray& y) const {
    const Integers a = taken(x), b = taken(y);
    return flagged(name, a, b);
  }
  Pair overflowing_clear(const std::string& name, const TfheArray& x, const Words& words) const {
    const Integers a = taken(x);
    const Clear b = clear(words, x.is_signed);
    return flagged(name, a, b);
  }
  TfheArray unary(const std::string& name, const TfheArray& x) const {
    const Integers a = taken(x);
    if (name == "negate") return given(arithmetic_.negate(a));
    if (name == "invert") return given(arithmetic_.bit_not(a));
    if (name == "leading_zeros") return given(arithmetic_.leading_zeros(a));
    if (name == "trailing_zeros") return given(arithmetic_.trailing_zeros(a));
    if (name == "ilog2") return given(arithmetic_.ilog2(a));
    throw InternalError("there is no operation " + name);
  }
  TfheArray move(const std::string& name, const TfheArray& x, const TfheArray& amount) const {
    const Integers a = taken(x), by = taken(amount);
    return given(arithmetic_.move(moves(name), a, by));
  }
  TfheArray move_clear(const std::string& name, const TfheArray& x, const Words& amount) const {
    return given(arithmetic_.move(moves(name), taken(x), clear(amount, false)));
  }
  TfheArray select(const TfheArray& flag, const TfheArray& x, const TfheArray& y) const {
    const Integers f = taken(flag), a = taken(x), b = taken(y);
    return given(arithmetic_.select(f, a, b));
  }
  /// x where the flag is 1, else the clear numbers; or, if `swapped`, the other way round.
  TfheArray select_clear(const TfheArray& flag, const TfheArray& x, const Words& words,
                         bool swapped) const {
    const Integers f = taken(flag), a = taken(x);
    const Clear b = clear(words, x.is_signed);
    return given(swapped ? arithmetic_.select(f, b, a) : arithmetic_.select(f, a, b));
  }
  TfheArray cast(const TfheArray& x, int bits, bool is_signed) const {
    return given(arithmetic_.cast(taken(x), {bits, is_signed}));
  }
  TfheArray sum(const TfheArray& x, std::size_t length, int bits, bool is_signed) const {
    return given(arithmetic_.sum(taken(x), length, {bits, is_signed}));
  }
  TfheArray dot(const TfheArray& x, const Words& weights, int bits, bool is_signed) const {
    return given(arithmetic_.dot(taken(x), wides(weights, true), {bits, is_signed}));
  }
  TfheArray sort(const TfheArray& x, std::size_t length, bool descending) const {
    return given(arithmetic_.sort(taken(x), length, descending));
  }
  Pair extreme(const TfheArray& x, std::size_t length, bool largest) const {
    return given(arithmetic_.extreme(taken(x), length, largest));
  }
  TfheArray read_clear(const Words& table, int bits, bool is_signed, const TfheArray& index) const {
    return given(arithmetic_.read(wides(table, is_signed), {bits, is_signed}, taken(index)));
  }
  TfheArray read(const TfheArray& table, const TfheArray& index) const {
    return given(arithmetic_.read(taken(table), taken(index)));
  }
  TfheArray trivial(const Words& values, int bits, bool is_signed) const {
    return given(arithmetic_.trivial(wides(values, is_signed), {bits, is_signed}));
  }
  TfheArray take(const TfheArray& x, const std::vector<std::size_t>& indices) const {
    return given(arithmetic_.take(taken(x), indices));
  }

 private:
  static integers::Rounding rounding(bool floor) {
    return floor ? integers::Rounding::floor : integers::Rounding::truncate;
  }
  static integers::Move moves(const std::string& name) {
    if (name == "left") return integers::Move::left;
    if (name == "right") return integers::Move::right;
    if (name == "rotate_left") return integers::Move::rotate_left;
    return integers::Move::rotate_right;
  }
  static Clear clear(const Words& words, bool is_signed) {
    if (words.size() == 1) return Clear(wide(words[0], is_signed));
    return Clear(wides(words, is_signed));
  }
  Integers computed(const std::string& name, const Value& a, const Value& b) const {
    using integers::Comparison;
    if (name == "add") return arithmetic_.add(a, b);
    if (name == "subtract") return arithmetic_.subtract(a, b);
    if (name == "multiply") return arithmetic_.multiply(a, b);
    if (name == "and") return arithmetic_.bit_and(a, b);
    if (name == "or") return arithmetic_.bit_or(a, b);
    if (name == "xor") return arithmetic_.bit_xor(a, b);
    if (name == "minimum") return arithmetic_.minimum(a, b);
    if (name == "maximum") return arithmetic_.maximum(a, b);
    if (name == "equal") return arithmetic_.compare(Comparison::equal, a, b);
    if (name == "not_equal") return arithmetic_.compare(Comparison::not_equal, a, b);
    if (name == "less") return arithmetic_.compare(Comparison::less, a, b);
    if (name == "less_equal") return arithmetic_.compare(Comparison::less_equal, a, b);
    if (name == "greater") return arithmetic_.compare(Comparison::greater, a, b);
    if (name == "greater_equal") return arithmetic_.compare(Comparison::greater_equal, a, b);
    throw InternalError("there is no operation " + name);
  }
  Pair flagged(const std::string& name, const Value& a, const Value& b) const {
    if (name == "add") return given(arithmetic_.add_overflow(a, b));
    if (name == "subtract") return given(arithmetic_.subtract_overflow(a, b));
    return given(arithmetic_.multiply_overflow(a, b));
  }
  /// The integers of an array, in the engine's memory.
  Integers taken(const TfheArray& a) const {
    const tfhe::Ciphertext here = machine_->evaluator().bind(a.block);
    const auto digits = static_cast<std::size_t>(type_of(a).digits(machine_->space().message_bits));
    return {type_of(a), here.size() / digits, integers::TfheMachine::rows_of(here),
            here.history.norm2()};
  }
  TfheArray given(const Integers& x) const {
    const auto largest = integers::largest_digits(x.type(), machine_->space().message_bits);
    return {
        machine_->ciphertext(x.rows(), largest), {x.count()}, x.type().bits, x.type().is_signed};
  }
  Pair given(const std::pair<Integers, Integers>& both) const {
    return {given(both.first), given(both.second)};
  }

  std::shared_ptr<const integers::TfheMachine> machine_;
  integers::Arithmetic arithmetic_;
};

}  // namespace

void bind_tfhe_integers(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<TfheIntegers>(m, "IntegersCore", "See jali.tfhe.EncryptedIntegers.")
      .def(nb::init<const TfheEvaluator&>(), "evaluator"_a, nogil())
      .def("binary", &TfheIntegers::binary, "name"_a, "x"_a, "y"_a, nogil())
      .def("binary_clear", &TfheIntegers::binary_clear, "name"_a, "x"_a, "words"_a, "reversed"_a,
           nogil())
      .def("divide", &TfheIntegers::divide, "x"_a, "y"_a, "floor"_a, nogil())
      .def("divide_clear", &TfheIntegers::divide_clear, "x"_a, "words"_a, "reversed"_a, "floor"_a,
           nogil())
      .def("overflowing", &TfheIntegers::overflowing, "name"_a, "x"_a, "y"_a, nogil())
      .def("overflowing_clear", &TfheIntegers::overflowing_clear, "name"_a, "x"_a, "words"_a,
           nogil())
      .def("unary", &TfheIntegers::unary, "name"_a, "x"_a, nogil())
      .def("move", &TfheIntegers::move, "name"_a, "x"_a, "amount"_a, nogil())
      .def("move_clear", &TfheIntegers::move_clear, "name"_a, "x"_a, "amount"_a, nogil())
      .def("select", &TfheIntegers::select, "flag"_a, "x"_a, "y"_a, nogil())
      .def("select_clear", &TfheIntegers::select_clear, "flag"_a, "x"_a, "words"_a, "swapped"_a,
           nogil())
      .def("cast", &TfheIntegers::cast, "x"_a, "bits"_a, "is_signed"_a, nogil())
      .def("sum", &TfheIntegers::sum, "x"_a, "length"_a, "bits"_a, "is_signed"_a, nogil())
      .def("dot", &TfheIntegers::dot, "x"_a, "weights"_a, "bits"_a, "is_signed"_a, nogil())
      .def("sort", &TfheIntegers::sort, "x"_a, "length"_a, "descending"_a, nogil())
      .def("extreme", &TfheIntegers::extreme, "x"_a, "length"_a, "largest"_a, nogil())
      .def("read_clear", &TfheIntegers::read_clear, "table"_a, "bits"_a, "is_signed"_a, "index"_a,
           nogil())
      .def("read", &TfheIntegers::read, "table"_a, "index"_a, nogil())
      .def("trivial", &TfheIntegers::trivial, "values"_a, "bits"_a, "is_signed"_a, nogil())
      .def("take", &TfheIntegers::take, "x"_a, "indices"_a, nogil());
}

}  // namespace jali::python
