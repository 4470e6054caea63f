// What the operations of TFHE demand of their callers: shapes, indices, overlaps. Every engine
// calls the check of an operation first. A wrong argument throws InvalidArgument, whose sentence
// names the operation. Nothing of a device's memory is read, so that the checks cost nothing beside
// the work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "jali/backend/tfhe_ops.h"

namespace jali::backend {

void check_prepare_rotation_key(const TfheConfig& config, const void* out, const void* ggsws,
                                std::size_t first, std::size_t count);
void check_prepare_switch_key(const void* out, const void* rows);
void check_prepare_packing_key(const TfheConfig& config, const void* out, LweDimension from,
                               const void* bodies);
void check_copy_in_seeded(LweView out, const void* bodies);
void check_key_switch(const TfheConfig& config, LweView out, ConstLweView in,
                      const void* switch_key);
void check_bootstrap(const TfheConfig& config, LweView out, ConstLweView in,
                     const TableView& tables, const void* rotation_key);
void check_switch_bootstrap(const TfheConfig& config, LweView out, ConstLweView in,
                            const TableView& tables, const void* switch_key,
                            const void* rotation_key);
void check_bootstrap_switch(const TfheConfig& config, LweView out, ConstLweView in,
                            const TableView& tables, const void* switch_key,
                            const void* rotation_key);
void check_blind_rotate(const TfheConfig& config, GlweView out, ConstLweView in,
                        const TableView& tables, const void* rotation_key);
void check_combine(LweView out, ConstLweView in, const LweCombination& combination);
void check_extract(const TfheConfig& config, LweView out, ConstGlweView in,
                   std::span<const std::uint32_t> coefficients, std::size_t per);
void check_pack(const TfheConfig& config, GlweView out, ConstLweView in,
                std::span<const std::uint32_t> coefficients, std::size_t per,
                const void* packing_key);

}  // namespace jali::backend
