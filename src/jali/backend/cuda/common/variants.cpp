#include "jali/backend/cuda/common/variants.h"

#include <algorithm>
#include <string>

#include "jali/base/error.h"

namespace jali::backend {

std::vector<VariantFamily> cuda_variants() {
  return {
      {"ntt", {"auto", "two_pass", "cluster", "on_the_fly", "dense", "tensor"}},  // NttVariant
      {"conversion", {"auto", "cores", "tensor"}},  // ConversionVariant
  };
}

namespace cuda {

namespace {

// The names and their separators, for messages.
template <class List, class Name>
std::string listed(const List& list, Name&& name) {
  std::string text;
  for (const auto& item : list) text += (text.empty() ? "\"" : ", \"") + name(item) + "\"";
  return text;
}

}  // namespace

std::size_t chosen_variant(const Config& config, std::string_view family) {
  const auto families = cuda_variants();
  const auto known = std::find_if(families.begin(), families.end(),
                                  [&](const VariantFamily& f) { return f.family == family; });
  require<InvalidArgument>(known != families.end(), [&] {
    return "the CUDA engine has no variants of \"" + std::string(family) + "\": its families are " +
           listed(families, [](const VariantFamily& f) { return f.family; });
  });
  const auto choice = config.variants.find(known->family);
  if (choice == config.variants.end()) return 0;
  const auto name = std::find(known->names.begin(), known->names.end(), choice->second);
  require<InvalidArgument>(name != known->names.end(), [&] {
    return "\"" + choice->second + "\" is no variant of \"" + known->family + "\": choose among " +
           listed(known->names, [](const std::string& n) { return n; });
  });
  return static_cast<std::size_t>(name - known->names.begin());
}

void check_variants(const Config& config) {
  for (const auto& [family, name] : config.variants) chosen_variant(config, family);
}

}  // namespace cuda

}  // namespace jali::backend
