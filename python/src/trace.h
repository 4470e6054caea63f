// The record of an engine's operations that Python holds.
#pragma once

#include <memory>
#include <utility>

#include "binding.h"
#include "jali/backend/trace/trace.h"

namespace jali::python {

struct Trace {
  std::shared_ptr<backend::Trace> ptr;
};

/// A ring that computes as `ring` does, and records every operation in `sink`.
inline std::shared_ptr<const ring::Ring> traced(const std::shared_ptr<const ring::Ring>& ring,
                                                std::shared_ptr<backend::Trace> sink) {
  std::shared_ptr<const backend::Engine> inner(ring, &ring->engine());
  return std::make_shared<const ring::Ring>(
      backend::make_trace_engine(std::move(inner), std::move(sink)), ring->checkpoint());
}

}  // namespace jali::python
