#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "binding.h"
#include "ckks_params.h"
#include "methods.h"

namespace jali::python {

namespace {

/// From a whole number or a sequence of them.
std::vector<std::int64_t> numbers_of_slots(nb::handle slots) {
  std::int64_t one = 0;
  if (!PyBool_Check(slots.ptr()) && nb::try_cast(slots, one)) return {one};
  std::vector<std::int64_t> several;
  if (!nb::try_cast(slots, several)) {
    refuse("slots of Params.bootstrap_rotations", "a whole number or a sequence of them", slots);
  }
  return several;
}

}  // namespace

void bind_params_bootstrap(nb::class_<Params>& type) {
  using nogil = nb::gil_scoped_release;
  type.def_prop_ro(
          "bootstraps", [](const Params& p) { return p.ptr->bootstrap().has_value(); },
          "Whether it has levels for bootstrapping.")
      .def_prop_ro(
          "bootstrap_level",
          [](const Params& p) {
            return p.ptr->bootstrap() ? p.ptr->bootstrap()->input_level() : 0;
          },
          "The lowest level from which a value can be bootstrapped.")
      .def_prop_ro(
          "bootstrap_order",
          [](const Params& p) -> std::optional<std::string> {
            if (!p.ptr->bootstrap()) return std::nullopt;
            return p.ptr->bootstrap()->order == params::BootstrapOrder::raise_first ? "raise_first"
                                                                                    : "slots_first";
          },
          "The order of bootstrapping that they were made with, or None without bootstrapping.")
      .def_prop_ro(
          "bootstrap_max_magnitude",
          [](const Params& p) {
            if (!p.ptr->bootstrap()) return 0.0;
            return bootstrap::BootstrapPlan(p.ptr, {/*log_slots=*/1}).max_magnitude();
          },
          R"(The largest declared magnitude that EncryptedArray.bootstrap takes, at least 1; 0 without bootstrapping.

Numbers of this size lose at most 2^-10 of themselves or, if numbers of size 1 lose more, as much as these.)")
      .def_prop_ro(
          "log2_bootstrap_failure",
          [](const Params& p) {
            const auto& b = p.ptr->bootstrap();
            return b ? params::log2_bootstrap_failure(b->weight, b->range, p.ptr->n()) : -1e6;
          },
          "log2 of a bound on the probability that one bootstrapping loses a coefficient because "
          "its phase leaves the range of the modular reduction. log2_bootstrap_beyond gives that "
          "of smaller errors.");
  method(
      type, "log2_bootstrap_beyond", 2, {{"error"}, {"slots", nb::int_(0)}},
      [](const Params& p, double error, std::int64_t slots) {
        return bootstrap::log2_beyond(*p.ptr, error, checked_log_slots(*p.ptr, slots));
      },
      "log2 of a bound on the probability that one bootstrapping of values with this many "
      "slots (0: all) has an error above `error`, in message units, in the real or imaginary "
      "part of some slot because the modular reduction is less exact for rare integers. Noise "
      "is not counted. -1e6 means never. With raise_first the error is that of one "
      "coefficient, which contributes to all slots.");
  method(
      type, "bootstrap_rotations", 1,
      {{"slots", nb::int_(0), "int | collections.abc.Sequence[int]"},
       {"minimum", nb::bool_(false)},
       {"memory", nb::none()},
       {"rotations", nb::list()}},
      [](const Params& p, nb::handle slots, bool minimum, std::optional<std::uint64_t> memory,
         const std::vector<int>& rotations) {
        const std::vector<std::int64_t> several = numbers_of_slots(slots);
        const nb::gil_scoped_release release;
        const auto wanted = key_rotations(*p.ptr, rotations, minimum);
        std::set<int> out;
        for (const auto& plan : bootstrap_plans(p.ptr, several, {minimum, memory}, wanted, false)) {
          for (const auto& [steps, level] : plan.rotation_levels()) out.insert(steps);
        }
        return std::vector<int>(out.begin(), out.end());
      },
      "The rotations for which bootstrapping with this many slots (0: all), or with each of "
      "several numbers of slots, needs keys. minimum: with the fewest keys. memory: with the "
      "fastest keys of at most so many bytes in an evaluator's memory, together with those for "
      "`rotations`.");
  const std::vector<Parameter> keys = {{"rotations", nb::list()},
                                       {"conjugate", nb::bool_(false)},
                                       {"slots", nb::make_tuple(0)},
                                       {"minimum", nb::bool_(false)},
                                       {"memory", nb::none()}};
  method<nogil>(
      type, "bootstrap_key_bytes", 3, keys,
      [](const Params& p, const Rotations& rotations, bool conjugate,
         const std::vector<std::int64_t>& slots, bool minimum,
         std::optional<std::uint64_t> memory) {
        const auto wanted = key_rotations(*p.ptr, rotations, minimum);
        const auto plans = bootstrap_plans(p.ptr, slots, {minimum, memory}, wanted, conjugate);
        return bootstrap::key_bytes(*p.ptr, plans, wanted, conjugate);
      },
      "Bytes in memory of evaluation_keys(rotations, conjugate=..., bootstrap=slots, "
      "minimum=..., memory=...), known before they are made: their nbytes. In slots, 0 stands "
      "for all slots.");
  method<nogil>(
      type, "expanded_bootstrap_key_bytes", 3, keys,
      [](const Params& p, const Rotations& rotations, bool conjugate,
         const std::vector<std::int64_t>& slots, bool minimum,
         std::optional<std::uint64_t> memory) {
        const auto wanted = key_rotations(*p.ptr, rotations, minimum);
        const auto plans = bootstrap_plans(p.ptr, slots, {minimum, memory}, wanted, conjugate);
        return bootstrap::expanded_key_bytes(*p.ptr, plans, wanted, conjugate);
      },
      "Bytes that the keys of bootstrap_key_bytes take in the memory of an evaluator, on the "
      "CPU or a GPU.");
  method(
      type, "bootstrap_work", 1, {{"slots", nb::int_(0)}, {"real", nb::bool_(false)}},
      [](const Params& p, std::int64_t slots, bool real) {
        require<InvalidArgument>(p.ptr->bootstrap().has_value(),
                                 "these parameters have no levels for bootstrapping: create "
                                 "them with bootstrap=True");
        return bootstrap::predicted_time(p.ptr, checked_log_slots(*p.ptr, slots), real);
      },
      R"(The predicted time of a bootstrapping with this many slots (0: all) and all keys, in a unit of its own.

It counts the key switchings, each at its level, and the products with diagonals. real: imaginary parts are dropped.)");
  method<nogil>(
      type, "bootstrap_key_curve", 3, {keys.begin(), keys.begin() + 3},
      [](const Params& p, const Rotations& rotations, bool conjugate,
         const std::vector<std::int64_t>& slots) {
        std::vector<std::pair<std::size_t, double>> points;
        for (const auto& set :
             bootstrap_key_sets(p.ptr, slots, key_rotations(*p.ptr, rotations), conjugate)) {
          points.emplace_back(set.bytes, set.time);
        }
        return points;
      },
      R"(The sets of keys that evaluation_keys(rotations, conjugate=..., bootstrap=slots, memory=...) chooses from.

Each is a pair: the bytes that all keys take in the memory of an evaluator, and the predicted time of a bootstrapping over that with all
keys, at least 1. They ascend from the fewest keys to all, and each is faster than the one before. The time is that of the key
switchings, each at its level, and of the products with the matrices' diagonals.)");
}

}  // namespace jali::python
