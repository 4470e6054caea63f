#include "jali/schemes/ckks/diagonal.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "jali/base/error.h"

namespace jali::ckks {

Diagonal encode_diagonal(const Evaluator& evaluator, std::span<const std::complex<double>> values,
                         std::size_t batch, int level, double scale) {
  const auto& params = *evaluator.params();
  require<InvalidArgument>(level >= 0 && level <= params.depth(), [&] {
    return "level " + std::to_string(level) + " is outside 0 to " + std::to_string(params.depth());
  });
  require<InvalidArgument>(std::isfinite(scale) && scale >= 1,
                           "scale must be a number of at least 1");
  const auto& primes = params.level(level).primes;
  std::vector<PrimeIndex> all(primes.begin(), primes.end());
  const auto special = params.p_primes();
  all.insert(all.end(), special.begin(), special.end());
  Diagonal out{evaluator.params(), evaluator.encoder().encode_over(values, batch, all, scale, -1),
               scale};
  double square = 0;
  for (const auto& x : values) {
    square += std::norm(x);
    out.peak = std::max(out.peak, std::abs(x));
  }
  out.message = std::sqrt(square / static_cast<double>(params.slots() * batch));
  return out;
}

Extended multiply_accumulate(const Evaluator& evaluator, std::span<const Extended* const> a,
                             std::span<const Diagonal* const> diagonals) {
  require<InvalidArgument>(!a.empty() && a.size() == diagonals.size(),
                           "give as many diagonals as extended ciphertexts, and at least one");
  std::vector<const ring::Poly*> polys;
  double message = 0, peak = 0;
  for (const Diagonal* d : diagonals) {
    require<ParamsMismatch>(
        d->params == evaluator.params() || d->params->hash() == evaluator.params()->hash(),
        "a diagonal and the evaluator belong to different parameters");
    require<ScaleMismatch>(d->scale == diagonals[0]->scale,
                           "encode every diagonal at the same scale");
    polys.push_back(&d->poly);
    message = std::max(message, d->message);
    peak = std::max(peak, d->peak);
  }
  return evaluator.multiply_accumulate(a, polys, diagonals[0]->scale, message, peak);
}

}  // namespace jali::ckks
