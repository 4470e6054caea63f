// What Engine and Evaluator objects of Python hold. An automatic and an explicit evaluator share
// one Server.
#pragma once

#include <memory>
#include <string>

#include "binding.h"
#include "checkpoints.h"
#include "counters.h"
#include "jali/backend/trace/trace.h"
#include "jali/bootstrap/plans.h"

namespace jali::python {

/// What the evaluators of all clients share: no part of it depends on a key.
struct Engine {
  ckks::ParamsPtr params;
  std::shared_ptr<const ring::Ring> ring;
  std::string engine;  // name of the backend, even if it is traced
  std::shared_ptr<backend::Trace> trace;  // null if nothing is recorded
  std::shared_ptr<const ckks::Engine> shared;
  std::shared_ptr<const bootstrap::Plans> plans;
  std::shared_ptr<Checkpoints> checkpoints;
  std::shared_ptr<const device::Buffer> probe;  // in the device's memory

  /// Returns when the device has done everything that it was asked to do before.
  void synchronize() const {
    char byte = 0;
    if (!probe->host_accessible()) ring->memory().copy_out(&byte, probe->data(), 1);
  }
};

/// dry: whether the device may also be "dry", which computes nothing.
Engine make_engine(const ckks::ParamsPtr& params, const std::string& device, int threads,
                   bool trace, const backend::Variants& variants, bool dry = false);

/// An engine with the keys of one client.
struct Server : Engine {
  explicit Server(const Engine& of) : Engine(of) {}

  std::shared_ptr<const ckks::Evaluator> evaluator;
  std::shared_ptr<ckks::KeyRecorder> recorder;  // null unless it finds out which keys are used
  // Shared with what tells of fallbacks, which may outlive the server.
  std::shared_ptr<Counters> counters = std::make_shared<Counters>();
};

/// Encodes values, (n,) or (batch, n), at (level, scale). Scale 0 stands for the level's canonical
/// scale.
ckks::Plaintext encode_array(const Server& server, nb::handle values, int level, double scale,
                             std::int64_t slots);

/// Encodes values, (n,) or (batch, n), as integers at a scale. Scale 0 stands for the canonical
/// scale of the top level.
ckks::CompactPlaintext encode_compact(const Server& server, nb::handle values, double scale,
                                      std::int64_t slots);

}  // namespace jali::python
