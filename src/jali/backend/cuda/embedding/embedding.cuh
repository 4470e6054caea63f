// The canonical embedding on the device, with the bits of backend/embedding.cpp.
#pragma once

#include <complex>
#include <cstdint>

#include "jali/backend/cuda/common/shape.cuh"
#include "jali/backend/cuda/common/tables.cuh"
#include "jali/backend/embedding.h"

namespace jali::backend::cuda {

/// An Embedding on the device.
struct EmbeddingTables {
  Constant twiddle;  // double2[slots]
  Constant slot_of;  // uint32[2 slots]: from 2^log_slots on, the slot of each value in leaf order
  EmbeddingTables(const Stream& stream, const Embedding& embedding);
};

/// values: (batch, count) complex, count <= 2^log_slots; w: (batch, 2^log_slots) complex, scratch;
/// out: int64 (batch, N).
void embed(const Stream& stream, const EmbeddingTables& tables, unsigned batch, int log_n,
           int log_slots, double factor, const void* values, unsigned count, void* w,
           std::int64_t* out);

/// integers in [0, Q): (word, batch, N); q_words: Q; w: (batch, 2^log_slots) complex, scratch; out
/// the same, the slots in order.
void unembed(const Stream& stream, const EmbeddingTables& tables, unsigned batch, int log_n,
             int log_slots, double divisor, const std::uint64_t* integers,
             const std::uint64_t* q_words, unsigned words, void* w, void* out);

}  // namespace jali::backend::cuda
