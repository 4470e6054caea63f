#include "honest.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace jali::fuzz {

Honest encrypted(Run& r, std::size_t count, int log_slots, int level, bool complex) {
  Honest out;
  out.slots.resize(std::size_t{1} << log_slots);
  const auto number = [&] { return (static_cast<double>(r.in.byte()) - 128) / 128; };
  for (std::size_t j = 0; j < count; ++j) {
    const double re = number();
    out.slots[j] = {re, complex ? number() : 0};
  }
  const auto& params = *r.world.o.params;
  ckks::SecretEncryptor encryptor(r.world.o.sk, r.world.o.ring, r.in.seed());
  out.ciphertext = encryptor.encrypt(
      r.world.evaluator->encoder().encode(out.slots, 1, level, params.scale(level), log_slots),
      params::Declared{kLargest, kLargest});
  out.ciphertext.packing = ckks::packing_of_fresh(count, log_slots, false, complex);
  return out;
}

bool fits(const Run& r, const std::vector<Complex>& slots) {
  double largest = 0;
  for (const Complex z : slots) {
    if (!std::isfinite(z.real()) || !std::isfinite(z.imag())) {
      stop("a number that is not finite was taken");
    }
    largest = std::max(largest, std::abs(z));
  }
  // No coefficient is larger than the largest slot. Primes and errors take less than half of the
  // room.
  return largest < std::exp2(r.world.o.params->literal().integer_bits - 2);
}

void compare(const Run& r, const Honest& x) {
  r.examine(x.ciphertext);
  const double bound = ckks::worst_case_error(x.ciphertext);
  const auto got = r.world.evaluator->encoder().decode(r.world.decryptor.decrypt(x.ciphertext));
  if (got.size() != x.slots.size()) stop("the number of slots has changed");
  constexpr double kDoubles = 1e-12;  // encoder and decoder compute in double precision
  for (std::size_t j = 0; j < got.size(); ++j) {
    if (!(std::abs(got[j] - x.slots[j]) <= bound + kDoubles)) {
      stop("slot " + std::to_string(j) + " is off by " +
           std::to_string(std::abs(got[j] - x.slots[j])) + ", more than the bound of " +
           std::to_string(bound));
    }
  }
  const double rest = ckks::rest_of(x.ciphertext);
  if (rest < params::kUnbounded) {
    const auto held = ckks::numbers_in_slots(x.ciphertext.packing, x.slots.size());
    for (std::size_t j = 0; j < x.slots.size(); ++j) {
      if (held[j] == ckks::kNoNumber && std::abs(x.slots[j]) > rest * (1 + kDoubles))
        stop("slots past the length hold more than is said of them");
    }
  }
}

}  // namespace jali::fuzz
