// What the source files of the binding of exact integers share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "binding.h"
#include "checkpoints.h"
#include "counters.h"
#include "jali/backend/trace/trace.h"
#include "jali/params/discrete/params.h"
#include "jali/schemes/discrete/evaluator.h"

template <>
struct nanobind::detail::is_copy_constructible<jali::discrete::Ciphertext> : std::false_type {};

namespace jali::python {

/// As Params of binding.h: handles that Python holds.
class DiscreteParams {
 public:
  DiscreteParams() = default;
  DiscreteParams(discrete::ParamsPtr params) : ptr(std::move(params)) {}  // NOLINT: converts

  discrete::ParamsPtr ptr;
  /// A ring for loading objects, made at the first call and shared by all copies of this handle.
  std::shared_ptr<const ring::Ring> ring() const;

 private:
  struct Lazy {
    ForkSafe<std::mutex> mutex;
    std::shared_ptr<const ring::Ring> ring;
  };
  std::shared_ptr<Lazy> lazy_ = std::make_shared<Lazy>();
};
struct DiscreteKeys {
  std::shared_ptr<const rlwe::EvaluationKeys> ptr;
  discrete::ParamsPtr params;
};
struct DiscreteDemand {
  rlwe::KeyDemand keys;
  discrete::ParamsPtr params;
};
struct DiscretePublicKey {
  std::shared_ptr<const rlwe::PublicKey> ptr;
  discrete::ParamsPtr params;
};

/// A ciphertext, and where the elements of an array lie in its rows.
///
/// The numbers of a ciphertext lie in two rows of N/2, which rotate together. Row 2 i + j of a
/// batch is row j of vector i. An address of a view is row * N/2 + place.
struct DiscreteArray {
  discrete::Ciphertext block;
  std::optional<ViewTuple> view;  // none within an operation
  bool padded = false;  // whether all that hold no element are zero

  std::size_t rows() const { return 2 * block.batch(); }
};
}  // namespace jali::python
template <>
struct nanobind::detail::is_copy_constructible<jali::python::DiscreteArray> : std::false_type {};
namespace jali::python {

/// What Evaluator objects of Python hold, except keys: it depends on no key.
struct DiscreteEngine {
  discrete::ParamsPtr params;
  std::shared_ptr<const ring::Ring> ring;
  std::string engine;  // name of the backend, even if it is traced
  std::shared_ptr<backend::Trace> trace;  // null if nothing is recorded
  std::shared_ptr<const discrete::Engine> shared;
  std::shared_ptr<Checkpoints> checkpoints;
  std::shared_ptr<const device::Buffer> probe;  // in the device's memory

  bool on_host() const { return ring->memory().host_accessible(); }
  /// Returns when the device has done everything that it was asked to do before.
  void synchronize() const {
    char byte = 0;
    if (!probe->host_accessible()) ring->memory().copy_out(&byte, probe->data(), 1);
  }
};
/// dry: whether the device may also be "dry", which computes nothing.
DiscreteEngine make_discrete_engine(const discrete::ParamsPtr& params, const std::string& device,
                                    int threads, bool trace, const backend::Variants& variants,
                                    bool dry = false);

/// An engine with the keys of one client.
struct DiscreteServer : DiscreteEngine {
  explicit DiscreteServer(const DiscreteEngine& of) : DiscreteEngine(of) {}

  std::shared_ptr<const discrete::Evaluator> evaluator;
  std::shared_ptr<rlwe::KeyRecorder> recorder;  // null unless it finds out which keys are used
  std::shared_ptr<Counters> counters = std::make_shared<Counters>();
};

/// Throws ParamsMismatch unless both are the same parameters. what: the subject of the message,
/// e.g. "the ciphertext is".
void require_same(const discrete::Params& expected, const discrete::Params& given,
                  const char* what);
/// level or, if it is -1, the top one. Throws InvalidArgument outside -1 .. depth.
int checked_level(const discrete::Params& params, int level);

/// The rotations of rows for which keys are made, as Python says it: steps over all N slots, of
/// which N/2 is an exchange of the rows, or "powers".
std::vector<int> discrete_key_rotations(const discrete::Params& params, const Rotations& rotations);

/// A copy in the host's memory.
discrete::Ciphertext host_copy(const discrete::Ciphertext& x);
bool is_on_host(const discrete::Ciphertext& x);

void bind_discrete_params(nb::module_& m);
void bind_discrete_values(nb::module_& m);
void bind_discrete_client(nb::module_& m);
void bind_discrete_evaluator(nb::module_& m);
void bind_discrete_captured(nb::module_& m);

}  // namespace jali::python
