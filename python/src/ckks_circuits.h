// The plans of circuits that Python holds.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "binding.h"
#include "jali/circuits/ckks/comparison.h"
#include "jali/circuits/ckks/function.h"
#include "jali/circuits/ckks/layout.h"
#include "jali/circuits/common/shared.h"

namespace jali::python {

/// "residues", "integers" or "streamed". Throws InvalidArgument for anything else.
ckks::Storage storage_of(const std::string& name);

/// The packing of ciphertext `part` of a layout. Throws InvalidArgument if it has none.
const ckks::Packing& packing_in(const circuits::Layout& layout, std::size_t part);

struct MatVec {
  std::shared_ptr<circuits::Shared<circuits::MatVec>> plan;
};
struct LinearTransform {
  std::shared_ptr<circuits::Shared<circuits::LinearTransform>> plan;
  bool complex_values = false;  // whether a diagonal is complex
};
struct Polynomial {
  std::shared_ptr<const circuits::PolynomialPlan> plan;
};
struct Function {
  circuits::FunctionPtr plan;
};
struct Maximum {
  std::shared_ptr<const circuits::Maximum> plan;
};
struct ArgMax {
  std::shared_ptr<const circuits::ArgMax> plan;
};

/// The least and the largest number that can occur.
using Within = std::optional<std::pair<double, double>>;
inline std::optional<approx::Interval> interval_of(const Within& within) {
  if (!within) return std::nullopt;
  return approx::Interval{within->first, within->second};
}

}  // namespace jali::python
