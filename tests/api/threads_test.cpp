#include "jali/api/threads.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "jali/base/error.h"

namespace jali {
namespace {

class Threads : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* value = std::getenv(kName)) before_ = value;
  }
  void TearDown() override { before_ ? setenv(kName, before_->c_str(), 1) : unsetenv(kName); }
  static constexpr const char* kName = "JALI_NUM_THREADS";

 private:
  std::optional<std::string> before_;
};

TEST_F(Threads, FollowTheEnvironment) {
  for (const char* text : {"1", "7", "1024"}) {
    setenv(kName, text, 1);
    EXPECT_EQ(default_threads(), std::atoi(text));
  }
}

TEST_F(Threads, AreTheCoresOtherwise) {
  unsetenv(kName);
  const int cores = default_threads();
  EXPECT_GE(cores, 1);
  EXPECT_LE(cores, 1024);
  setenv(kName, "", 1);
  EXPECT_EQ(default_threads(), cores);
}

TEST_F(Threads, RefuseAnythingElse) {
  for (const char* text : {"0", "-1", "1025", "99999999999999999999", "two", "1.5", "4 ", " 4"}) {
    setenv(kName, text, 1);
    EXPECT_THROW(default_threads(), InvalidArgument) << text;
  }
}

}  // namespace
}  // namespace jali
