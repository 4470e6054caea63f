#include "jali/schemes/tfhe/bounds.h"

#include "jali/base/error.h"

namespace jali::tfhe {

std::string norm_text(double norm2) {
  std::string out = std::to_string(norm2);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out;
}

void check_norm(const Params& params, double norm2) {
  require<RangeExceeded>(norm2 <= params.max_norm2(), [&] {
    return "the noise would be that of a combination of squared norm " + norm_text(norm2) +
           " of fresh ciphertexts, and these parameters allow " + norm_text(params.max_norm2()) +
           ": bootstrap the operands before (apply or refresh), or use smaller factors";
  });
}

std::size_t common_size(std::size_t a, std::size_t b) {
  require<InvalidArgument>(a == b || a == 1 || b == 1, [&] {
    return "the operands have " + std::to_string(a) + " and " + std::to_string(b) +
           " elements: use vectors of one length, or one element";
  });
  return a == 1 ? b : a;
}

}  // namespace jali::tfhe
