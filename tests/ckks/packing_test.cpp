// Lengths, batches and zeros past the end follow NumPy's rules.
#include "jali/ckks/packing.h"

#include "fixture.h"

namespace jali::ckks {
namespace {

using jali::testing::Complex;
using jali::testing::Scheme;
using jali::testing::World;

Ciphertext packed(World& w, std::uint32_t length, bool padded, std::size_t batch = 1) {
  Ciphertext out = w.encrypt(w.vector(1, batch * w.params->slots()), -1, -1, batch);
  out.packing = {length, batch > 1, false, padded};
  return out;
}

TEST(Packing, OfFreshVectors) {
  const Packing shorter = packing_of_fresh(3, 4, true, false);
  EXPECT_EQ(shorter.length, 3u);
  EXPECT_TRUE(shorter.padded && shorter.batched && !shorter.complex_values);
  const Packing whole = packing_of_fresh(16, 4, false, true);
  EXPECT_EQ(whole.length, 0u);
  EXPECT_TRUE(!whole.padded && !whole.batched && whole.complex_values);
  EXPECT_THROW(packing_of_fresh(17, 4, false, false), InvalidArgument);
}

TEST(Packing, OfTwoCiphertexts) {
  World w({"w52", Word::w52, 40, 1}, {});
  const Ciphertext a = packed(w, 5, true), b = packed(w, 5, false), whole = packed(w, 0, false);
  const Ciphertext other = packed(w, 6, true), pair = packed(w, 5, true, 2),
                   three = packed(w, 5, true, 3);
  EXPECT_TRUE(packing_of_sum(a, a).padded);
  EXPECT_FALSE(packing_of_sum(a, b).padded) << "what b holds past its end is in the sum";
  EXPECT_TRUE(packing_of_product(a, b).padded)
      << "zeros past the end of a factor are in the product";
  EXPECT_EQ(packing_of_sum(a, b).length, 5u);
  EXPECT_EQ(packing_of_sum(a, whole).length, 0u);
  EXPECT_FALSE(packing_of_product(a, whole).padded) << "all slots count";
  EXPECT_THROW(packing_of_sum(a, other), InvalidArgument);
  EXPECT_THROW(packing_of_product(a, other), InvalidArgument);
  EXPECT_TRUE(packing_of_sum(a, pair).batched);
  EXPECT_THROW(packing_of_sum(three, pair), InvalidArgument);
  EXPECT_EQ(length_of(whole), w.params->slots());
  EXPECT_TRUE(is_batched(pair));
  // packing_of_joined, which the explicit evaluator uses, does not refuse different lengths.
  EXPECT_EQ(packing_of_joined(a, other).length, 0u);
  EXPECT_FALSE(packing_of_joined(a, other).padded);
  EXPECT_TRUE(packing_of_joined(a, a).padded);
}

TEST(Packing, OfNumbers) {
  World w({"w52", Word::w52, 40, 1}, {});
  const Ciphertext a = packed(w, 5, true), pair = packed(w, 5, true, 2);
  const std::vector<Complex> five(5, 1.0), ten(10, 1.0), all(w.params->slots(), 1.0), six(6, 1.0);
  EXPECT_TRUE(packing_of_sum(a, Numbers{five}).padded);
  EXPECT_EQ(packing_of_sum(a, Numbers{all}).length, 0u);
  EXPECT_THROW(packing_of_sum(a, Numbers{six}), InvalidArgument);
  EXPECT_TRUE(packing_of_product(packed(w, 5, false), Numbers{five}).padded);
  EXPECT_TRUE(packing_of_product(pair, Numbers{ten, 2, true}).batched);
  EXPECT_THROW(packing_of_product(a, Numbers{ten, 2, true}), InvalidArgument);
  EXPECT_TRUE(packing_of_sum(a, Numbers{five, 1, false, true}).complex_values);
  EXPECT_FALSE(packing_of_sum(a, Complex(1)).padded);
  EXPECT_TRUE(packing_of_sum(a, Complex(0)).padded);
  EXPECT_TRUE(packing_of_sum(a, Complex(0, 1)).complex_values);
  EXPECT_TRUE(packing_of_product(a, Complex(2)).padded);
  EXPECT_FALSE(packing_of_moved(a.packing).padded);
}

}  // namespace
}  // namespace jali::ckks
