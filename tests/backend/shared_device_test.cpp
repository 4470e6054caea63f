// Engines that share one device.
#include <gtest/gtest.h>

#include <vector>

#include "jali/arith/primes.h"
#include "jali/backend/engines.h"
#include "jali/backend/ring_ops.h"
#include "jali/base/error.h"
#include "jali/device/device.h"

namespace jali::backend {
namespace {

Config config(Word word, std::size_t n, int bits) {
  return {word, n, {arith::prime_below(std::uint64_t{1} << bits, 2 * n).value()}, 1, ""};
}

TEST(SharedDevice, TwoEnginesHaveOnePoolAndOneGraph) {
  const auto device = device::host_device();
  const auto a = make_cpu_engine(config(Word::w32, 1024, 29), device);
  const auto b = make_cpu_engine(config(Word::w64, 2048, 60), device);
  EXPECT_EQ(a->pool(), b->pool());
  EXPECT_EQ(a->memory(), b->memory());
  const std::vector<PrimeIndex> limb{0};
  auto x = a->pool()->allocate(1024 * 4), y = b->pool()->allocate(2048 * 8);
  const View vx{x.data(), limb, 1}, vy{y.data(), limb, 1};
  a->memory()->fill(x.data(), 0, x.bytes()), b->memory()->fill(y.data(), 0, y.bytes());
  const std::vector<std::uint64_t> one{1};
  const auto graph = device->record([&] {
    a->ring().add_scalar(vx, vx, one);
    b->ring().add_scalar(vy, vy, one);
  });
  const auto before_x = *static_cast<const std::uint32_t*>(x.data());
  const auto before_y = *static_cast<const std::uint64_t*>(y.data());
  graph->run(), graph->run();
  EXPECT_EQ(*static_cast<const std::uint32_t*>(x.data()), before_x + 2);
  EXPECT_EQ(*static_cast<const std::uint64_t*>(y.data()), before_y + 2);
}

TEST(SharedDevice, AnEngineRefusesADeviceOfAnotherKind) {
  EXPECT_THROW(make_cpu_engine(config(Word::w32, 1024, 29), nullptr), InvalidArgument);
  if (has_cuda()) {
    EXPECT_THROW(make_cuda_engine(config(Word::w32, 1024, 29), device::host_device()),
                 InvalidArgument);
  }
}

}  // namespace
}  // namespace jali::backend
