// Manifests and replies that were written once can be read: vectors/client.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "jali/client/secret/client.h"
#include "jali/wire/secret/secret_key.h"
#include "support.h"

namespace jali::client {
namespace {

wire::Bytes content(const char* name) {
  std::ifstream in(std::string(JALI_VECTORS "/client/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(ClientVectors, AreReadAndWrittenAgain) {
  const wire::Bytes bytes = content("manifest.jali");
  const Manifest manifest = manifest_from_bytes(bytes, testing::kAnySecurity);
  EXPECT_EQ(to_bytes(manifest), bytes);
  EXPECT_EQ(manifest.outputs[0].layout.gap, 2u);
  const auto ring = ckks::make_ring(*manifest.params);
  auto key = std::make_shared<const rlwe::SecretKey>(
      wire::secret_from_bytes(content("secret_key.jali"), manifest.params, *ring));
  const Client client(manifest, hold(manifest.params, ring, key));
  const wire::Bytes reply = content("reply.jali");
  const Message message =
      message_from_bytes(reply, manifest, client.program(), Direction::reply, *ring);
  EXPECT_EQ(to_bytes(message), reply);
  const auto results = client.decrypt(message);
  for (std::size_t k = 0; k < 6 * 18; ++k) {
    EXPECT_NEAR(results[0][k], static_cast<double>(k % 18) / 36, 1e-5);
  }
  for (std::size_t k = 0; k < 6; ++k) {
    EXPECT_NEAR(results[1][k], 0.25 * static_cast<double>(k) - 1, 1e-5);
  }
}

}  // namespace
}  // namespace jali::client
