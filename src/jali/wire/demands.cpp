#include "jali/wire/demands.h"

#include <cmath>
#include <string>

#include "jali/base/error.h"

namespace jali::wire {

namespace {

constexpr int kMostBits = 1024;  // of security that parameters can state
// Half of the last digit with which parameters state their probability, and a little.
constexpr double kRounding = 0.01;

}  // namespace

void check_demands(const Limits& limits) {
  require<InvalidArgument>(limits.min_security >= 0 && limits.min_security <= kMostBits,
                           "the least security is a number of bits from 0, for any, to 1024");
  require<InvalidArgument>(std::isfinite(limits.max_log2_p_fail) && limits.max_log2_p_fail <= 0,
                           "log2_p_fail, the log2 of the largest probability of failure that is "
                           "accepted, is a number of at most 0, such as -128");
}

void demand_security(const Limits& limits, int security) {
  require<InsecureParams>(security >= limits.min_security, [&] {
    return "cannot read a parameter set: its security is " + std::to_string(security) +
           " bits, and " + std::to_string(limits.min_security) + " were demanded";
  });
}

void demand_failure(const Limits& limits, double log2_p_fail) {
  require<InsecureParams>(
      limits.max_log2_p_fail == 0 || log2_p_fail <= limits.max_log2_p_fail + kRounding, [&] {
        return "cannot read a parameter set: a bootstrapping fails with a probability of up to 2^" +
               std::to_string(log2_p_fail) + ", and at most 2^" +
               std::to_string(limits.max_log2_p_fail) + " was demanded";
      });
}

}  // namespace jali::wire
