// Matrices in the clear that an evaluator of exact integers keeps.
#pragma once

#include "binding.h"

namespace jali::python {

void bind_discrete_matrix(nb::module_& m);

}  // namespace jali::python
