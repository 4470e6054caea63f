// Implementations among which a user of the engine may choose.
#pragma once

#include <cstddef>
#include <string_view>

#include "jali/backend/config.h"

namespace jali::backend::cuda {

/// Throws InvalidArgument for a family or a name that cuda_variants does not list.
void check_variants(const Config& config);

/// Position in its family's names of what the config chooses; 0, the engine's own choice, by
/// default.
std::size_t chosen_variant(const Config& config, std::string_view family);

/// Of base conversion: inner products on CUDA cores, or of bytes on tensor cores (w32, digits of
/// up to 35 limbs).
enum class ConversionVariant { automatic, cores, tensor };

}  // namespace jali::backend::cuda
