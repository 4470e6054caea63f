// bootstrap::Bootstrapper and bootstrap::Packings, on hostile ciphertexts and on known numbers.
#include <cmath>

#include "honest.h"

namespace jali::fuzz {

namespace {

/// As bootstrapping was set up for.
int log_slots(const Run& r) { return r.world.bootstrapper->plan().options().log_slots; }
void pack(const Run& r, Ciphertext& x) {
  x.log_slots = log_slots(r);
  x.packing.length = 0;
}

int target(Run& r) { return r.in.once_in(2) ? -1 : r.level(); }
int iterations(Run& r) { return r.in.once_in(4) ? static_cast<int>(r.in.below(6)) : 1; }

/// Known numbers in all slots, at a level that bootstrapping takes.
Honest input(Run& r, bool complex) {
  const int lowest = r.world.bootstrapper->plan().input_level();
  const auto levels = static_cast<std::size_t>(r.world.o.params->depth() - lowest) + 1;
  const int level = lowest + static_cast<int>(r.in.below(levels));
  return encrypted(r, std::size_t{1} << log_slots(r), log_slots(r), level, complex);
}

/// The same in all slots of the ring, of which bootstrapping with fewer leaves the means.
Honest wide_input(Run& r) {
  const auto& params = *r.world.o.params;
  const int lowest = r.world.bootstrapper->plan().input_level();
  return encrypted(r, params.slots(), params.log_n() - 1, lowest, true);
}

/// In every slot the mean of those that lie a multiple of `period` apart.
std::vector<Complex> means(const std::vector<Complex>& v, std::size_t period) {
  std::vector<Complex> sums(period), out(v.size());
  const double share = static_cast<double>(period) / static_cast<double>(v.size());
  for (std::size_t j = 0; j < v.size(); ++j) sums[j % period] += v[j] * share;
  for (std::size_t j = 0; j < v.size(); ++j) out[j] = sums[j % period];
  return out;
}

/// Stops if the error is far above the deviation that is claimed of it: of eight slots, which share
/// one key, 5 bits. The sine's error, which the claim counts for numbers of the declared size, is
/// within that.
void compare_rounded(const Run& r, const Honest& x) {
  compare(r, x);
  const double claimed = r.ev().noise().precision_bits(x.ciphertext.estimate, x.ciphertext.scale);
  const auto got = r.world.evaluator->encoder().decode(r.world.decryptor.decrypt(x.ciphertext));
  double sum = 0;
  for (std::size_t j = 0; j < got.size(); ++j) sum += std::norm(got[j] - x.slots[j]);
  const double deviation = std::sqrt(sum / (2.0 * static_cast<double>(got.size())));
  if (!(deviation <= std::exp2(5 - claimed))) {
    stop("the result has " + std::to_string(-std::log2(deviation)) + " bits and claims " +
         std::to_string(claimed));
  }
}

std::vector<Complex> real_parts(std::vector<Complex> v) {
  for (Complex& z : v) z = z.real();
  return v;
}

constexpr Operation kOperations[] = {
    {"bootstrap",
     [](Run& r) {
       Ciphertext x = r.ev().copy(r.any());
       if (!r.in.once_in(3)) pack(r, x);
       const int times = iterations(r);
       r.keep(r.world.bootstrapper->apply(x, target(r), {}, times));
     }},
    {"bootstrap a pair",
     [](Run& r) {
       Ciphertext x = r.ev().copy(r.any()), y = r.ev().copy(r.any());
       pack(r, x), pack(r, y);
       auto both = r.world.bootstrapper->apply_pair(x, y, target(r));
       r.keep(std::move(both.first));
       r.keep(std::move(both.second));
     }},
    {"bootstrap any packing",
     [](Run& r) {
       Ciphertext x = r.ev().copy(r.any());
       if (!r.in.once_in(3)) pack(r, x);
       const int times = iterations(r);
       std::optional<bool> real;
       if (r.in.once_in(2)) real = r.in.once_in(2);
       const int packed = r.in.once_in(2) ? -1 : r.in.once_in(2) ? log_slots(r) : r.in.integer();
       r.keep(r.world.packings->apply(x, target(r), times, real, packed));
     }},
    {"bootstrap any pair",
     [](Run& r) {
       Ciphertext x = r.ev().copy(r.any()), y = r.ev().copy(r.any());
       if (!r.in.once_in(3)) pack(r, x), pack(r, y);
       const int times = iterations(r);
       const int packed = r.in.once_in(2) ? -1 : log_slots(r);
       auto both = r.world.packings->apply_pair(x, y, target(r), times, packed);
       r.keep(std::move(both.first));
       r.keep(std::move(both.second));
     }},
    {"prepare a packing",
     [](Run& r) {
       const int packed = r.in.once_in(2) ? r.in.integer() : log_slots(r);
       r.world.packings->prepare(packed, r.in.once_in(2));
     }},
    {"bootstrap known numbers",
     [](Run& r) {
       const bool complex = r.in.once_in(2);
       Honest x = input(r, complex);
       std::optional<bool> real;
       if (r.in.once_in(2)) real = r.in.once_in(2);
       x.ciphertext = r.world.packings->apply(x.ciphertext, target(r), 1, real);
       if (real == true) x.slots = real_parts(std::move(x.slots));
       compare_rounded(r, x);
     }},
    {"bootstrap known numbers with fewer slots",
     [](Run& r) {
       Honest x = wide_input(r);
       x.ciphertext = r.world.packings->apply(x.ciphertext, target(r), 1, false, log_slots(r));
       x.slots = means(x.slots, std::size_t{1} << log_slots(r));
       compare_rounded(r, x);
     }},
    {"bootstrap known pairs",
     [](Run& r) {
       Honest x = input(r, false), y = input(r, false);
       auto both = r.world.packings->apply_pair(x.ciphertext, y.ciphertext, target(r));
       x.ciphertext = std::move(both.first);
       y.ciphertext = std::move(both.second);
       compare_rounded(r, x);
       compare_rounded(r, y);
     }},
};

}  // namespace

std::span<const Operation> bootstrap_operations() { return kOperations; }

}  // namespace jali::fuzz
