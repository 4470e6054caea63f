// Which device a name means.
#include "jali/device/resolve.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <tuple>

#include "jali/base/error.h"
#include "jali/device/gpu.h"
#include "jali/device/processor.h"
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

Surroundings around(const std::string& wanted, int gpus, const std::string& trouble = {}) {
  return {wanted, [=] { return gpus; }, [=] { return trouble; }, {}};
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

TEST(DeviceName, NamesTheProcessorAndItsCores) {
  EXPECT_EQ(device_name("cpu"),
            processor() + ", " + std::to_string(cores()) + (cores() == 1 ? " core" : " cores"));
  EXPECT_EQ(device_name("cpu/avx2"), device_name("ref"));
  EXPECT_EQ(device_name("cuda"), cuda_device_name(0));
  EXPECT_EQ(device_name("cuda:999"), "");
  EXPECT_TRUE(hardware("cpu").starts_with(device_name("cpu") + ", jali "));
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
                                   {good + "a\tw32\t14\tisa=\xff\n", "line 3"},
                                   {good + "\n", "line 3"}}) {
    std::ofstream(file) << text;
    try {
      Tuning::read(file);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(line), std::string::npos) << error.what();
    }
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

/// A value of the environment for one test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Environment() { set(old_ ? old_->c_str() : nullptr); }

 private:
  void set(const char* value) const {
    value == nullptr ? unsetenv(name_) : setenv(name_, value, /*overwrite=*/1);
  }
  const char* name_;
  std::optional<std::string> old_;
};

TEST(Tuning, LiesInTheUsersCache) {
  const Environment cache("XDG_CACHE_HOME", "/a");
  const Environment home("HOME", "/b");
  EXPECT_EQ(tuning_file(), "/a/jali/tune.tsv");
  EXPECT_EQ(Surroundings::here().tuning_file, "/a/jali/tune.tsv");
  const Environment empty("XDG_CACHE_HOME", "");
  EXPECT_EQ(tuning_file(), "/b/.cache/jali/tune.tsv");
  const Environment nowhere("HOME", nullptr);
  EXPECT_EQ(tuning_file(), "");
  EXPECT_TRUE(Tuning::read(tuning_file()).empty());
  EXPECT_THROW(keep("cpu", {}), Unsupported);
}

TEST(Tuning, KeepsWhatWasMeasuredAndReplacesADamagedFile) {
  const Folder folder;
  const Environment cache("XDG_CACHE_HOME", (folder / "deeper").c_str());
  const Measured first = {{{"w32", 14}, {{"isa", "avx2"}}}, {{"w52", 13}, {}}};
  const auto file = keep("cpu", first);
  EXPECT_EQ(file, folder / "deeper/jali/tune.tsv");
  EXPECT_EQ(Tuning::read(file).measured(hardware("cpu")), first);
  EXPECT_TRUE(Tuning::read(file).measured("another machine").empty());
  keep("cpu", {{{"w32", 14}, {{"isa", "portable"}}}});
  const Measured second = {{{"w32", 14}, {{"isa", "portable"}}}, {{"w52", 13}, {}}};
  EXPECT_EQ(Tuning::read(file).measured(hardware("cpu")), second);
  std::ofstream(file) << "{}";
  EXPECT_THROW(Tuning::read(file), InvalidArgument);
  keep("cpu", first);
  EXPECT_EQ(Tuning::read(file).measured(hardware("cpu")), first);
}

}  // namespace
}  // namespace jali::device
