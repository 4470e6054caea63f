// Polynomials.
#include <nanobind/stl/complex.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <complex>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "ckks_circuits.h"
#include "jali/approx/remez.h"
#include "jali/approx/sampled.h"
#include "jali/circuits/ckks/arrays.h"
#include "methods.h"
#include "refusals.h"

namespace jali::python {

namespace {

Polynomial from_coefficients(const circuits::Polynomial& p) {
  return {std::make_shared<const circuits::PolynomialPlan>(p)};
}

Polynomial from_measured(const approx::Measured& measured) {
  circuits::Polynomial p = circuits::bounded_polynomial(measured.polynomial);
  p.measured_error = measured.error;
  return from_coefficients(p);
}

using RealFunction = std::function<double(double)>;

/// What raises an error of arithmetic at a number is not finite there.
approx::Function guarded(const RealFunction& f) {
  return [&f](approx::Real x) -> approx::Real {
    try {
      return f(static_cast<double>(x));
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_ArithmeticError) && !error.matches(PyExc_ValueError)) throw;
      return std::numeric_limits<approx::Real>::quiet_NaN();
    }
  };
}

Polynomial approximate(const RealFunction& f, std::size_t degree,
                       std::pair<double, double> interval, bool minimax) {
  require<InvalidArgument>(degree <= approx::kMostDegree, "the degree must be at most 4095");
  require<InvalidArgument>(!minimax || degree <= approx::kMostRemezDegree,
                           "the degree must be at most 255 with minimax=True");
  const approx::Interval on{interval.first, interval.second};
  return from_measured(minimax ? approx::minimax(guarded(f), on, degree)
                               : approx::interpolate(guarded(f), on, degree));
}

Polynomial make_polynomial(nb::handle coefficients, const std::string& basis,
                           std::optional<std::pair<double, double>> interval) {
  const Vectors v(coefficients, "the coefficients");
  require<InvalidArgument>(!v.batched(), "the coefficients must have one dimension");
  circuits::Polynomial p;
  require<InvalidArgument>(basis == "power" || basis == "chebyshev", [&] {
    return "unknown basis \"" + basis + "\": use \"power\" or \"chebyshev\"";
  });
  p.basis = basis == "power" ? circuits::Basis::power : circuits::Basis::chebyshev;
  if (interval) {
    p.a = interval->first;
    p.b = interval->second;
    p.bounded = true;
  }
  std::vector<std::complex<double>> store;
  const auto numbers = v.as_complex(store);
  p.coefficients.assign(numbers.begin(), numbers.end());
  return from_coefficients(p);
}

}  // namespace

void bind_polynomial(nb::module_& m) {
  nb::class_<Polynomial> polynomial(
      m, "Polynomial",
      R"(A polynomial that is evaluated on every slot with the fewest levels (Paterson and Stockmeyer).

Apply it with Evaluator.polynomial.

>>> p = ckks.Polynomial([1, 0, 2])  # 1 + 2 x^2
>>> p(0.5), p.degree, p.depth
((1.5+0j), 2, 2))");
  polynomial
      .def("__init__",
           checked_method<Polynomial*>(
               {"Polynomial",
                3,
                {{"coefficients"}, {"basis", nb::str("power")}, {"interval", nb::none()}}},
               [](Polynomial* self, nb::handle coefficients, const std::string& basis,
                  std::optional<std::pair<double, double>> interval) {
                 new (self) Polynomial(make_polynomial(coefficients, basis, interval));
               }),
           nb::sig("def __init__(self, coefficients: numpy.typing.ArrayLike, basis: str = 'power', "
                   "interval: tuple[float, float] | None = None) -> None"),
           R"(coefficients: constant first, of x^i ("power") or of T_i ("chebyshev").

interval: (a, b), where inputs must lie: arrays that may hold other numbers are refused. The Chebyshev basis
    is that of (2 x - a - b) / (b - a). None for any numbers, and the Chebyshev basis of [-1, 1].)")
      .def_static(
          "approximate",
          checked({"Polynomial.approximate",
                   3,
                   {{"function"},
                    {"degree"},
                    {"interval", nb::make_tuple(-1.0, 1.0)},
                    {"minimax", nb::bool_(false)}}},
                  &approximate),
          nb::sig("def approximate(function: collections.abc.Callable[[float], float], "
                  "degree: int, interval: tuple[float, float] = (-1.0, 1.0), *, "
                  "minimax: bool = False) -> Polynomial"),
          R"(The polynomial of this degree, or less, that meets a function at the Chebyshev nodes of an interval.

function: of a float, giving a float; it is called about five times the degree. It should be smooth: what is known
    of it are values, so that the error is measured (measured_error) and not proven. jali.ckks.functions has proven
    ones.
minimax: the polynomial whose largest error is the least (Remez), of a degree up to 255, at some thousand calls.
Coefficients that are rounding errors are 0: an even function's are even. Raises InvalidArgument where the
function is not finite, and where the polynomial does not follow it, as next to a pole.)")
      .def_prop_ro(
          "degree", [](const Polynomial& p) { return p.plan->polynomial().degree(); },
          "Its degree.")
      .def_prop_ro(
          "depth", [](const Polynomial& p) { return p.plan->depth_needed(); },
          "Levels that it takes.")
      .def_prop_ro(
          "interval",
          [](const Polynomial& p) {
            const circuits::Polynomial& q = p.plan->polynomial();
            return q.bounded ? std::optional(std::pair(q.a, q.b)) : std::nullopt;
          },
          "(a, b), where inputs must lie; None if they may lie anywhere.")
      .def_prop_ro(
          "max_error", [](const Polynomial& p) { return p.plan->polynomial().max_error; },
          "No value in the interval is further from the function's, which is proven; None where it "
          "is not.")
      .def_prop_ro(
          "measured_error", [](const Polynomial& p) { return p.plan->polynomial().measured_error; },
          "The largest error that was seen at some thousand points; None for polynomials that "
          "stand for no function.")
      .def_prop_ro(
          "coefficients", [](const Polynomial& p) { return p.plan->polynomial().coefficients; },
          "Its coefficients, the constant first.")
      .def_prop_ro(
          "multiplications", [](const Polynomial& p) { return p.plan->multiplications(); },
          "Products of ciphertexts.")
      .def("__repr__", [](const Polynomial& p) {
        return "Polynomial(degree=" + std::to_string(p.plan->polynomial().degree()) +
               ", depth=" + std::to_string(p.plan->depth_needed()) + ")";
      });
  method(
      polynomial, "__call__", 1, {{"x", std::nullopt, "complex"}},
      [](const Polynomial& p, nb::handle x) {
        std::complex<double> number;
        if (PyUnicode_Check(x.ptr()) || PyBool_Check(x.ptr()) || !nb::try_cast(x, number)) {
          refuse("x", "a number (Evaluator.polynomial(x, p) takes an encrypted array)", x);
        }
        return p.plan->polynomial()(number);
      },
      "Its value at a number.");
}

}  // namespace jali::python
