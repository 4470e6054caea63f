// What the source files of the binding share: handles to shared C++ objects, and their
// registration.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "jali/api/jali.h"
#include "jali/base/at_fork.h"

// Holders of polynomials can only be moved; std::vector<Poly> hides that from the type traits.
template <>
struct nanobind::detail::is_copy_constructible<jali::ckks::Ciphertext> : std::false_type {};
template <>
struct nanobind::detail::is_copy_constructible<jali::rlwe::SwitchKey> : std::false_type {};

namespace jali::python {

namespace nb = nanobind;

// Python holds these values. The shared pointers in them never point at Python objects, so any
// thread may drop them, with or without the interpreter's lock.
class Params {
 public:
  Params() = default;
  Params(ckks::ParamsPtr params) : ptr(std::move(params)) {}  // NOLINT: converts implicitly

  ckks::ParamsPtr ptr;
  /// A ring for loading objects. It is made at the first call, and shared by all copies of this
  /// handle.
  std::shared_ptr<const ring::Ring> ring() const;

 private:
  struct Lazy {
    ForkSafe<std::mutex> mutex;
    std::shared_ptr<const ring::Ring> ring;
  };
  std::shared_ptr<Lazy> lazy_ = std::make_shared<Lazy>();
};
struct EvaluationKeys {
  std::shared_ptr<const rlwe::EvaluationKeys> ptr;
  ckks::ParamsPtr params;
};
struct KeyDemand {
  rlwe::KeyDemand keys;
  ckks::ParamsPtr params;
};
struct PublicKey {
  std::shared_ptr<const rlwe::PublicKey> ptr;
  ckks::ParamsPtr params;
};

/// Throws ParamsMismatch unless both are the same parameters. what: the subject of the message,
/// e.g. "the ciphertext is".
void require_same(const ckks::Params& expected, const ckks::Params& given, const char* what);

/// level or, if it is -1, the top one. Throws InvalidArgument outside -1 .. depth.
int checked_level(const ckks::Params& params, int level);
/// log2 of a number of slots; 0 stands for N/2. Throws InvalidArgument unless it is a power of two
/// up to N/2.
int checked_log_slots(const ckks::Params& params, std::int64_t slots);

/// For which rotations keys are made, as Python says it: whole numbers, or "powers".
using Rotations = std::variant<std::string, std::vector<int>>;
/// minimum: as evaluation_keys takes it. Throws InvalidArgument for other text.
std::vector<int> key_rotations(const ckks::Params& params, const Rotations& rotations,
                               bool minimum = false);

/// Which keys to bootstrap with: all, the fewest, or the fastest that fit into so many bytes
/// together with the other keys.
struct BootstrapKeys {
  bool minimum = false;
  std::optional<std::uint64_t> memory{};
};
/// One plan for each number of slots in `slots`; 0 stands for all slots. rotations, conjugate: the
/// other keys. Throws InvalidArgument if the memory is too small for the fewest keys, or given
/// together with minimum or without slots.
std::vector<bootstrap::BootstrapPlan> bootstrap_plans(const ckks::ParamsPtr& params,
                                                      const std::vector<std::int64_t>& slots,
                                                      const BootstrapKeys& kind,
                                                      const std::vector<int>& rotations,
                                                      bool conjugate);
/// The same sets of keys, as bootstrap::key_sets gives them.
std::vector<bootstrap::KeySet> bootstrap_key_sets(const ckks::ParamsPtr& params,
                                                  const std::vector<std::int64_t>& slots,
                                                  const std::vector<int>& rotations,
                                                  bool conjugate);

/// The shape of its view or, without one, (length,) or (batch, length): of a Ciphertext or a
/// ProductSum.
template <class T>
nb::tuple shape_of(const T& a) {
  if (a.packing.view) {
    nb::list counts;
    for (const auto& axis : a.packing.view->axes) counts.append(axis.count);
    return nb::tuple(counts);
  }
  const std::size_t length = ckks::length_of(a);
  return ckks::is_batched(a) ? nb::make_tuple(a.batch(), length) : nb::make_tuple(length);
}

/// A view as Python has it: (count, stride) of every axis, the first address, and the period.
using ViewTuple =
    std::tuple<std::vector<std::pair<std::uint32_t, std::int32_t>>, std::uint32_t, std::uint32_t>;
inline ckks::View view_of(const ViewTuple& from) {
  ckks::View out;
  for (const auto& [count, stride] : std::get<0>(from)) out.axes.push_back({count, stride});
  out.first = std::get<1>(from);
  out.period = std::get<2>(from);
  return out;
}
inline ViewTuple tuple_of(const ckks::View& view) {
  ViewTuple out;
  for (const auto& axis : view.axes) std::get<0>(out).emplace_back(axis.count, axis.stride);
  std::get<1>(out) = view.first;
  std::get<2>(out) = view.period;
  return out;
}

void register_errors(nb::module_& m);
void bind_device(nb::module_& m);
void bind_params(nb::module_& m);
void bind_values(nb::module_& m);
void bind_client(nb::module_& m);
void bind_program(nb::module_& m);
void bind_documents(nb::module_& m);
void bind_explicit(nb::module_& m);
void bind_circuits(nb::module_& m);
void bind_polynomial(nb::module_& m);
void bind_functions(nb::module_& m);
void bind_engine(nb::module_& m);
void bind_evaluator(nb::module_& m);
void bind_captured(nb::module_& m);
void bind_trace(nb::module_& m);

}  // namespace jali::python
