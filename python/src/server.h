// The engine of one Evaluator object of Python, shared by its automatic and its explicit side.
#pragma once

#include <memory>
#include <string>

#include "binding.h"
#include "counters.h"
#include "jali/backend/trace/trace.h"

namespace jali::python {

struct Server {
  ckks::ParamsPtr params;
  std::shared_ptr<const ring::Ring> ring;
  std::shared_ptr<const ckks::Evaluator> evaluator;
  std::string engine;                     // name of the backend, also when it is traced
  std::shared_ptr<backend::Trace> trace;  // null without one
  mutable Counters counters;
  device::Buffer probe;                   // in the device's memory

  /// Returns when everything asked of the device before is done.
  void synchronize() const {
    char byte = 0;
    if (!probe.host_accessible()) ring->memory().copy_out(&byte, probe.data(), 1);
  }
};

/// values (1-D or 2-D) encoded at (level, scale); scale 0: the level's own.
ckks::Plaintext encode_array(const Server& server, nb::handle values, int level, double scale,
                             std::int64_t slots);

}  // namespace jali::python
