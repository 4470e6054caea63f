// Which loader a target is for: its build says it.
#include <string_view>

namespace jali::fuzz {

extern const std::string_view kLoader;
const std::string_view kLoader = JALI_FUZZ_LOADER;

}  // namespace jali::fuzz
