// Ciphertexts and keys of two secrets are never mixed: every operation refuses before it computes,
// and results carry the name of their key.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fixture.h"
#include "jali/schemes/ckks/array_evaluator.h"
#include "jali/schemes/ckks/batcher.h"
#include "jali/schemes/ckks/program.h"

namespace jali::testing {
namespace {

using ckks::Ciphertext;

const Scheme kScheme{"w52_scale40", Word::w52, 40, 2};

class KeyIdentity : public ::testing::Test {
 protected:
  World w{kScheme}, other{kScheme};
  // It has no keys, so operands are compared with each other alone.
  ckks::Evaluator bare{w.params, w.ring, nullptr};
  Ciphertext mine = w.encrypt(w.vector()), theirs = other.encrypt(other.vector());

  /// A ciphertext of no key: the numbers in the clear, which every key decrypts.
  Ciphertext trivial() {
    Ciphertext x = bare.copy(mine);
    x.key_id = {};
    x.seed.reset();
    for (auto& part : x.parts) part = w.ring->zero(part.primes());
    const auto v = w.vector();
    return w.evaluator->add_plain(x, w.encoder().encode(v, 1, x.level, x.scale));
  }
};

using Operation = std::function<void(const ckks::Evaluator&, const Ciphertext&, const Ciphertext&)>;

std::vector<std::pair<std::string, Operation>> operations_of_two() {
  return {
      {"add", [](const auto& e, const auto& a, const auto& b) { e.add(a, b); }},
      {"sub", [](const auto& e, const auto& a, const auto& b) { e.sub(a, b); }},
      {"add_inplace",
       [](const auto& e, const auto& a, const auto& b) {
         Ciphertext sum = e.copy(a);
         e.add_inplace(sum, b);
       }},
      {"multiply", [](const auto& e, const auto& a, const auto& b) { e.multiply(a, b); }},
      {"stack", [](const auto& e, const auto& a, const auto& b) { e.stack(a, b); }},
      {"batch",
       [](const auto& e, const auto& a, const auto& b) {
         const Ciphertext* both[] = {&a, &b};
         ckks::stack(e, both);
       }},
      {"combine",
       [](const auto& e, const auto& a, const auto& b) {
         e.combine_rescale({{}, {{&a, 1.0}, {&b, 1.0}}}, a.level, a.scale);
       }},
      {"extended",
       [](const auto& e, const auto& a, const auto& b) {
         auto x = e.extend(a);
         e.add_inplace(x, e.extend(b));
       }},
  };
}

TEST_F(KeyIdentity, OperationsRefuseCiphertextsOfTwoKeys) {
  for (const auto& [name, operation] : operations_of_two()) {
    EXPECT_NO_THROW(operation(bare, mine, mine)) << name;
    EXPECT_THROW(operation(bare, mine, theirs), KeyMismatch) << name;
    EXPECT_THROW(operation(bare, theirs, mine), KeyMismatch) << name;
    // An evaluator with keys refuses each operand by itself.
    EXPECT_THROW(operation(*w.evaluator, theirs, theirs), KeyMismatch) << name;
    EXPECT_NO_THROW(operation(*w.evaluator, mine, mine)) << name;
  }
}

TEST_F(KeyIdentity, OneSentenceSaysWhatToDo) {
  try {
    w.evaluator->rotate(theirs, 1);
    FAIL();
  } catch (const KeyMismatch& error) {
    EXPECT_EQ(error.code(), ErrorCode::key_mismatch);
    EXPECT_STREQ(error_code_name(error.code()), "key_mismatch");
    EXPECT_NE(std::string(error.what()).find("evaluation keys of that client"), std::string::npos);
  }
}

TEST_F(KeyIdentity, TheAutomaticEvaluatorRefusesBeforeItConverts) {
  const auto e = std::make_shared<const ckks::Evaluator>(w.params, w.ring, nullptr);
  const ckks::ArrayEvaluator arrays(e);
  // Without a relinearisation key, bringing the product down would fail first.
  const auto shared = [&](const Ciphertext& x) {
    return std::make_shared<const Ciphertext>(bare.copy(x));
  };
  const Ciphertext product = bare.multiply(mine, mine);
  EXPECT_THROW(arrays.multiply(product, theirs), KeyMismatch);
  EXPECT_THROW(arrays.add(bare.drop_to(product, 1), theirs), KeyMismatch);
  EXPECT_THROW(arrays.product(shared(mine), shared(theirs)), KeyMismatch);
  const auto a = arrays.product(shared(mine), shared(mine));
  const auto b = arrays.product(shared(theirs), shared(theirs));
  EXPECT_THROW(arrays.join(a, b), KeyMismatch);
}

TEST_F(KeyIdentity, ResultsCarryTheName) {
  const auto& e = *w.evaluator;
  const auto& id = w.sk->id();
  EXPECT_EQ(mine.key_id, id);
  EXPECT_EQ(e.key_id(), id);
  EXPECT_EQ(e.rotate(mine, 1).key_id, id);
  EXPECT_EQ(e.multiply_relinearise_rescale(mine, mine).key_id, id);
  EXPECT_EQ(e.reduce(e.rotate_extended(e.hoist(mine), 1)).key_id, id);
  EXPECT_EQ(e.bring(mine).key_id, id);
  EXPECT_EQ(e.send_back(mine).key_id, id);
  EXPECT_EQ(w.automatic->sum(mine, 4).key_id, id);
  const auto pk = std::make_shared<const rlwe::PublicKey>(w.keygen->public_key(*w.sk));
  ckks::PublicEncryptor encryptor(pk, w.ring);
  const auto v = w.vector();
  EXPECT_EQ(encryptor.encrypt(w.encoder().encode(v, 1, 1, w.params->scale(1))).key_id, id);
}

TEST_F(KeyIdentity, CiphertextsOfNoKeyMixWithAll) {
  const Ciphertext none = trivial();
  EXPECT_TRUE(none.key_id.is_none());
  for (const auto& [name, operation] : operations_of_two()) {
    EXPECT_NO_THROW(operation(bare, none, mine)) << name;
    EXPECT_NO_THROW(operation(bare, theirs, none)) << name;
    EXPECT_NO_THROW(operation(*w.evaluator, none, none)) << name;
  }
  // The sum belongs to the key of the other operand, on either side.
  EXPECT_EQ(bare.add(none, mine).key_id, w.sk->id());
  EXPECT_EQ(bare.multiply(mine, none).key_id, w.sk->id());
  EXPECT_THROW(bare.add(bare.add(none, mine), theirs), KeyMismatch);
  Ciphertext sum = bare.copy(none);
  bare.add_inplace(sum, theirs);
  EXPECT_EQ(sum.key_id, other.sk->id());
  const ckks::Extended x = bare.extend(none);
  ckks::Extended y = bare.extend(none);
  bare.add_inplace(y, bare.extend(mine));
  EXPECT_TRUE(x.key_id.is_none());
  EXPECT_EQ(y.key_id, w.sk->id());
  EXPECT_NO_THROW(w.decryptor->decrypt(none));
  EXPECT_NO_THROW(other.decryptor->decrypt(none));
}

TEST_F(KeyIdentity, AnotherKeyDecryptsNothing) {
  EXPECT_THROW(other.decryptor->decrypt(mine), KeyMismatch);
  for (const auto check : {ckks::Check::yes, ckks::Check::no}) {
    EXPECT_THROW(ckks::decrypt(*other.decryptor, w.encoder(), mine, check), KeyMismatch);
  }
}

TEST_F(KeyIdentity, ProgramsAndBatchesRefuseAnotherKey) {
  const auto e = std::make_shared<const ckks::Evaluator>(w.params, w.ring, nullptr);
  const Ciphertext* example[] = {&mine};
  ckks::Program twice(
      e,
      [&](std::span<const Ciphertext> x) {
        std::vector<Ciphertext> out;
        out.push_back(e->add(x[0], x[0]));
        return out;
      },
      example);
  EXPECT_EQ(twice.run(example).front().key_id, w.sk->id());
  const Ciphertext* another[] = {&theirs};
  EXPECT_THROW(twice.run(another), KeyMismatch);
  ckks::Batcher batcher(e, [&](const Ciphertext& x) { return e->add(x, x); });
  const Ciphertext* both[] = {&mine, &theirs};
  EXPECT_THROW(batcher.run(both), KeyMismatch);
}

}  // namespace
}  // namespace jali::testing
