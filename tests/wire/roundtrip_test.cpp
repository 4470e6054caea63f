// Every object of every word, through bytes and back.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "jali/base/error.h"
#include "objects.h"

namespace jali::wire {
namespace {

using testing::Objects;
using testing::small_literal;

struct Case {
  const char* name;
  Word word;
  double scale_bits;
  int depth;
  int dnum;
};

void PrintTo(const Case& setup, std::ostream* out) { *out << setup.name; }

class RoundTrip : public ::testing::TestWithParam<Case> {
 protected:
  Objects o{
      small_literal(GetParam().word, GetParam().scale_bits, GetParam().depth, GetParam().dnum)};

  std::size_t poly_bytes(std::span<const PrimeIndex> primes) const {
    std::size_t bits = 0;
    for (const PrimeIndex i : primes) bits += std::bit_width(o.params->primes()[i] - 1);
    return o.params->n() / 8 * bits;
  }
};

INSTANTIATE_TEST_SUITE_P(Words, RoundTrip,
                         ::testing::Values(Case{"w52", Word::w52, 40, 2, 0},
                                           Case{"w52_dnum2", Word::w52, 26, 3, 2},
                                           Case{"w64", Word::w64, 50, 2, 0},
                                           Case{"w32", Word::w32, 28, 2, 0},
                                           Case{"w32_rational", Word::w32, 40, 3, 0},
                                           Case{"w32_two_primes", Word::w32, 54, 2, 3}),
                         [](const auto& info) { return std::string(info.param.name); });

void expect_equal(const ring::Poly& a, const ring::Poly& b) {
  ASSERT_TRUE(std::ranges::equal(a.primes(), b.primes()));
  ASSERT_EQ(a.batch(), b.batch());
  EXPECT_EQ(a.form(), b.form());
  EXPECT_EQ(a.word(), b.word());
  ASSERT_EQ(a.bytes(), b.bytes());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0);
}

TEST_P(RoundTrip, Params) {
  const Bytes bytes = to_bytes(*o.params);
  const auto back = params_from_bytes(bytes, testing::kAnySecurity);
  EXPECT_EQ(back->hash(), o.params->hash());
  EXPECT_EQ(back->literal().name, o.params->literal().name);
  EXPECT_TRUE(std::ranges::equal(back->primes(), o.params->primes()));
  EXPECT_EQ(to_bytes(*back), bytes);
  EXPECT_LT(bytes.size(), 128u);
}

TEST_P(RoundTrip, Plaintexts) {
  for (int level = 0; level <= o.params->depth(); ++level) {
    for (const std::size_t batch : {1, 3}) {
      const ckks::Plaintext x = o.plaintext(level, batch, level == 0 ? 4 : -1);
      const Bytes bytes = to_bytes(x);
      EXPECT_EQ(bytes.size(), kFrameBytes + 31 + batch * poly_bytes(o.params->level(level).primes));
      const auto back = from_bytes<ckks::Plaintext>(bytes, o.params, *o.ring);
      expect_equal(back.poly, x.poly);
      EXPECT_EQ(back.level, x.level);
      EXPECT_EQ(back.scale, x.scale);
      EXPECT_EQ(back.log_slots, x.log_slots);
      EXPECT_EQ(back.message, x.message);
      EXPECT_EQ(back.peak, x.peak);
      EXPECT_EQ(back.params, o.params);
      EXPECT_EQ(to_bytes(back), bytes);
    }
  }
}

TEST_P(RoundTrip, Ciphertexts) {
  const auto check = [&](const ckks::Ciphertext& x, bool seeded, std::size_t parts) {
    const Bytes bytes = to_bytes(x);
    const std::size_t polys = seeded ? 1 : parts;
    const std::size_t tiled = x.packing.tiling == ckks::Tiling{} ? 0 : 16;
    const std::size_t correlated = x.estimate.principal > 1 ? 8 : 0;
    // Without a lineage in the bytes, that of the seed, or none, is meant.
    const params::Lineage lineage =
        x.estimate.lineage.root == 0
            ? params::lineage_of_unknown(params::degree_of(x.estimate.lineage))
            : x.estimate.lineage;
    std::uint64_t root = 0;
    if (x.seed) std::memcpy(&root, x.seed->data(), sizeof(root));
    const bool named = lineage.root != root || params::degree_of(lineage) != 1 || lineage.turn != 1;
    const std::size_t view = x.packing.view ? 9 + 8 * x.packing.view->axes.size() : 0;
    EXPECT_EQ(bytes.size(), kFrameBytes + 78 + view + tiled + correlated + (named ? 32 : 0) +
                                (seeded ? 32 : 0) +
                                polys * x.batch() * poly_bytes(o.params->level(x.level).primes));
    const auto back = from_bytes<ckks::Ciphertext>(bytes, o.params, *o.ring);
    ASSERT_EQ(back.parts.size(), parts);
    for (std::size_t i = 0; i < parts; ++i) expect_equal(back.parts[i], x.parts[i]);
    EXPECT_EQ(back.level, x.level);
    EXPECT_EQ(back.scale, x.scale);
    EXPECT_EQ(back.log_slots, x.log_slots);
    // Bytes have the averages of the claim.
    EXPECT_EQ(back.estimate.variance, x.estimate.claim().variance);
    EXPECT_EQ(back.estimate.message, x.estimate.claim().message);
    EXPECT_EQ(back.estimate.principal, x.estimate.principal);
    EXPECT_EQ(back.estimate.peak, x.estimate.peak);
    EXPECT_EQ(back.estimate.error, x.estimate.error);
    EXPECT_EQ(back.estimate.noise, x.estimate.noise);
    EXPECT_TRUE(x.estimate.derived);
    EXPECT_FALSE(back.estimate.derived) << "bytes are the sender's word";
    EXPECT_EQ(back.seed, x.seed);
    EXPECT_EQ(back.packing, x.packing);
    EXPECT_EQ(back.estimate.lineage.root, lineage.root);
    EXPECT_EQ(back.estimate.lineage.turn, lineage.turn);
    EXPECT_EQ(back.estimate.lineage.power, lineage.power);
    EXPECT_EQ(back.estimate.lineage.degree, lineage.degree);
    EXPECT_EQ(back.estimate.lineage.inputs, lineage.inputs);
    EXPECT_EQ(to_bytes(back), bytes);
  };
  const int top = o.params->depth();
  for (int level = 0; level <= top; ++level) {
    for (const std::size_t batch : {1, 3}) check(o.ciphertext(level, batch), true, 2);
  }
  ckks::Ciphertext x = o.ciphertext(top, 2);
  for (const std::uint64_t root :
       {0, 77}) {  // 0: numbers of unknown lineage that were moved and raised
    ckks::Ciphertext moved = o.ciphertext(top, 1);
    moved.estimate.lineage = {root, 2047, 3, 2, root};
    check(moved, true, 2);
    moved.seed.reset();
    check(moved, false, 2);
    moved.estimate.lineage = params::lineage_of_unknown(root + params::kAnyDegree);
    check(moved, false, 2);
  }
  x.estimate.noise = 3 * x.estimate.error;  // of a claimed precision
  x.packing = {17, true, false, 0.0};
  check(x, true, 2);
  x.packing = {0, false, true, params::kUnbounded};
  check(x, true, 2);
  x.packing = {17, false, false, 0.0, {0, 32, 32, 1}};
  check(x, true, 2);
  x.packing = {17, false, false, params::kUnbounded, {512, 8, 64, 4}};
  check(x, true, 2);
  x.packing = {0, false, false, params::kUnbounded, {512, 0, 0, 0}};
  check(x, true, 2);
  x.packing.tiling = {0, 32, 64, 1};
  EXPECT_THROW(to_bytes(x), InvalidArgument) << "it is not in its one form";
  x.packing = {0, false, true, params::kUnbounded};
  x.packing = {0, true, false, 0.0};
  x.packing.view = ckks::View{{{3, 32}, {30, -1}}, 29, 0};
  check(x, true, 2);
  x.packing.view = ckks::View{};  // a single number
  check(x, true, 2);
  x.packing.view->first = 2 * static_cast<std::uint32_t>(o.params->slots());
  EXPECT_THROW(to_bytes(x), InvalidArgument);
  x.packing.view.reset();
  x.estimate.principal = 1.5;
  check(x, true, 2);
  x.estimate.principal = 1e9;  // above that of all slots, by the roundings of bounds
  EXPECT_EQ(from_bytes<ckks::Ciphertext>(to_bytes(x), o.params, *o.ring).estimate.principal,
            static_cast<double>(o.params->slots()));
  x.estimate.principal = 1;
  check(o.evaluator->add(x, x), false, 2);
  check(o.evaluator->square(x), false, 3);
  check(o.evaluator->multiply_relinearise_rescale(x, x), false, 2);
  ckks::PublicEncryptor encryptor(std::make_shared<rlwe::PublicKey>(std::move(o.pk)), o.ring);
  check(encryptor.encrypt(o.plaintext(top)), false, 2);
}

TEST_P(RoundTrip, Keys) {
  const auto same = [](const rlwe::SwitchKey& a, const rlwe::SwitchKey& b) {
    EXPECT_EQ(a.seed, b.seed);
    ASSERT_EQ(a.b.size(), b.b.size());
    for (std::size_t d = 0; d < a.b.size(); ++d) expect_equal(a.b[d], b.b[d]);
  };
  const auto pk = from_bytes<rlwe::PublicKey>(to_bytes(o.pk), o.params, *o.ring);
  EXPECT_EQ(pk.seed, o.pk.seed);
  expect_equal(pk.b, o.pk.b);
  const Bytes switch_bytes = to_bytes(o.switch_key, *o.params);
  EXPECT_EQ(switch_bytes.size(),
            kFrameBytes + 32 + o.params->dnum() * poly_bytes(o.params->all_primes()));
  same(from_bytes<rlwe::SwitchKey>(switch_bytes, o.params, *o.ring), o.switch_key);

  const auto keys = from_bytes<rlwe::EvaluationKeys>(to_bytes(*o.keys), o.params, *o.ring);
  ASSERT_TRUE(keys.relinearisation.has_value());
  same(*keys.relinearisation, *o.keys->relinearisation);
  ASSERT_EQ(keys.galois.size(), 3u);
  for (const auto& [element, key] : o.keys->galois) same(keys.galois.at(element), key);
  EXPECT_EQ(keys.bytes(), o.keys->bytes());
  EXPECT_EQ(keys.key_id, o.sk->id());

  rlwe::EvaluationKeys none;
  none.params = o.params;
  none.key_id = o.sk->id();
  const auto empty = from_bytes<rlwe::EvaluationKeys>(to_bytes(none), o.params, *o.ring);
  EXPECT_FALSE(empty.relinearisation.has_value());
  EXPECT_TRUE(empty.galois.empty());
}

TEST_P(RoundTrip, SecretKey) {
  const SecretBytes bytes = secret_to_bytes(*o.sk, *o.ring);
  EXPECT_EQ(bytes.size(), kFrameBytes + sizeof(rlwe::KeyId) + o.params->n() / 4);
  const rlwe::SecretKey back = secret_from_bytes(bytes, o.params, *o.ring);
  expect_equal(back.poly(), o.sk->poly());
  EXPECT_EQ(back.id(), o.sk->id());
  EXPECT_EQ(secret_to_bytes(back, *o.ring), bytes);
}

// A server that is given nothing but bytes computes on a client's ciphertexts, and the client reads
// the results.
TEST_P(RoundTrip, ComputesThroughBytes) {
  const int top = o.params->depth();
  const auto params = params_from_bytes(to_bytes(*o.params), testing::kAnySecurity);
  const auto ring = ckks::make_ring(*params);
  auto keys = std::make_shared<rlwe::EvaluationKeys>(
      from_bytes<rlwe::EvaluationKeys>(to_bytes(*o.keys), params, *ring));
  const ckks::Evaluator server(params, ring, keys);
  const auto x = from_bytes<ckks::Ciphertext>(to_bytes(o.ciphertext(top)), params, *ring);
  const auto y = server.rotate(server.multiply_relinearise_rescale(x, x), 1);
  const auto result = from_bytes<ckks::Ciphertext>(to_bytes(y), o.params, *o.ring);
  const ckks::Decryptor decryptor(o.sk, o.ring);
  const auto got = o.evaluator->encoder().decode(decryptor.decrypt(result));
  const auto want = Objects::values(o.params->slots());
  const double tolerance = std::exp2(-(GetParam().scale_bits - 20));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto v = want[(i + 1) % want.size()];
    ASSERT_LT(std::abs(got[i] - v * v), tolerance) << "slot " << i;
  }
}

TEST(WriterErrors, ObjectsThatNoEvaluatorMakesAreRefused) {
  const Objects o(small_literal(Word::w52, 40, 1));
  ckks::Ciphertext x = o.ciphertext(1);
  x.scale = std::nan("");
  EXPECT_THROW(to_bytes(x), InvalidArgument);
  x = o.ciphertext(1);
  x.estimate.variance = HUGE_VAL;
  EXPECT_THROW(to_bytes(x), InvalidArgument);
  x = o.ciphertext(1);
  x.level = 0;  // its primes are those of another level
  EXPECT_THROW(to_bytes(x), InvalidArgument);
  x = o.ciphertext(1);
  o.ring->to_coeff(x.parts[0]);
  EXPECT_THROW(to_bytes(x), InvalidArgument);
  x = o.ciphertext(1);
  x.parts.pop_back();
  EXPECT_THROW(to_bytes(x), InvalidArgument);
  x = o.ciphertext(1);
  x.params = nullptr;
  EXPECT_THROW(to_bytes(x), InvalidArgument);
  x = o.ciphertext(0, 1, 3);
  x.packing.length = 8;
  EXPECT_NO_THROW(to_bytes(x));
  x.packing.length = 9;  // there are 8 slots, so no loader would accept it
  EXPECT_THROW(to_bytes(x), InvalidArgument);
  EXPECT_THROW(to_bytes(ckks::Plaintext{}), InvalidArgument);
  EXPECT_THROW(to_bytes(rlwe::SwitchKey{}, *o.params), InvalidArgument);
  ring::Poly two = o.ring->zero(o.params->all_primes(), 1, ring::Form::coeff);
  static_cast<std::uint64_t*>(two.row(0))[5] = 2;
  o.ring->to_ntt(two);
  const rlwe::SecretKey dense(o.params, std::move(two), o.sk->id());
  EXPECT_THROW(secret_to_bytes(dense, *o.ring), InvalidArgument);
}

TEST(WriterErrors, AStaleSeedIsFound) {
  const Objects o(small_literal(Word::w52, 40, 1));
  const ckks::Ciphertext fresh = o.ciphertext(1);
  ckks::Ciphertext sum = o.evaluator->add(fresh, fresh);
  EXPECT_FALSE(sum.seed.has_value());
  sum.seed = fresh.seed;
  EXPECT_THROW(to_bytes(sum), InternalError);
}

// Except for the seed and the residues, the bytes of a fresh ciphertext are the same whatever it
// encrypts.
TEST(Privacy, FieldsInTheClearDoNotDependOnTheMessage) {
  const Objects o(small_literal(Word::w52, 40, 1));
  ckks::SecretEncryptor encryptor(o.sk, o.ring);
  const std::vector<std::complex<double>> zeros(o.params->slots()), ones(o.params->slots(), 1.0);
  const auto header = [&](const std::vector<std::complex<double>>& v) {
    const Bytes bytes =
        to_bytes(encryptor.encrypt(o.evaluator->encoder().encode(v, 1, 1, o.params->scale(1))));
    return Bytes(bytes.begin(), bytes.begin() + kHeaderBytes + 54);  // up to the seed
  };
  EXPECT_EQ(header(zeros), header(ones));
}

}  // namespace
}  // namespace jali::wire
