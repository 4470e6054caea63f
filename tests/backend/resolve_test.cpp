// Tests which engine the name of a device means: the choices of the tuning file are added to
// device::resolve.
#include "jali/backend/resolve.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "jali/arith/primes.h"
#include "jali/base/error.h"
#include "jali/device/tuning.h"

namespace jali::backend {
namespace {

/// A tuning file in a folder of its own, for one test.
class File {
 public:
  File() {
    std::string name = (std::filesystem::temp_directory_path() / "jali_resolve_XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~File() { std::filesystem::remove_all(folder_); }
  std::filesystem::path path() const { return folder_ / "tune.tsv"; }

  device::Surroundings around(const std::string& wanted = {}, int gpus = 0,
                              const std::string& trouble = {}) const {
    return {wanted, [=] { return gpus; }, [=] { return trouble; }, path().string()};
  }

 private:
  std::filesystem::path folder_;
};

TEST(Resolve, TakesWhatTheTuningFileSays) {
  const File file;
  device::Tuning tuning;
  tuning.choose(device::hardware("cpu"), "w52", 14, {{"isa", "portable"}});
  tuning.choose("another machine", "w64", 12, {{"isa", "abacus"}});
  tuning.write(file.path());
  const auto here = file.around();
  for (const char* name : {"cpu", "auto"}) {
    const auto r = resolve(name, Word::w52, 14, here);
    EXPECT_EQ(r.device, "cpu");
    EXPECT_EQ(r.variants, (Variants{{"isa", "portable"}}));
    EXPECT_EQ(r.warning, "");
  }
  EXPECT_EQ(resolve("auto", Word::w52, 14, file.around("cpu/avx2")).variants, Variants{});
  // Rings that were not measured and engines that are asked for by name have no choices.
  EXPECT_EQ(resolve("cpu", Word::w52, 15, here).variants, Variants{});
  EXPECT_EQ(resolve("cpu", Word::w64, 12, here).variants, Variants{});
  for (const char* name : {"cpu/avx2", "ref", "abacus"}) {
    EXPECT_EQ(resolve(name, Word::w52, 14, here).device, name);
    EXPECT_EQ(resolve(name, Word::w52, 14, here).variants, Variants{});
  }
}

TEST(Resolve, TakesAGpusVariants) {
  if (!has_cuda()) GTEST_SKIP() << "this build has no CUDA engine";
  const File file;
  const Variants choices = {{"ntt", "cluster"}, {"conversion", "tensor"}};
  device::Tuning tuning;
  tuning.choose(device::hardware("cuda:0"), "w32", 16, choices);
  tuning.write(file.path());
  const auto r = resolve("auto", Word::w32, 16, file.around("", 1));
  EXPECT_EQ(r.device, "cuda:0");
  EXPECT_EQ(r.variants, choices);
}

TEST(Resolve, WarnsOfWhatCannotBeUsed) {
  const File file;
  const std::string ring = device::hardware("cpu") + "\tw32\t14\t";
  for (const std::string& text :
       {std::string("{}"), "jali tune 2\n" + ring + "isa=abacus\n",
        "jali tune 2\n" + ring + "ntt=cluster\n", "jali tune 2\n" + ring + "isa\n"}) {
    std::ofstream(file.path()) << text;
    const auto r = resolve("auto", Word::w32, 14, file.around("", 0, "it is too old:"));
    EXPECT_EQ(r.device, "cpu");
    EXPECT_EQ(r.variants, Variants{}) << text;
    EXPECT_NE(r.warning.find("there is a GPU: it is too old"), std::string::npos) << r.warning;
    EXPECT_NE(r.warning.find("run 'jali tune' again"), std::string::npos) << r.warning;
    EXPECT_NE(r.warning.find(file.path().string()), std::string::npos) << r.warning;
  }
}

TEST(Resolve, NamesTheVariantsOfADevice) {
  const auto cpu = variant_families("cpu");
  ASSERT_EQ(cpu.size(), 1);
  EXPECT_EQ(cpu[0].family, "isa");
  EXPECT_EQ(cpu[0].names.front(), "auto");
  EXPECT_EQ(cpu[0].names.back(), "portable");
  EXPECT_EQ(variant_families("cuda:0").size(), cuda_variants().size());
  EXPECT_TRUE(variant_families("ref").empty());
}

TEST(MakeEngine, TakesTheInstructionSetFromTheVariants) {
  const std::uint64_t prime = arith::prime_below(std::uint64_t{1} << 60, 2048).value();
  const auto name = [&](const std::string& device, const Variants& variants) {
    return make_engine(
               {.word = Word::w64, .n = 1024, .primes = {prime}, .isa = {}, .variants = variants},
               device)
        ->name();
  };
  EXPECT_EQ(name("cpu", {{"isa", "portable"}}), "cpu/portable");
  EXPECT_EQ(name("cpu/portable", {{"isa", "abacus"}}), "cpu/portable");
  EXPECT_EQ(name("cpu", {{"isa", "auto"}}), name("cpu", {}));
  EXPECT_THROW(name("cpu", {{"isa", "abacus"}}), Unsupported);
  EXPECT_THROW(name("abacus", {}), NoDevice);
  EXPECT_THROW(name("cuda:x", {}), InvalidArgument);
}

}  // namespace
}  // namespace jali::backend
