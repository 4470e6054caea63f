// Every operation on the CPU engine, run at once and recorded.
#include "every_operation.h"

#include <gtest/gtest.h>

#include "../schemes/tfhe/world.h"
#include "../seeded.h"

namespace jali::integers::test {
namespace {

void expect_all(IntegerType type) {
  JALI_SEEDED(rng);
  const auto params = jali::test::insecure_params();
  tfhe::Client client(params);
  const std::shared_ptr<const backend::TfheOps> engine = backend::make_cpu_tfhe(params->config());
  IntegerWorld w(std::make_shared<const tfhe::Evaluator>(engine, client.evaluation_keys()), client);
  for (const bool recorded : {false, true}) expect_every_operation(w, type, recorded, rng);
}

TEST(EveryOperation, OfUnsignedBytes) { expect_all({8, false}); }
TEST(EveryOperation, OfSignedBytes) { expect_all({8, true}); }
TEST(EveryOperationLong, OfWiderIntegers) {
  for (const int bits : {16, 32, 64}) {
    expect_all({bits, false});
    expect_all({bits, true});
  }
}

}  // namespace
}  // namespace jali::integers::test
