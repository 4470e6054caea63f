// Which device a name means.
#include "jali/device/resolve.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>

#include "jali/base/error.h"
#include "jali/device/gpu.h"
#include "jali/device/tuning.h"

namespace jali::device {
namespace {

/// An empty folder for one test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "jali_resolve_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

Surroundings around(const std::string& wanted, int gpus, const std::string& trouble = {},
                    const std::string& file = {}) {
  return {wanted, [=] { return gpus; }, [=] { return trouble; }, file};
}

/// Surroundings in which the driver must not be woken.
Surroundings unseen(const std::string& wanted) {
  return {wanted,
          [] {
            ADD_FAILURE() << "asked for GPUs";
            return 0;
          },
          [] {
            ADD_FAILURE() << "asked for GPUs";
            return std::string();
          },
          {}};
}

TEST(Resolve, AutoIsWhatTheEnvironmentNamesElseTheBestThereIs) {
  const auto device = [](const std::string& name, const std::string& wanted, int gpus) {
    return resolve(name, around(wanted, gpus)).device;
  };
  EXPECT_EQ(device("auto", "", 0), "cpu");
  EXPECT_EQ(device("auto", "", 2), "cuda:0");
  EXPECT_EQ(device("auto", "cuda:1", 2), "cuda:1");
  EXPECT_EQ(device("auto", "cuda", 0), "cuda:0");  // whoever opens it says that there is none
  EXPECT_EQ(device("auto", "cpu/portable", 1), "cpu/portable");
  EXPECT_EQ(device("auto", "auto", 1), "cuda:0");
  EXPECT_EQ(device("auto", "auto", 0), "cpu");
}

TEST(Resolve, ANameWinsOverTheEnvironment) {
  for (const char* name : {"cpu", "cuda:0", "cuda:12", "cpu/avx2", "ref", "abacus"}) {
    EXPECT_EQ(resolve(name, unseen("cuda:7")).device, name);
    EXPECT_EQ(resolve("auto", unseen(name)).device, name);
  }
  EXPECT_EQ(resolve("cuda", unseen("cpu")).device, "cuda:0");
}

TEST(Resolve, WarnsOfAGpuThatCannotBeUsed) {
  const auto here = around("", 0, "no code for the generation of cuda:0: use device=\"cpu\"");
  const auto best = resolve("auto", here);
  EXPECT_EQ(best.device, "cpu");
  EXPECT_NE(best.warning.find("no code for the generation"), std::string::npos);
  EXPECT_EQ(resolve("cpu", here).warning, "");
}

TEST(Resolve, RefusesWhatIsNoNumberOfAGpu) {
  for (const char* name : {"cuda:", "cuda:x", "cuda:-1", "cuda:1.5", "cuda:12345"}) {
    EXPECT_THROW(resolve(name, unseen("")), InvalidArgument) << name;
    EXPECT_THROW(resolve("auto", unseen(name)), InvalidArgument) << name;
  }
  EXPECT_EQ(gpu_number("cuda:17"), 17);
  EXPECT_EQ(gpu_number("cuda"), 0);
  EXPECT_EQ(gpu_number("cpu"), std::nullopt);
}

TEST(Resolve, TakesWhatTheTuningFileSays) {
  const Folder folder;
  const auto file = folder / "deeper/tune.tsv";
  Tuning tuning;
  tuning.choose(hardware("cpu"), "w52", 14, {{"isa", "portable"}});
  tuning.choose(hardware("cuda:0"), "w32", 16, {{"ntt", "cluster"}, {"conversion", "tensor"}});
  tuning.choose("another machine", "w64", 12, {{"isa", "avx2"}});
  tuning.write(file);
  const auto here = around("", 1, "", file.string());
  const auto cpu = resolve("cpu", "w52", 14, here);
  EXPECT_EQ(cpu.device, "cpu/portable");
  EXPECT_TRUE(cpu.variants.empty());
  const auto gpu = resolve("auto", "w32", 16, here);
  EXPECT_EQ(gpu.device, "cuda:0");
  EXPECT_EQ(gpu.variants, (Choices{{"ntt", "cluster"}, {"conversion", "tensor"}}));
  // A device stays as it is if it was not measured, or if the name says which engine to take.
  EXPECT_EQ(resolve("cpu", "w52", 15, here).device, "cpu");
  EXPECT_EQ(resolve("cpu", "w64", 12, here).device, "cpu");
  EXPECT_EQ(resolve("cpu/avx2", "w52", 14, here).device, "cpu/avx2");
  EXPECT_EQ(resolve("ref", "w52", 14, here).device, "ref");
}

TEST(Tuning, KeepsWhatItHad) {
  const Folder folder;
  const auto file = folder / "tune.tsv";
  Tuning first = Tuning::read(file);
  EXPECT_TRUE(first.chosen("a", "w32", 14).empty());
  first.choose("a, 2 cores", "w32", 14, {{"isa", "avx2"}});
  first.write(file);
  Tuning second = Tuning::read(file);
  second.choose("b", "w64", 13, {});
  second.write(file);
  const Tuning third = Tuning::read(file);
  EXPECT_EQ(third.chosen("a, 2 cores", "w32", 14), (Choices{{"isa", "avx2"}}));
  EXPECT_TRUE(third.chosen("b", "w64", 13).empty());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file.parent_path()), {}), 1);
}

TEST(Tuning, NamesTheLineOfADamagedFile) {
  const Folder folder;
  const auto file = folder / "tune.tsv";
  const std::string good = "jali tune 2\na\tw32\t14\tisa=avx2\n";
  for (const auto& [text, line] : {std::pair<std::string, std::string>{"{}", "line 1"},
                                   {"jali tune 1\n", "line 1"},
                                   {good + "a\tw32\n", "line 3"},
                                   {good + "a\tw32\tx\tisa=avx2\n", "line 3"},
                                   {good + "a\tw32\t999\tisa=avx2\n", "line 3"},
                                   {good + "a\tw32\t14\tisa\n", "line 3"},
                                   {good + "a\tw32\t14\t=avx2\n", "line 3"},
                                   {good + "\n", "line 3"}}) {
    std::ofstream(file) << text;
    try {
      Tuning::read(file);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(line), std::string::npos) << error.what();
    }
    const auto r = resolve("cpu", "w32", 14, around("", 0, "", file.string()));
    EXPECT_EQ(r.device, "cpu");
    EXPECT_NE(r.warning.find("run 'jali tune' again"), std::string::npos) << r.warning;
  }
}

TEST(Tuning, RefusesWhatTheFileCannotHold) {
  Tuning tuning;
  EXPECT_THROW(tuning.choose("a\tb", "w32", 14, {}), InvalidArgument);
  EXPECT_THROW(tuning.choose("a\n", "w32", 14, {}), InvalidArgument);
  EXPECT_THROW(tuning.choose("a", "w32", 140, {}), InvalidArgument);
  EXPECT_THROW(tuning.choose("a", "w32", 14, {{"x=y", "z"}}), InvalidArgument);
  EXPECT_THROW(tuning.choose("a", "w32", 14, {{"x", ""}}), InvalidArgument);
}

TEST(Tuning, SaysWhyItCannotBeWritten) {
  const Folder folder;
  std::ofstream(folder / "file") << "no folder";
  EXPECT_THROW(Tuning().write(folder / "file/tune.tsv"), Unsupported);
}

}  // namespace
}  // namespace jali::device
