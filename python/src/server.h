// The engine of one Evaluator object of Python, which its automatic and its explicit evaluator share.
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
  std::string engine;  // name of the backend, even if it is traced
  std::shared_ptr<backend::Trace> trace;  // null if nothing is recorded
  std::shared_ptr<ckks::KeyRecorder> recorder;  // null unless it finds out which keys are used
  // Shared with what tells of fallbacks, which may outlive the server.
  std::shared_ptr<Counters> counters = std::make_shared<Counters>();
  device::Buffer probe;  // in the device's memory

  /// Returns when the device has done everything that it was asked to do before.
  void synchronize() const {
    char byte = 0;
    if (!probe.host_accessible()) ring->memory().copy_out(&byte, probe.data(), 1);
  }
};

/// Encodes values, (n,) or (batch, n), at (level, scale). Scale 0 stands for the level's canonical scale.
ckks::Plaintext encode_array(const Server& server, nb::handle values, int level, double scale,
                             std::int64_t slots);

/// Encodes values, (n,) or (batch, n), as integers at a scale. Scale 0 stands for the canonical scale of the top level.
ckks::CompactPlaintext encode_compact(const Server& server, nb::handle values, double scale,
                                      std::int64_t slots);

}  // namespace jali::python
