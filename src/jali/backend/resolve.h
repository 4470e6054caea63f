// Which engine a device's name means.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jali/backend/engines.h"
#include "jali/device/resolve.h"

namespace jali::backend {

/// What there is to choose on a device: on "cpu" the family "isa", the instruction set, on a GPU
/// cuda_variants(); elsewhere nothing. The first name, "auto", is the engine's own choice.
std::vector<VariantFamily> variant_families(const std::string& device);

struct Resolved {
  std::string device;  // as device::Resolved has it
  Variants variants;  // what jali tune found fastest there for the word and the ring
  std::string warning;  // for the user: of a GPU or a tuning file that cannot be used; or empty
};

/// device::resolve, and what the tuning file says of that device for a word and a ring. A name that
/// says which instruction set, such as "cpu/avx2", gets no variants.
Resolved resolve(const std::string& name, Word word, int log_n,
                 const device::Surroundings& around = device::Surroundings::here());

/// device: "auto" (device::resolve), "cuda" or "cuda:K", "cpu", "cpu/portable", "cpu/avx2",
/// "cpu/avx512", "cpu/ifma", "ref" (the slow oracle), "cpu/apart" (the CPU with memory of its own,
/// as a GPU has: for tests). Nothing is tuned: the config says which variants. Throws NoDevice for
/// a device that this build or machine lacks.
std::unique_ptr<Engine> make_engine(Config config, std::string device);

}  // namespace jali::backend
