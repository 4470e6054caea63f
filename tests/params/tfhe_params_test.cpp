// Parameters of TFHE: what is refused, and the sizes that are known before anything is made.
#include "jali/params/tfhe_params.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "../tfhe_literals.h"
#include "jali/base/error.h"

namespace jali::tfhe {
namespace {

using test::insecure_literal;

TEST(TfheParams, RefuseWhatNoEngineCanHold) {
  EXPECT_NO_THROW(Params::create(insecure_literal()));
  struct Case {
    const char* what;
    std::function<void(Literal&)> change;
  };
  const Case cases[] = {
      {"no n", [](Literal& l) { l.n = LweDimension(0); }},
      {"n", [](Literal& l) { l.n = LweDimension(65537); }},
      {"k", [](Literal& l) { l.k = GlweDimension(17); }},
      {"N is no power of two", [](Literal& l) { l.N = PolynomialSize(768); }},
      {"N is too small", [](Literal& l) { l.N = PolynomialSize(128); }},
      {"torus", [](Literal& l) { l.torus = static_cast<Torus>(16); }},
      {"classic with a group", [](Literal& l) { l.group = 2; }},
      {"multi_bit without a group", [](Literal& l) { l.rotation = Rotation::multi_bit; }},
      {"n is no multiple of the group",
       [](Literal& l) {
         l.rotation = Rotation::block_binary;
         l.group = 5;
       }},
      {"an unknown rotation", [](Literal& l) { l.rotation = static_cast<Rotation>(3); }},
      {"more than a word", [](Literal& l) { l.rotation_gadget = {22, 3}; }},
      {"more than a word of 32 bits", [](Literal& l) { l.switch_gadget = {11, 3}; }},
      {"no levels", [](Literal& l) { l.switch_gadget = {4, 0}; }},
      {"a digit of 32 bits", [](Literal& l) { l.rotation_gadget = {32, 1}; }},
      {"noise", [](Literal& l) { l.lwe_noise_bits = 31; }},
      {"negative noise", [](Literal& l) { l.glwe_noise_bits = -1; }},
      {"no message", [](Literal& l) { l.message_bits = 0; }},
      {"more values than coefficients", [](Literal& l) { l.carry_bits = 6; }},
      {"order", [](Literal& l) { l.order = static_cast<Order>(2); }},
      {"norm", [](Literal& l) { l.max_norm2 = 0.5; }},
      {"a norm that is no number", [](Literal& l) { l.max_norm2 = std::nan(""); }},
      {"a probability above 1", [](Literal& l) { l.log2_p_fail = 1; }},
      {"a name with a line feed", [](Literal& l) { l.name = "insecure_\n"; }},
  };
  for (const Case& c : cases) {
    Literal literal = insecure_literal();
    c.change(literal);
    EXPECT_THROW(Params::create(literal), InvalidArgument) << c.what;
  }
}

TEST(TfheParams, ClaimNoSecurityThatTheTableDoesNotGrant) {
  Literal literal = insecure_literal();
  literal.name = "fine";
  EXPECT_THROW(Params::create(literal), InsecureParams);
  literal.security = 127;
  EXPECT_THROW(Params::create(literal), InsecureParams);
  literal.security = 128;
  EXPECT_THROW(Params::create(literal), InsecureParams);
  // The dimensions of message_2_carry_2, whose bootstrapping fails with probability 2^-129.62.
  literal.n = LweDimension(835);
  literal.N = PolynomialSize(2048);
  literal.rotation_gadget = {23, 1};
  literal.switch_gadget = {3, 6};
  literal.lwe_noise_bits = 14;
  literal.glwe_noise_bits = 15;
  literal.max_norm2 = 25;
  literal.log2_p_fail = -200;
  EXPECT_THROW(Params::create(literal), InvalidArgument);
  literal.log2_p_fail = -128;
  EXPECT_NO_THROW(Params::create(literal));
}

TEST(TfheParams, KnowTheirSizes) {
  test::TfheShape shape;
  shape.rotation = Rotation::multi_bit;
  shape.group = 3;
  shape.n = 12;
  shape.k = 2;
  const ParamsPtr params = test::insecure_params(shape);
  EXPECT_EQ(params->large().value, 512u);
  EXPECT_EQ(params->dimension().value, 512u);
  EXPECT_EQ(params->ggsw_count(), 4u * 7);
  EXPECT_EQ(params->glwe_rows(), 4u * 7 * 3 * 2);
  EXPECT_EQ(params->switch_rows(), 512u * 5);
  EXPECT_EQ(params->rotation_key_bytes(), 32 + params->glwe_rows() * 256 * 8);
  EXPECT_EQ(params->switch_key_bytes(), 32 + params->switch_rows() * 4);
  EXPECT_EQ(params->expanded_key_bytes(),
            params->glwe_rows() * 3 * 256 * 8 + params->switch_rows() * 13 * 4);
  EXPECT_EQ(params->ciphertext_bytes(10), 10u * 513 * 8);
  EXPECT_EQ(params->seeded_ciphertext_bytes(10), 32u + 80);
  EXPECT_EQ(params->message_modulus(), 4u);
  EXPECT_EQ(params->value_modulus(), 16u);
  EXPECT_EQ(params->step(), std::uint64_t{1} << 59);
  shape.order = Order::bootstrap_first;
  const ParamsPtr small = test::insecure_params(shape);
  EXPECT_EQ(small->dimension().value, 12u);
  EXPECT_EQ(small->step(), std::uint64_t{1} << 27);
  EXPECT_NE(small->hash(), params->hash());
}

TEST(TfheParams, TheHashDependsOnWhatComputationDoes) {
  const Literal literal = insecure_literal();
  const ParamsHash hash = Params::create(literal)->hash();
  Literal named = literal;
  named.name = "insecure_other";
  EXPECT_EQ(Params::create(named)->hash(), hash);
  const std::function<void(Literal&)> changes[] = {
      [](Literal& l) { l.n = LweDimension(14); },
      [](Literal& l) { l.k = GlweDimension(2); },
      [](Literal& l) { l.N = PolynomialSize(512); },
      [](Literal& l) { l.rotation_gadget.base_log -= 1; },
      [](Literal& l) { l.switch_gadget.levels -= 1; },
      [](Literal& l) { l.lwe_noise_bits += 1; },
      [](Literal& l) { l.glwe_noise_bits += 1; },
      [](Literal& l) { l.message_bits = 1; },
      [](Literal& l) { l.carry_bits = 1; },
      [](Literal& l) { l.order = Order::bootstrap_first; },
      [](Literal& l) { l.max_norm2 = 7; },
      [](Literal& l) {
        l.rotation = Rotation::block_binary;
        l.group = 2;
      },
  };
  for (const auto& change : changes) {
    Literal other = literal;
    change(other);
    EXPECT_NE(Params::create(other)->hash(), hash);
  }
}

}  // namespace
}  // namespace jali::tfhe
