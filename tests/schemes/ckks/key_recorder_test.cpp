// An evaluator without keys finds out which keys a computation uses, and keys made for these serve
// it.
#include "jali/rlwe/key_recorder.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "fixture.h"

namespace jali::testing {
namespace {

class KeyRecording : public ::testing::TestWithParam<Scheme> {};

TEST_P(KeyRecording, FindsTheKeysAndTheirLevels) {
  World w(GetParam(), {});
  const int top = w.params->depth();
  const auto recorder = std::make_shared<ckks::KeyRecorder>();
  const auto blank = std::make_shared<const ckks::Evaluator>(ckks::Engine::make(w.params, w.ring),
                                                             w.sk->id(), recorder);
  const auto compute = [&](const std::shared_ptr<const ckks::Evaluator>& e,
                           const ckks::Ciphertext& x) {
    const ckks::AutoEvaluator a(e);
    return a.conjugate(a.rotate(a.rotate(a.square(x), 3), 40));
  };
  const auto v = w.vector();
  const auto x = w.encrypt(v);
  const ckks::Ciphertext blind = compute(blank, x);
  const rlwe::KeyDemand demand = recorder->demand();
  const std::size_t n = w.params->n();
  EXPECT_EQ(demand.galois, (std::map<std::uint64_t, int>{{ring::galois_element(n, 3), top - 1},
                                                         {ring::galois_element(n, 40), top - 1},
                                                         {ring::conjugation_element(n), top - 1}}));
  EXPECT_EQ(demand.relinearise, top);
  EXPECT_FALSE(demand.encapsulation);

  std::size_t told = 0;
  auto keys = w.keygen->keys_for(*w.sk, demand, [&](std::size_t done, std::size_t total) {
    EXPECT_EQ(done, ++told);
    EXPECT_EQ(total, 4u);
  });
  EXPECT_EQ(told, 4u);
  EXPECT_EQ(keys.bytes(), w.params->switch_key_bytes() + 3 * w.params->switch_key_bytes(top - 1));
  const auto server = std::make_shared<const ckks::Evaluator>(
      w.params, w.ring, std::make_shared<const rlwe::EvaluationKeys>(std::move(keys)));
  const ckks::Ciphertext y = compute(server, x);
  std::vector<Complex> want(v);
  std::rotate(want.begin(), want.begin() + 43, want.end());
  for (auto& z : want) z = std::conj(z * z);
  w.expect(y, want, 0.2);
  // The blind computation has the metadata of the right one, and not its numbers.
  EXPECT_EQ(blind.level, y.level);
  EXPECT_EQ(blind.scale, y.scale);
  EXPECT_EQ(blind.estimate.peak, y.estimate.peak);
  EXPECT_EQ(blind.estimate.error, y.estimate.error);
  EXPECT_GT(max_error(ckks::decrypt(*w.decryptor, w.encoder(), blind, ckks::Check::no), want),
            1e-3);
  EXPECT_THROW(server->rotate(x, 3), KeyMissing);
}

TEST_P(KeyRecording, NotesTheHighestLevelAndQuestions) {
  World w(GetParam(), {});
  const auto recorder = std::make_shared<ckks::KeyRecorder>();
  const ckks::Evaluator e(ckks::Engine::make(w.params, w.ring), w.sk->id(), recorder);
  EXPECT_EQ(recorder->demand(), rlwe::KeyDemand());
  const auto low = w.encrypt(w.vector(), 0), high = w.encrypt(w.vector(), 1);
  e.rotate(low, 2), e.rotate(high, 2), e.rotate(low, 2);
  EXPECT_TRUE(e.has_rotation(7, 1));
  EXPECT_TRUE(e.has_rotation(0, 1));
  const std::size_t n = w.params->n();
  EXPECT_EQ(recorder->demand().galois,
            (std::map<std::uint64_t, int>{{ring::galois_element(n, 2), 1},
                                          {ring::galois_element(n, 7), 1}}));
  EXPECT_EQ(recorder->demand().relinearise, rlwe::kNoKey);
  World other(GetParam(), {});
  EXPECT_THROW(e.rotate(other.encrypt(other.vector()), 1), KeyMismatch);
  EXPECT_THROW(ckks::Evaluator(ckks::Engine::make(w.params, w.ring), w.sk->id(), nullptr),
               InvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Setups, KeyRecording, ::testing::ValuesIn(all_setups()),
                         [](const auto& info) { return info.param.label; });

}  // namespace
}  // namespace jali::testing
