// The word that a kind of device chooses.
#include "jali/params/ckks/for_device.h"

#include <gtest/gtest.h>

#include "jali/base/error.h"
#include "jali/params/ckks/presets.h"

namespace jali::params {
namespace {

ckks::Literal literal(int depth, double scale_bits, int log_n = 0) {
  ckks::Literal out;
  out.depth = depth;
  out.scale_bits = scale_bits;
  out.log_n = log_n;
  return out;
}

TEST(ForDevice, AGpuChoosesTheWordThatTheRequestLeavesOpen) {
  const auto open = literal(7, 40);
  EXPECT_EQ(create_for(DeviceKind::cuda, open)->word(), Word::w32);
  EXPECT_EQ(create_for(DeviceKind::cpu, open)->hash(), ckks::Params::create(open)->hash());
  EXPECT_NE(create_for(DeviceKind::cpu, open)->word(), Word::w32);
  ckks::Literal named = open;
  named.word = Word::w64;
  EXPECT_EQ(create_for(DeviceKind::cuda, named)->hash(), ckks::Params::create(named)->hash());
}

TEST(ForDevice, AGpusWordGivesWayToASmallerRing) {
  int others = 0;
  for (int depth = 0; depth < 24; ++depth) {
    const auto cpu = create_for(DeviceKind::cpu, literal(depth, 30));
    const auto gpu = create_for(DeviceKind::cuda, literal(depth, 30));
    EXPECT_LE(gpu->log_n(), cpu->log_n()) << depth;
    others += gpu->word() == Word::w32 ? 0 : 1;
  }
  EXPECT_GT(others, 0);
}

TEST(ForDevice, PresetsHaveAWordForEachKind) {
  EXPECT_EQ(preset_for(DeviceKind::cuda, "n14_q285_dnum3")->word(), Word::w32);
  EXPECT_EQ(preset_for(DeviceKind::cpu, "n14_q285_dnum3")->hash(),
            ckks::Params::create(preset("n14_q285_dnum3"))->hash());
  EXPECT_EQ(preset_for(DeviceKind::cuda, "n14_q285_dnum3", Word::w64)->word(), Word::w64);
  EXPECT_THROW(preset_for(DeviceKind::cuda, "nothing"), InvalidArgument);
}

TEST(ForDevice, ARefusalIsThatOfTheOwnChoice) {
  const auto impossible = literal(60, 40, 13);
  EXPECT_THROW(create_for(DeviceKind::cuda, impossible), InsecureParams);
}

TEST(ForDevice, NamesOfKinds) {
  EXPECT_EQ(device_kind("cpu"), DeviceKind::cpu);
  EXPECT_EQ(device_kind("cuda"), DeviceKind::cuda);
  EXPECT_EQ(device_kind("cuda:3"), DeviceKind::cuda);
  EXPECT_THROW(device_kind("auto"), InvalidArgument);
  EXPECT_THROW(device_kind("cpu/avx2"), InvalidArgument);
}

}  // namespace
}  // namespace jali::params
