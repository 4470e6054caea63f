// Named functions of encrypted numbers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ckks_circuits.h"

namespace jali::python {

using namespace nb::literals;

namespace {

using Pair = std::pair<double, double>;

approx::Smooth named(const std::string& name) {
  for (const auto& f : {approx::sigmoid(), approx::tanh(), approx::gelu(), approx::silu(),
                        approx::exp(), approx::log(), approx::square_root()}) {
    if (name == f.name) return f;
  }
  throw InvalidArgument("no function is called \"" + name + "\"");
}

approx::Interval interval(const Pair& on) { return {on.first, on.second}; }

}  // namespace

void bind_functions(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Function>(m, "FunctionCore", "See jali.ckks.functions.Function.")
      .def_static(
          "smooth",
          [](const std::string& name, const Pair& on, std::optional<double> error,
             std::optional<std::size_t> degree, std::optional<int> depth) {
            return Function{circuits::smooth(named(name), interval(on), {error, degree, depth})};
          },
          "name"_a, "interval"_a, "error"_a.none(), "degree"_a.none(), "depth"_a.none(), nogil())
      .def_static(
          "sign",
          [](double bound, double gap, double error, bool step) {
            return Function{step ? circuits::step(bound, gap, error)
                                 : circuits::sign(bound, gap, error)};
          },
          "bound"_a, "gap"_a, "error"_a, "step"_a, nogil())
      .def_static(
          "relu",
          [](double bound, double error, bool absolute) {
            return Function{absolute ? circuits::absolute(bound, error)
                                     : circuits::relu(bound, error)};
          },
          "bound"_a, "error"_a, "absolute"_a, nogil())
      .def_static(
          "inverse",
          [](const Pair& on, double error, std::optional<int> steps) {
            return Function{circuits::inverse(interval(on), error, steps)};
          },
          "interval"_a, "error"_a, "steps"_a.none(), nogil())
      .def_static(
          "root",
          [](const Pair& on, double error, std::optional<int> steps, bool inverse) {
            return Function{inverse ? circuits::inverse_square_root(interval(on), error, steps)
                                    : circuits::square_root(interval(on), error, steps)};
          },
          "interval"_a, "error"_a, "steps"_a.none(), "inverse"_a, nogil())
      .def_prop_ro(
          "name", [](const Function& f) { return f.plan->facts().name; }, "Its name.")
      .def_prop_ro(
          "interval",
          [](const Function& f) { return Pair(f.plan->facts().on.low, f.plan->facts().on.high); },
          "Where its numbers must lie.")
      .def_prop_ro(
          "gap", [](const Function& f) { return f.plan->facts().gap; },
          "Numbers nearer to 0 are not told apart.")
      .def_prop_ro(
          "max_error", [](const Function& f) { return f.plan->facts().max_error; }, "Proven.")
      .def_prop_ro(
          "depth", [](const Function& f) { return f.plan->facts().depth; }, "Levels that it takes.")
      .def_prop_ro(
          "multiplications", [](const Function& f) { return f.plan->facts().multiplications; },
          "Products of ciphertexts.")
      .def_prop_ro(
          "polynomial",
          [](const Function& f) -> std::optional<Polynomial> {
            const auto* plan = f.plan->polynomial();
            if (plan == nullptr) return std::nullopt;
            return Polynomial{std::shared_ptr<const circuits::PolynomialPlan>(f.plan, plan)};
          },
          "The one polynomial that it is; None if it is made of more.")
      .def(
          "__call__", [](const Function& f, double x) { return (*f.plan)(x); }, "x"_a,
          "What it gives for a number.");

  nb::class_<Maximum>(m, "MaximumCore", "See jali.ckks.functions.Maximum.")
      .def(
          "__init__",
          [](Maximum* self, double bound, double error, bool minimum) {
            new (self) Maximum{std::make_shared<circuits::Maximum>(bound, error, minimum)};
          },
          "bound"_a, "error"_a, "minimum"_a, nogil())
      .def_prop_ro(
          "bound", [](const Maximum& f) { return f.plan->bound(); }, "The largest modulus.")
      .def_prop_ro(
          "max_error", [](const Maximum& f) { return f.plan->max_error(); }, "Proven.")
      .def_prop_ro(
          "depth", [](const Maximum& f) { return f.plan->depth(); }, "Levels that it takes.")
      .def_prop_ro(
          "multiplications", [](const Maximum& f) { return f.plan->multiplications(); },
          "Products of ciphertexts.")
      .def(
          "__call__", [](const Maximum& f, double a, double b) { return (*f.plan)(a, b); }, "a"_a,
          "b"_a, "What it gives for two numbers.");

  nb::class_<ArgMax>(m, "ArgMaxCore", "See jali.ckks.functions.ArgMax.")
      .def(
          "__init__",
          [](ArgMax* self, std::size_t count, std::size_t slots, double bound, double gap,
             double error) {
            new (self) ArgMax{std::make_shared<circuits::ArgMax>(count, slots, bound, gap, error)};
          },
          "count"_a, "slots"_a, "bound"_a, "gap"_a, "error"_a, nogil())
      .def_prop_ro(
          "count", [](const ArgMax& f) { return f.plan->count(); }, "Numbers.")
      .def_prop_ro(
          "bound", [](const ArgMax& f) { return f.plan->bound(); }, "The largest modulus.")
      .def_prop_ro(
          "gap", [](const ArgMax& f) { return f.plan->gap(); },
          "How far the largest has to be above the others.")
      .def_prop_ro(
          "max_error", [](const ArgMax& f) { return f.plan->max_error(); }, "Proven.")
      .def_prop_ro(
          "depth", [](const ArgMax& f) { return f.plan->depth(); }, "Levels that it takes.")
      .def_prop_ro(
          "rotations", [](const ArgMax& f) { return f.plan->rotations(); },
          "Rotation keys that it needs.")
      .def(
          "__call__",
          [](const ArgMax& f, const std::vector<double>& x) {
            require<InvalidArgument>(x.size() == f.plan->count(), [&] {
              return "this argmax takes " + std::to_string(f.plan->count()) + " numbers, not " +
                     std::to_string(x.size());
            });
            return (*f.plan)(x);
          },
          "x"_a, "What it gives for numbers.");
}

}  // namespace jali::python
