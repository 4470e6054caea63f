// log2 and exp2 that round the same way on every machine. Two libraries of mathematics may differ
// in the last bit, but parameters must depend on their literal alone.
#pragma once

namespace jali::params {

/// log2(x) for finite x > 0, with an error of at most 2^-50, which is relative if |log2 x| > 1.
double portable_log2(double x);

/// 2^x for |x| < 1000, with a relative error of at most 2^-50.
double portable_exp2(double x);

}  // namespace jali::params
