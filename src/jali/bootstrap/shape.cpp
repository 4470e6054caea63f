#include "jali/bootstrap/shape.h"

#include <algorithm>

#include "jali/bootstrap/bootstrapper.h"

namespace jali::bootstrap {

circuits::ReductionOptions reduction_options(const params::BootstrapLiteral& b) {
  return {b.range, b.degree, b.doublings, b.inverse_sine, b.weight};
}

Shape shape_of(const ckks::Params& params, int log_slots) {
  const auto& b = *params.bootstrap();
  const bool raise_first = b.order == params::BootstrapOrder::raise_first;
  Shape shape;
  shape.side_by_side = raise_first && log_slots < params.log_n() - 1;
  auto& to_slots = shape.to_slots;
  to_slots.levels = std::min(b.cts_levels, log_slots);
  to_slots.level = params.top() - b.cts_levels + to_slots.levels;
  to_slots.log_slots = log_slots;
  to_slots.side_by_side = shape.side_by_side;
  // Baby steps that stay over QP are multiplied by their diagonals as they are made. The cost model
  // does not know that. It is faster on CPUs and GPUs, even on few limbs.
  to_slots.bsgs.hoisting = circuits::Hoisting::twice;
  // The cost of launching the ten kernels of a giant step on an H100, which does not depend on the
  // number of limbs.
  to_slots.bsgs.launches = 20;
  auto& to_coefficients = shape.to_coefficients;
  to_coefficients = to_slots;
  to_coefficients.levels = std::min(b.stc_levels, log_slots);
  to_coefficients.level = (raise_first ? params.depth() : 0) + to_coefficients.levels;
  return shape;
}

}  // namespace jali::bootstrap
