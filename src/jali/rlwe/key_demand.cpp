#include "jali/rlwe/key_demand.h"

#include <algorithm>
#include <cstdint>

#include "jali/ring/poly.h"

namespace jali::rlwe {

KeyDemand demand_of(std::size_t n, const std::map<int, int>& rotations, int conjugate,
                    int relinearise) {
  KeyDemand demand;
  demand.relinearise = relinearise;
  const auto add = [&](std::uint64_t element, int level) {
    if (element == 1) return;
    const auto [at, fresh] = demand.galois.emplace(element, level);
    if (!fresh) at->second = at->second < 0 || level < 0 ? -1 : std::max(at->second, level);
  };
  for (const auto& [steps, level] : rotations) add(ring::galois_element(n, steps), level);
  if (conjugate != kNoKey) add(ring::conjugation_element(n), conjugate);
  return demand;
}

}  // namespace jali::rlwe
