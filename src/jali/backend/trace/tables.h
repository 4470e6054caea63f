// Tables that hand every operation to the recorder's inner engine and record it. A table of another scheme is one
// more file beside these.
#pragma once

#include <memory>

#include "jali/backend/embedding_ops.h"
#include "jali/backend/ring_ops.h"
#include "jali/backend/rlwe_ops.h"
#include "jali/backend/trace/recorder.h"

namespace jali::backend::trace {

/// engine: the one that offers the table. Both it and the recorder must outlive the table.
std::unique_ptr<RingOps> trace_ring(const Engine& engine, const Recorder& recorder);
std::unique_ptr<RlweOps> trace_rlwe(const Engine& engine, const Recorder& recorder);
std::unique_ptr<EmbeddingOps> trace_embedding(const Engine& engine, const Recorder& recorder);

}  // namespace jali::backend::trace
