// What the operations under a secret key demand of their callers. Every engine calls the check of
// an operation first. A wrong argument throws InvalidArgument, whose sentence names the operation.
// Nothing of a device's memory is read.
#pragma once

#include <cstddef>

#include "jali/backend/secret/tfhe_client_ops.h"

namespace jali::backend {

void check_encrypt_bodies(const void* out, std::size_t count, Torus torus, LweDimension dimension,
                          const std::uint8_t* secret, const std::uint64_t* messages,
                          const Draws& draws);
void check_encrypt_gadget(const void* out, std::size_t count, const std::uint8_t* secret,
                          const GadgetBits& bits, const Draws& draws);
void check_expand(LweView out, const void* bodies);
void check_phases(const std::uint64_t* out, ConstLweView in, const std::uint8_t* secret);

}  // namespace jali::backend
