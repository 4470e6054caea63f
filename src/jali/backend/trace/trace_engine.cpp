#include <memory>
#include <string>
#include <utility>

#include "jali/backend/trace/copies.h"
#include "jali/backend/trace/recorder.h"
#include "jali/backend/trace/rns_tracer.h"
#include "jali/backend/trace/tables.h"
#include "jali/backend/trace/trace.h"
#include "jali/base/error.h"

namespace jali::backend {

namespace trace {
namespace {

class TraceEngine final : public Engine {
 public:
  TraceEngine(std::shared_ptr<const Engine> inner, std::shared_ptr<Trace> sink,
              const KeyLayout& keys)
      : Engine(inner->device()),
        inner_(std::move(inner)),
        recorder_(*device(), std::move(sink), header_of(*inner_, keys)) {}

  std::string name() const override { return "trace(" + inner_->name() + ")"; }
  const Config& config() const override { return inner_->config(); }
  const RingOps& ring() const override { return *ring_; }
  const RlweOps& rlwe() const override { return *rlwe_; }
  const EmbeddingOps& embedding() const override { return *embedding_; }
  device::Memory& copies() const override { return *copies_; }
  int threads() const override { return inner_->threads(); }
  /// The work is called again at each run instead of being replayed, so that every run is recorded
  /// here.
  std::unique_ptr<Captured> capture(std::function<void()> work) const override {
    return device::host_device()->record(std::move(work));
  }

 private:
  const std::shared_ptr<const Engine> inner_;
  const Recorder recorder_;
  const std::unique_ptr<device::Memory> copies_ =
      std::make_unique<TraceMemory>(recorder_, memory(), rns_record("copy", {}, {}, 1));
  const std::unique_ptr<const RingOps> ring_ = trace_ring(*this, *inner_, recorder_);
  const std::unique_ptr<const RlweOps> rlwe_ = trace_rlwe(*this, *inner_, recorder_);
  const std::unique_ptr<const EmbeddingOps> embedding_ = trace_embedding(*this, *inner_, recorder_);
};

}  // namespace
}  // namespace trace

std::unique_ptr<Engine> make_trace_engine(std::shared_ptr<const Engine> inner,
                                          std::shared_ptr<Trace> sink, trace::KeyLayout keys) {
  require<InvalidArgument>(inner != nullptr && sink != nullptr,
                           "make_trace_engine needs an engine to record and a sink to record to");
  return std::make_unique<trace::TraceEngine>(std::move(inner), std::move(sink), keys);
}

}  // namespace jali::backend
