// What the source files of the binding share: handles on shared C++ objects, and their registration.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "jali/api/jali.h"
#include "jali/base/at_fork.h"

// Holders of polynomials move only; std::vector<Poly> hides that from the type traits.
template <>
struct nanobind::detail::is_copy_constructible<jali::ckks::Ciphertext> : std::false_type {};
template <>
struct nanobind::detail::is_copy_constructible<jali::rlwe::SwitchKey> : std::false_type {};

namespace jali::python {

namespace nb = nanobind;

// Python holds these values; the shared pointers inside never point at Python objects, so that they
// may be dropped by any thread, with or without the interpreter's lock.
class Params {
 public:
  Params() = default;
  Params(ckks::ParamsPtr params) : ptr(std::move(params)) {}  // NOLINT: is what it holds

  ckks::ParamsPtr ptr;
  /// A ring for loading objects, made at the first call and shared by all copies of this handle.
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
struct PublicKey {
  std::shared_ptr<const rlwe::PublicKey> ptr;
  ckks::ParamsPtr params;
};

/// Throws ParamsMismatch, naming `what`, unless both are the same parameters.
void require_same(const ckks::Params& expected, const ckks::Params& given, const char* what);

/// level or, when it is negative, the top one; throws InvalidArgument outside 0 .. depth.
int checked_level(const ckks::Params& params, int level);
/// log2 of a slot count; 0 means N/2. Throws InvalidArgument unless a power of two up to N/2.
int checked_log_slots(const ckks::Params& params, std::int64_t slots);

/// One for each number of slots, 0 for all of them.
std::vector<bootstrap::BootstrapPlan> bootstrap_plans(const ckks::ParamsPtr& params,
                                                      const std::vector<std::int64_t>& slots,
                                                      bool minimum);

void register_errors(nb::module_& m);
void bind_device(nb::module_& m);
void bind_params(nb::module_& m);
void bind_values(nb::module_& m);
void bind_client(nb::module_& m);
void bind_explicit(nb::module_& m);
void bind_circuits(nb::module_& m);
void bind_functions(nb::module_& m);
void bind_evaluator(nb::module_& m);
void bind_captured(nb::module_& m);
void bind_trace(nb::module_& m);

}  // namespace jali::python
