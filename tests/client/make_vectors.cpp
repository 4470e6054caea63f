// Writes vectors/client: a manifest, the secret key of its client, and a reply with known numbers,
// from fixed seeds and under insecure parameters. tests/client/vectors_test.cpp and
// tests/api/client.c read them. Usage: make_client_vectors FOLDER
#include <fstream>
#include <iostream>
#include <string>

#include "jali/client/secret/client.h"
#include "support.h"

namespace {

using namespace jali;

void save(const std::string& path, std::span<const std::uint8_t> bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_client_vectors FOLDER\n";
    return 1;
  }
  const std::string folder = argv[1];
  const testing::Objects o(testing::small_literal(Word::w52, 40, 2));
  const client::Manifest manifest = testing::small_manifest(o.params);
  const client::Holder holder = client::hold(o.params, o.ring, o.sk, testing::test_seed(7));
  save(folder + "/manifest.jali", client::to_bytes(manifest));
  save(folder + "/secret_key.jali", wire::secret_to_bytes(*o.sk, *o.ring));
  save(folder + "/reply.jali", client::to_bytes(testing::known_reply(manifest, holder)));
}
