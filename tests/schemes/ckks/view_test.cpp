// Where the elements of arrays lie.
#include "jali/schemes/ckks/view.h"

#include "fixture.h"
#include "jali/schemes/ckks/array_evaluator.h"

namespace jali::ckks {
namespace {

using jali::testing::max_error;
using jali::testing::World;

std::vector<std::int32_t> strides(std::initializer_list<std::size_t> shape, std::size_t slots) {
  const std::vector<std::size_t> counts(shape);
  std::vector<std::int32_t> out;
  for (const auto& axis : dense_view(counts, slots).axes) out.push_back(axis.stride);
  return out;
}

std::size_t vectors(std::initializer_list<std::size_t> shape, std::size_t slots) {
  const std::vector<std::size_t> counts(shape);
  const std::size_t out = vectors_of_dense(counts, slots);
  const View view = dense_view(counts, slots);
  EXPECT_TRUE(is_within(view, slots, out));
  EXPECT_TRUE(out == 1 || !is_within(view, slots, out - 1));
  return out;
}

using Strides = std::vector<std::int32_t>;

TEST(View, OfFreshArrays) {
  EXPECT_EQ(strides({1000, 30}, 8192), (Strides{32, 1}));
  EXPECT_EQ(vectors({1000, 30}, 8192), 4u);
  EXPECT_EQ(strides({3, 5, 7}, 64), (Strides{64, 8, 1}));
  EXPECT_EQ(vectors({3, 5, 7}, 64), 3u);
  EXPECT_EQ(strides({2, 100}, 64), (Strides{128, 1}));
  EXPECT_EQ(vectors({2, 100}, 64), 4u) << "rows that are longer than a vector begin with a vector";
  EXPECT_EQ(vectors({65}, 64), 2u);
  EXPECT_EQ(vectors({64}, 64), 1u);
  EXPECT_EQ(vectors({}, 64), 1u);
  EXPECT_THROW(strides({2, 0}, 64), InvalidArgument);
  EXPECT_THROW(strides({1u << 31, 1u << 31}, 64), InvalidArgument);
  EXPECT_THROW(vectors_of_dense(std::vector<std::size_t>(17, 1), 64), InvalidArgument);
}

TEST(View, LiesWithinItsSlots) {
  const auto lies = [](std::vector<View::Axis> axes, std::uint32_t first, std::uint32_t period = 0,
                       std::size_t batch = 2) {
    return is_within(View{std::move(axes), first, period}, 64, batch);
  };
  EXPECT_TRUE(lies({{4, 32}, {30, 1}}, 0));
  EXPECT_TRUE(lies({{4, 32}, {30, 1}}, 2));
  EXPECT_FALSE(lies({{4, 32}, {30, 1}}, 3));
  EXPECT_TRUE(lies({{4, -1}}, 3));
  EXPECT_FALSE(lies({{4, -1}}, 2));
  EXPECT_FALSE(lies({{2, 0}}, 0)) << "two elements in one slot";
  EXPECT_TRUE(lies({{1, 0}}, 0));
  EXPECT_FALSE(lies({{0, 1}}, 0));
  EXPECT_FALSE(lies({{1u << 31, 1}, {1u << 31, 1}}, 0));
  EXPECT_FALSE(lies({{2, -(1 << 30)}, {2, 1 << 30}}, 0));
  EXPECT_FALSE(lies({}, 128));
  EXPECT_TRUE(lies({{8, 1}}, 0, 8, 1));
  EXPECT_FALSE(lies({{9, 1}}, 0, 8, 1)) << "more than a period";
  EXPECT_FALSE(lies({{8, 1}}, 0, 8, 2)) << "a period is of one vector";
  EXPECT_FALSE(lies({{8, 1}}, 0, 12, 1));
  EXPECT_FALSE(lies({{8, 1}}, 0, 128, 1));
  EXPECT_FALSE(is_within(View{std::vector<View::Axis>(17), 0, 0}, 64, 2));
}

TEST(View, StaysWithArithmeticAndGoesWithMovement) {
  World w({"w52", Word::w52, 40, 2}, {1});
  const ArrayEvaluator e(w.evaluator);
  const std::size_t slots = w.params->slots();
  const auto x = w.vector(1, 2 * slots), y = w.vector(1, 2 * slots);
  const Ciphertext plain = w.encrypt(x, -1, -1, 2);
  const View view{{{4, 32}, {30, 1}}, 0, 0}, other{{{4, 32}, {30, 1}}, 1, 0};
  const Ciphertext a = e.with_view(plain, view, true);
  const Ciphertext b = e.with_view(w.encrypt(y, -1, -1, 2), view, false);
  EXPECT_EQ(e.add(a, b).packing.view, view);
  EXPECT_FALSE(e.add(a, b).packing.rest == 0);
  EXPECT_EQ(e.multiply(a, b).packing.view, view);
  EXPECT_TRUE(e.multiply(a, b).packing.rest == 0);
  EXPECT_EQ(e.negate(a).packing.view, view);
  EXPECT_EQ(e.add_scalar(a, 1.0).packing.view, view);
  EXPECT_FALSE(e.add_scalar(a, 1.0).packing.rest == 0);
  EXPECT_FALSE(e.rotate(a, 1).packing.view.has_value());
  EXPECT_FALSE(e.with_length(a, 3).packing.view.has_value());
  EXPECT_THROW(e.add(a, e.with_view(plain, other, false)), InvalidArgument);
  EXPECT_THROW(e.add(a, plain), InvalidArgument);
  EXPECT_THROW(e.with_view(plain, View{{{2 * static_cast<std::uint32_t>(slots), 1}}, 1, 0}, true),
               InvalidArgument);
  EXPECT_FALSE(e.with_view(a, std::nullopt, true).packing.view.has_value());
}

TEST(View, TakesVectorsInAnyOrder) {
  World w({"w52", Word::w52, 40, 2}, {});
  const ArrayEvaluator e(w.evaluator);
  const std::size_t slots = w.params->slots();
  const auto x = w.vector(1, 3 * slots);
  const Ciphertext a = w.encrypt(x, -1, -1, 3);
  const std::vector<std::uint32_t> order{2, 0, 1, 1};
  const Ciphertext taken = e.take(a, order);
  ASSERT_EQ(taken.batch(), 4u);
  std::vector<jali::testing::Complex> expected;
  for (const auto v : order) {
    expected.insert(expected.end(), x.begin() + static_cast<std::ptrdiff_t>(v * slots),
                    x.begin() + static_cast<std::ptrdiff_t>((v + 1) * slots));
  }
  EXPECT_LT(max_error(w.decrypt(taken), expected), 1e-6) << "seed " << w.seed;
  EXPECT_THROW(e.take(a, std::vector<std::uint32_t>{3}), InvalidArgument);
  EXPECT_THROW(e.take(a, std::vector<std::uint32_t>{}), InvalidArgument);
}

TEST(View, BoundsOfSumsOfFewNumbers) {
  World w({"w52", Word::w52, 40, 2}, {});
  const ArrayEvaluator e(w.evaluator);
  const Ciphertext a = w.encrypt(w.vector());
  const Ciphertext sum = e.add(e.add(a, a), e.add(a, a));
  const Ciphertext known = e.with_bounds(sum, a, 2);
  EXPECT_EQ(known.estimate.peak, 2 * a.estimate.peak);
  EXPECT_LE(known.estimate.message, 2 * a.estimate.message);
  EXPECT_EQ(known.estimate.error, sum.estimate.error);
  EXPECT_EQ(e.with_bounds(sum, a, 100).estimate.peak, sum.estimate.peak);
}

}  // namespace
}  // namespace jali::ckks
