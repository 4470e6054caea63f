// The choice among implementations: an unknown one is refused before a device is looked for.
#include <gtest/gtest.h>

#include <set>

#include "jali/backend/engines.h"
#include "jali/base/error.h"

namespace jali::testing {
namespace {

backend::Config config(std::map<std::string, std::string> variants) {
  backend::Config c{Word::w32, 1024, {12289}, 1, ""};
  c.variants = std::move(variants);
  return c;
}

TEST(CudaVariants, EveryFamilyHasADefaultAndNoNameTwice) {
  std::set<std::string> families;
  for (const auto& family : backend::cuda_variants()) {
    EXPECT_TRUE(families.insert(family.family).second) << family.family;
    ASSERT_FALSE(family.names.empty());
    EXPECT_EQ(family.names.front(), "auto");
    EXPECT_EQ(std::set<std::string>(family.names.begin(), family.names.end()).size(),
              family.names.size());
  }
  EXPECT_EQ(families.empty(), !backend::has_cuda());
}

TEST(CudaVariants, UnknownNamesAreRefused) {
  if (!backend::has_cuda()) GTEST_SKIP() << "this build has no CUDA engine";
  EXPECT_THROW(backend::make_cuda_engine(config({{"fft", "auto"}})), InvalidArgument);
  EXPECT_THROW(backend::make_cuda_engine(config({{"ntt", "cooley"}})), InvalidArgument);
  try {
    backend::make_cuda_engine(config({{"ntt", "cooley"}}));
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("two_pass"), std::string::npos) << error.what();
  }
}

TEST(CudaVariants, EveryNameMakesAnEngine) {
  if (backend::cuda_device_count() == 0) GTEST_SKIP() << "no NVIDIA GPU on this machine";
  for (const auto& family : backend::cuda_variants()) {
    for (const auto& name : family.names) {
      EXPECT_EQ(
          backend::make_cuda_engine(config({{family.family, name}}))->config().variants.size(), 1u);
    }
  }
}

}  // namespace
}  // namespace jali::testing
