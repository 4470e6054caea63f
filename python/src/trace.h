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
                                                const rlwe::Params& params,
                                                std::shared_ptr<backend::Trace> sink) {
  backend::trace::KeyLayout keys{{}, params.p_count()};
  for (std::size_t d = 0; d < params.dnum(); ++d) {
    keys.digits.push_back(params.digit_begin(d + 1) - params.digit_begin(d));
  }
  std::shared_ptr<const backend::Engine> inner(ring, &ring->engine());
  return std::make_shared<const ring::Ring>(
      backend::make_trace_engine(std::move(inner), std::move(sink), std::move(keys)),
      ring->checkpoint());
}

}  // namespace jali::python
