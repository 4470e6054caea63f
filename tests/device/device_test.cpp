#include "jali/device/device.h"

#include <gtest/gtest.h>

#include <cstring>

#include "jali/base/error.h"

namespace jali::device {
namespace {

TEST(HostDevice, SharesOnePoolAmongItsUsers) {
  const auto device = host_device();
  EXPECT_EQ(device->name(), "cpu");
  EXPECT_TRUE(device->memory()->host_accessible());
  const auto block = device->pool()->allocate(1000);
  EXPECT_EQ(block.memory(), device->memory().get());
  EXPECT_GE(device->pool()->bytes_in_use(), 1000U);
}

TEST(HostDevice, RecordsByCallingAgain) {
  const auto device = host_device();
  int calls = 0;
  const auto graph = device->record([&] { ++calls; });
  EXPECT_EQ(calls, 1);
  graph->run(), graph->run();
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(graph->bytes(), 0U);
  EXPECT_TRUE(graph->steps().empty());
}

TEST(HostDevice, ItsStreamHasNothingToWaitFor) {
  const auto device = host_device();
  device->stream().synchronize();
  EXPECT_FALSE(device->stream().recording());
  EXPECT_NO_THROW(device->stream().refuse_recording("an upload"));
}

class RecordingStream final : public Stream {
 public:
  void synchronize() const override {}
  bool recording() const override { return true; }
};

TEST(Stream, RefusesWhatCannotBeRecorded) {
  try {
    RecordingStream().refuse_recording("an upload");
    FAIL() << "not refused";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::strstr(error.what(), "an upload cannot be part of a program"), error.what());
  }
}

}  // namespace
}  // namespace jali::device
