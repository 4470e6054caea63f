// Small parameters of TFHE for tests. They have no security.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "jali/params/tfhe_noise.h"
#include "jali/params/tfhe_params.h"

namespace jali::test {

struct TfheShape {
  tfhe::Rotation rotation = tfhe::Rotation::classic;
  int group = 1;
  tfhe::Order order = tfhe::Order::switch_first;
  tfhe::Torus torus = tfhe::Torus::t64;
  std::size_t n = 12, k = 1, N = 256;
  int message_bits = 2, carry_bits = 2;
};

/// Errors are so small that bootstrapping of sums fails with a probability below 2^-128 for the
/// max_norm2 that the noise formulas give, but at most 50.
inline tfhe::Literal insecure_literal(const TfheShape& shape = {}) {
  tfhe::Literal out;
  out.name = "insecure_test";
  out.torus = shape.torus;
  out.n = tfhe::LweDimension(shape.n);
  out.k = tfhe::GlweDimension(shape.k);
  out.N = tfhe::PolynomialSize(shape.N);
  out.rotation = shape.rotation;
  out.group = shape.group;
  const bool wide = shape.torus == tfhe::Torus::t64;
  out.rotation_gadget = wide ? tfhe::Gadget{15, 2} : tfhe::Gadget{8, 3};
  out.switch_gadget = {4, 5};
  out.lwe_noise_bits = 5;
  out.glwe_noise_bits = wide ? 20 : 2;
  out.message_bits = shape.message_bits;
  out.carry_bits = shape.carry_bits;
  out.order = shape.order;
  out.log2_p_fail = -128;
  out.security = 0;
  out.max_norm2 = std::floor(std::min(
      50.0, tfhe::NoiseModel(out).largest_norm2(out.order, out.log2_p_fail, tfhe::half_box(out))));
  return out;
}

inline tfhe::ParamsPtr insecure_params(const TfheShape& shape = {}) {
  return tfhe::Params::create(insecure_literal(shape));
}

inline std::string name_of(const TfheShape& shape) {
  const char* const rotations[] = {"classic", "multi_bit", "block_binary"};
  return rotations[static_cast<int>(shape.rotation)] + std::string(" group ") +
         std::to_string(shape.group) +
         (shape.order == tfhe::Order::switch_first ? " switch_first " : " bootstrap_first ") +
         std::to_string(backend::torus_bits(shape.torus)) + " bits, k " + std::to_string(shape.k) +
         ", " + std::to_string(shape.message_bits) + "_" + std::to_string(shape.carry_bits);
}

}  // namespace jali::test
