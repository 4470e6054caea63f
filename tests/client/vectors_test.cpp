// Manifests and replies that were written once can be read: vectors/client.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "jali/client/secret/client.h"
#include "jali/wire/secret/secret_key.h"
#include "support.h"

namespace jali::client {
namespace {

wire::Bytes content(const std::string& name) {
  std::ifstream in(JALI_VECTORS "/client/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A folder with the manifest of a program, the secret key of its client and a reply.
struct Known {
  explicit Known(const std::string& folder)
      : bytes(content(folder + "manifest.jali")),
        manifest(manifest_from_bytes(bytes, testing::kAnySecurity)),
        ring(ckks::make_ring(*manifest.params)),
        client(manifest, hold(manifest.params, ring,
                              std::make_shared<const rlwe::SecretKey>(wire::secret_from_bytes(
                                  content(folder + "secret_key.jali"), manifest.params, *ring)))),
        reply(content(folder + "reply.jali")) {}

  wire::Bytes bytes;
  Manifest manifest;
  std::shared_ptr<const ring::Ring> ring;
  Client client;
  wire::Bytes reply;
};

TEST(ClientVectors, AreReadAndWrittenAgain) {
  const Known known("");
  EXPECT_EQ(to_bytes(known.manifest), known.bytes);
  EXPECT_EQ(known.manifest.outputs[0].layout.gap, 2u);
  const Message message = message_from_bytes(known.reply, known.manifest, known.client.program(),
                                             Direction::reply, *known.ring);
  EXPECT_EQ(to_bytes(message), known.reply);
  const auto results = known.client.decrypt(message);
  for (std::size_t k = 0; k < 6 * 18; ++k) {
    EXPECT_NEAR(results[0][k], static_cast<double>(k % 18) / 36, 1e-5);
  }
  for (std::size_t k = 0; k < 6; ++k) {
    EXPECT_NEAR(results[1][k], 0.25 * static_cast<double>(k) - 1, 1e-5);
  }
}

// Replies of programs that jali.compile made, with the results that Python's client gave for them:
// results.f64, output after output. Their parameters are secure; the keys of their clients are
// here, so nothing that they encrypt is secret.
TEST(ClientVectors, OfCompiledProgramsGiveTheResultsOfPython) {
  for (const std::string folder : {"dense/", "several/"}) {
    SCOPED_TRACE(folder);
    const Known known(folder);
    EXPECT_NO_THROW(manifest_from_bytes(known.bytes)) << "its security is 128 bits";
    const auto results = known.client.decrypt(message_from_bytes(
        known.reply, known.manifest, known.client.program(), Direction::reply, *known.ring));
    const wire::Bytes expected = content(folder + "results.f64");
    std::vector<double> all;
    for (const auto& output : results) all.insert(all.end(), output.begin(), output.end());
    ASSERT_EQ(expected.size(), all.size() * sizeof(double));
    for (std::size_t k = 0; k < all.size(); ++k) {
      double x = 0;
      std::memcpy(&x, &expected[k * sizeof(x)], sizeof(x));
      // The same up to the roundings of another instruction set.
      EXPECT_NEAR(all[k], x, 1e-12) << k;
    }
  }
}

}  // namespace
}  // namespace jali::client
