#include "jali/circuits/common/rotation_keys.h"

#include <string>

#include "jali/base/error.h"

namespace jali::circuits {

void require_served(std::span<const int> needed, const char* what,
                    const std::function<bool(int)>& served) {
  std::string missing;
  for (int r : needed)
    if (!served(r)) missing += (missing.empty() ? "" : ", ") + std::to_string(r);
  require<KeyMissing>(missing.empty(), [&] {
    return std::string(what) + " needs keys for rotations " + missing +
           ", which were not made: pass rotations() to evaluation_keys";
  });
}

}  // namespace jali::circuits
