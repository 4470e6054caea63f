// docs/security.md: secrets have no implicit copies and no printing; the name of a key is drawn at
// random.
#include "jali/lwe/secret/secret_key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <concepts>
#include <ostream>
#include <type_traits>

#include "../tfhe_literals.h"
#include "jali/base/error.h"
#include "jali/lwe/secret/key_generator.h"

namespace jali::lwe {
namespace {

template <class T>
concept Printable = requires(std::ostream& out, const T& x) { out << x; };
static_assert(!std::is_copy_constructible_v<SecretKey> && !std::is_copy_assignable_v<SecretKey> &&
              std::is_nothrow_move_constructible_v<SecretKey> && !Printable<SecretKey>);

TEST(LweSecretKey, HasANameThatSaysNothingOfIt) {
  const ParamsPtr params = test::insecure_params();
  const random::Seed root = random::os_seed();
  KeyGenerator first(params, 1, root), again(params, 1, root);
  const SecretKey one = first.secret_key();
  EXPECT_FALSE(one.id().is_none());
  EXPECT_EQ(one.id(), again.secret_key().id());  // a seed gives the same key with the same name
  EXPECT_NE(one.id(), first.secret_key().id());
  EXPECT_NE(KeyGenerator(params).secret_key().id(), KeyGenerator(params).secret_key().id());
  // The secrets are made of the first two seeds. No expansion of theirs holds the name.
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    std::vector<std::uint8_t> bytes(4096);
    random::Prng(root, seed).fill(bytes);
    const auto& id = one.id().bytes;
    EXPECT_EQ(std::search(bytes.begin(), bytes.end(), id.begin(), id.end()), bytes.end());
  }
}

TEST(LweSecretKey, RefusesBitsOfAnotherNumber) {
  const ParamsPtr params = test::insecure_params();
  EXPECT_THROW(SecretKey(params, SecretBits(11), SecretBits(256), {}), InvalidArgument);
  EXPECT_THROW(SecretKey(params, SecretBits(12), SecretBits(255), {}), InvalidArgument);
  EXPECT_NO_THROW(SecretKey(params, SecretBits(12), SecretBits(256), {}));
}

}  // namespace
}  // namespace jali::lwe
