// log2 and exp2 that round the same way on every machine. Parameters are a function of their
// literal, and a mathematics library may differ from another in the last bit.
#pragma once

namespace jali::params {

/// log2(x), x > 0 and finite, within 2^-50 of it (relative where |log2 x| > 1).
double portable_log2(double x);

/// 2^x, |x| < 1000, within 2^-50 relative.
double portable_exp2(double x);

}  // namespace jali::params
