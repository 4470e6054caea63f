// Checks that several operations on encrypted vectors share.
#pragma once

#include <cstddef>
#include <string>

#include "jali/params/tfhe_params.h"

namespace jali::tfhe {

/// A squared norm as messages name it: without zeros at its end.
std::string norm_text(double norm2);

/// Throws RangeExceeded if the parameters allow for less noise than a combination of this squared
/// norm has.
void check_norm(const Params& params, double norm2);

/// The number of elements of an operation on two vectors, of which one may have a single element.
/// Throws InvalidArgument for other sizes.
std::size_t common_size(std::size_t a, std::size_t b);

}  // namespace jali::tfhe
