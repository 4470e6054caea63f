// Tables that hand every operation to an inner engine and record it. TFHE's is in tfhe.cpp.
#pragma once

#include <memory>

#include "jali/backend/embedding_ops.h"
#include "jali/backend/ring_ops.h"
#include "jali/backend/rlwe_ops.h"
#include "jali/backend/trace/recorder.h"

namespace jali::backend::trace {

/// engine: the one that offers the table. All arguments must outlive the table.
std::unique_ptr<RingOps> trace_ring(const Engine& engine, const Engine& inner,
                                    const Recorder& recorder);
std::unique_ptr<RlweOps> trace_rlwe(const Engine& engine, const Engine& inner,
                                    const Recorder& recorder);
std::unique_ptr<EmbeddingOps> trace_embedding(const Engine& engine, const Engine& inner,
                                              const Recorder& recorder);

}  // namespace jali::backend::trace
