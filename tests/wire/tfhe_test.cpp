// Bytes of TFHE: objects come back as they were; damaged, exchanged and inflated bytes are refused
// by one jali::Error, or are another object whose bytes are exactly those that were read; the files
// of vectors/v1 can be read for ever.
#include "jali/wire/tfhe.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <utility>

#include "../hex.h"
#include "../seeded.h"
#include "allocations.h"
#include "jali/backend/tfhe_ops.h"
#include "jali/base/hash.h"
#include "jali/schemes/tfhe/evaluator.h"
#include "tampering.h"
#include "tfhe_objects.h"

namespace jali::wire {
namespace {

using namespace testing;
using tfhe::Order;
using tfhe::Rotation;
using tfhe::Torus;

Outcome judge(const TfheLoader& loader, const Bytes& bytes, const std::string& what) {
  return judged(loader.name + ", " + what, bytes, [&] { return loader.load(bytes, kLimits); });
}

class TfheWire : public ::testing::TestWithParam<tfhe::Literal> {
 protected:
  TfheObjects o{GetParam()};
  std::vector<TfheLoader> loaders = all_loaders(o);

  const TfheLoader& loader(const std::string& name) const {
    return *std::ranges::find(loaders, name, &TfheLoader::name);
  }
  void expect_refused(const TfheLoader& l, const Bytes& bytes, const std::string& what) {
    EXPECT_EQ(judge(l, bytes, what), Outcome::refused) << l.name << ", " << what;
  }
};

INSTANTIATE_TEST_SUITE_P(
    Shapes, TfheWire,
    ::testing::Values(tfhe_literal(Torus::t64, Order::switch_first, Rotation::classic),
                      tfhe_literal(Torus::t32, Order::bootstrap_first, Rotation::block_binary),
                      tfhe_literal(Torus::t64, Order::bootstrap_first, Rotation::multi_bit)));

TEST_P(TfheWire, ObjectsComeBack) {
  for (const TfheLoader& l : loaders) EXPECT_EQ(judge(l, l.valid, "valid"), Outcome::accepted);
  const auto params = tfhe_params_from_bytes(to_bytes(*o.params), kLimits);
  EXPECT_EQ(params->hash(), o.params->hash());
  EXPECT_EQ(params->name(), o.params->name());
  EXPECT_EQ(params->log2_p_fail(), o.params->log2_p_fail());
  EXPECT_THROW(tfhe_params_from_bytes(to_bytes(*o.params)), InsecureParams);

  auto secret = tfhe_secret_from_bytes(secret_to_bytes(o.client.secret_key()), params);
  EXPECT_TRUE(std::ranges::equal(secret.small(), o.client.secret_key().small()));
  EXPECT_TRUE(std::ranges::equal(secret.large(), o.client.secret_key().large()));
  const tfhe::Client client(std::make_shared<const lwe::SecretKey>(std::move(secret)));

  const auto fresh = tfhe_ciphertext_from_bytes(to_bytes(o.fresh), params);
  EXPECT_EQ(fresh.key_id, o.client.key_id());
  EXPECT_EQ(fresh.degree, o.fresh.degree);
  EXPECT_EQ(fresh.seed, o.fresh.seed);
  EXPECT_EQ(client.decrypt(fresh), TfheObjects::values());
  const auto computed = tfhe_ciphertext_from_bytes(to_bytes(o.computed), params);
  EXPECT_EQ(computed.degree, o.computed.degree);
  EXPECT_EQ(computed.history.norm2(), 5);
  EXPECT_FALSE(computed.history.known());
  const auto summed = tfhe_ciphertext_from_bytes(to_bytes(o.summed), params);
  EXPECT_TRUE(summed.history.known());
  EXPECT_EQ(summed.history.norm2(), 5);
  for (std::size_t i = 0; i < summed.size(); ++i) {
    EXPECT_EQ(summed.history.combination(i).id, o.summed.history.combination(i).id);
    EXPECT_EQ(summed.history.combination(i).half_steps, 2 * static_cast<std::int64_t>(i) - 4);
  }
  EXPECT_EQ(client.decrypt(computed), TfheObjects::values());
  EXPECT_LT(to_bytes(o.fresh).size() - kFrameBytes, 200u);

  // What owners encrypt with a key that was sent.
  const auto key = tfhe_public_key_from_bytes(to_bytes(*o.public_key), params);
  EXPECT_EQ(key.key_id(), o.client.key_id());
  const auto compact = tfhe_compact_from_bytes(to_bytes(o.compact), params);
  EXPECT_EQ(compact.layout, o.compact.layout);
  EXPECT_EQ(client.decrypt(compact), TfheObjects::values());
  tfhe::PublicEncryptor owner(std::make_shared<const lwe::PublicKey>(
      tfhe_public_key_from_bytes(to_bytes(*o.public_key), params)));
  const auto sent = tfhe_compact_from_bytes(to_bytes(owner.encrypt(TfheObjects::values())), params);
  EXPECT_EQ(client.decrypt(sent), TfheObjects::values());
  const auto none = tfhe_compact_from_bytes(to_bytes(owner.encrypt({})), params);
  EXPECT_EQ(none.size(), 0u);

  // Keys that were sent still compute.
  const auto keys = tfhe_keys_from_bytes(to_bytes(o.keys), params);
  EXPECT_EQ(to_bytes(o.keys).size(), sent_bytes(o.keys));
  const tfhe::Evaluator evaluator(backend::make_ref_tfhe(params->config()), keys);
  const auto squares = evaluator.apply(
      evaluator.bind(fresh), tfhe::LookUpTable(params, [](std::uint64_t v) { return v * v % 4; }));
  EXPECT_EQ(client.decrypt(squares), (std::vector<std::uint64_t>{0, 1, 0, 1, 0}));
}

/// The words of docs/format.md: the mask of element i is the first bytes of stream i of the seed.
Bytes expanded(const Bytes& seeded, const tfhe::Params& params, std::size_t count) {
  const std::size_t word = backend::torus_bytes(params.ciphertext_torus());
  const std::uint8_t* at = seeded.data() + seeded.size() - kChecksumBytes - count * word;
  random::Seed seed;
  std::copy_n(at - seed.size(), seed.size(), seed.begin());
  Bytes out;
  for (std::size_t i = 0; i < count; ++i, at += word) {
    Bytes mask(params.dimension().value * word);
    random::Prng(seed, i).fill(mask);
    out.insert(out.end(), mask.begin(), mask.end());
    out.insert(out.end(), at, at + word);
  }
  return out;
}

Bytes words_of(const tfhe::Ciphertext& x) {
  const auto* at = static_cast<const std::uint8_t*>(x.data->data.data());
  return {at, at + x.data->bytes()};
}

TEST_P(TfheWire, SeedsGiveTheSameWordsAndBytesEverywhere) {
  const Bytes bytes = to_bytes(o.fresh), words = expanded(bytes, *o.params, o.fresh.size());
  EXPECT_EQ(words_of(o.fresh), words);
  const auto read = [&] { return tfhe_ciphertext_from_bytes(bytes, o.params); };
  const tfhe::Evaluator evaluator(backend::make_ref_tfhe(o.params->config()), o.keys);

  const tfhe::Ciphertext x = read();
  const tfhe::Ciphertext bound = evaluator.bind(x);
  EXPECT_EQ(words_of(bound), words);
  for (const auto& same : {x, bound, evaluator.host_copy(bound)}) EXPECT_EQ(to_bytes(same), bytes);
  EXPECT_EQ(words_of(x), words);
  EXPECT_EQ(to_bytes(x), bytes) << "also when its words have been asked for";
  EXPECT_EQ(o.client.decrypt(read()), TfheObjects::values());

  // Without the seed, all words are written.
  for (tfhe::Ciphertext whole : {x, read(), bound}) {
    whole.seed.reset();
    const Bytes all = to_bytes(whole);
    EXPECT_EQ(Bytes(all.end() - kChecksumBytes - words.size(), all.end() - kChecksumBytes), words);
    EXPECT_EQ(to_bytes(tfhe_ciphertext_from_bytes(all, o.params)), all);
  }
  // A seed that is another one's is noticed before the bytes are written.
  for (tfhe::Ciphertext other : {x, read(), bound}) {
    other.seed->front() ^= 1;
    EXPECT_THROW(to_bytes(other), InternalError);
  }
}

// A server makes the words of a request once, in its engine's memory; who hands a request on makes
// none.
TEST(TfheCiphertext, StaysASeedUntilItsWordsAreNeeded) {
  TfheObjects o(tfhe_literal(Torus::t64, Order::switch_first, Rotation::classic));
  const tfhe::Evaluator evaluator(backend::make_ref_tfhe(o.params->config()), o.keys);
  constexpr std::size_t kCount = 2000;
  const Bytes bytes = to_bytes(o.client.encrypt(std::vector<std::uint64_t>(kCount, 1)));
  const std::size_t whole = o.params->ciphertext_bytes(kCount);
  std::size_t before = allocated_bytes();
  const auto taken = [&] { return allocated_bytes() - std::exchange(before, allocated_bytes()); };
  const tfhe::Ciphertext x = tfhe_ciphertext_from_bytes(bytes, o.params);
  EXPECT_EQ(to_bytes(x), bytes);
  EXPECT_LT(taken(), whole / 2);
  const tfhe::Ciphertext bound = evaluator.bind(x);
  const std::size_t of_bind = taken();
  EXPECT_GE(of_bind, whole);
  EXPECT_LT(of_bind, whole + whole / 2);
}

TEST_P(TfheWire, FilesAndStreams) {
  const auto folder =
      std::filesystem::temp_directory_path() /
      ("jali_tfhe_" + std::to_string(getpid()) + "_" + std::to_string(jali::test::test_seed()));
  std::filesystem::create_directory(folder);
  save(folder / "params", *o.params);
  save(folder / "ciphertext", o.fresh);
  std::size_t told = 0;
  save(folder / "keys", o.keys, [&](std::size_t done, std::size_t) { told = done; });
  EXPECT_EQ(told, sent_bytes(o.keys));
  save_secret(folder / "secret", o.client.secret_key());
  struct stat status{};
  ASSERT_EQ(stat((folder / "secret").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  const auto params = load_tfhe_params(folder / "params", kLimits);
  EXPECT_EQ(to_bytes(load_tfhe_ciphertext(folder / "ciphertext", params)), to_bytes(o.fresh));
  EXPECT_EQ(to_bytes(load_tfhe_keys(folder / "keys", params)), to_bytes(o.keys));
  EXPECT_EQ(secret_to_bytes(load_tfhe_secret(folder / "secret", params)),
            secret_to_bytes(o.client.secret_key()));
  std::filesystem::remove_all(folder);
}

TEST_P(TfheWire, CutAndExtended) {
  JALI_SEEDED(random);
  for (const TfheLoader& l : loaders) {
    for (const std::size_t size : cuts(l.valid.size(), 160, 20, random)) {
      const Bytes shorter = cut(l.valid, size);
      expect_refused(l, shorter, "cut to " + std::to_string(size));
      expect_refused(l, sealed(shorter), "cut to " + std::to_string(size) + " and sealed");
    }
    for (const std::size_t extra : {1, 2, 8, 32, 1000}) {
      Bytes longer = l.valid;
      longer.resize(longer.size() + extra, 0x41);
      expect_refused(l, longer, "bytes appended");
      expect_refused(l, sealed(longer), "bytes appended and sealed");
    }
  }
}

TEST_P(TfheWire, FlippedAndScrambled) {
  JALI_SEEDED(random);
  std::size_t accepted = 0;
  for (const TfheLoader& l : loaders) {
    const std::size_t bits = 8 * l.valid.size();
    std::vector<std::size_t> at;
    for (std::size_t bit = 0; bit < std::min<std::size_t>(bits, 8 * 140); ++bit) at.push_back(bit);
    for (int k = 0; k < 60; ++k) at.push_back(random() % bits);
    for (const std::size_t bit : at) {
      if (l.valid.size() > 10000 && bit % 11 != 0) continue;  // keys take longer
      const Bytes bad = flipped(l.valid, bit);
      expect_refused(l, bad, "bit " + std::to_string(bit));
      const Bytes again = sealed(bad);
      if (again != l.valid) accepted += judge(l, again, "sealed") == Outcome::accepted;
    }
    for (int k = 0; k < 30; ++k) judge(l, sealed(scrambled(l.valid, k, random)), "scrambled");
  }
  EXPECT_GT(accepted, 50u) << "flips of words and seeds give other objects of the same form";
}

TEST_P(TfheWire, ObjectsOfOtherKindsAndParameters) {
  tfhe::Literal literal = GetParam();
  literal.lwe_noise_bits += 1;
  const TfheObjects theirs(literal);
  for (const TfheObjects* other : {&std::as_const(o), &theirs}) {
    for (const TfheLoader& given : all_loaders(*other)) {
      for (const TfheLoader& l : loaders) {
        const bool kind = std::equal(&given.valid[6], &given.valid[8], &l.valid[6]);
        if (kind && (other == &o || l.name == "tfhe_params")) {
          EXPECT_EQ(judge(l, given.valid, given.name), Outcome::accepted);
          continue;
        }
        expect_refused(l, given.valid, given.name);
        Bytes relabelled = given.valid;
        std::copy_n(l.valid.begin(), kHeaderBytes, relabelled.begin());
        judge(l, sealed(relabelled), "relabelled " + given.name);
      }
    }
  }
  // A scheme that is another one's.
  for (const TfheLoader& l : loaders) {
    Bytes bad = l.valid;
    bad[6] = 2;
    expect_refused(l, sealed(bad), "of another scheme");
  }
}

// Payload offsets of docs/format.md.
TEST_P(TfheWire, FieldsOutOfRange) {
  const TfheLoader& params = loader("tfhe_params");
  for (const std::uint32_t n : {0u, 9u, 65537u, 0xffffffffu}) {
    if (n == 9 && GetParam().group == 1) continue;
    expect_refused(params, patched(params.valid, 0, n), "n");
  }
  for (const std::uint32_t k : {0u, 17u, 0xffffffffu}) {
    expect_refused(params, patched(params.valid, 4, k), "k");
  }
  for (const std::uint32_t N : {0u, 128u, 255u, 1u << 17, 0xffffffffu}) {
    expect_refused(params, patched(params.valid, 8, N), "N");
  }
  for (const std::size_t field : {12u, 13u, 14u, 15u, 16u, 17u, 18u, 19u, 20u, 21u, 22u, 23u}) {
    expect_refused(params, patched(params.valid, field, std::uint8_t{0xff}), "a field of 255");
  }
  expect_refused(params, patched(params.valid, 24, std::uint16_t{2000}), "security");
  for (const double x : {0.5, -1.0, -0.0, 1.0 / 0.0, std::nan("")}) {
    expect_refused(params, patched(params.valid, 26, x), "the largest squared norm");
  }
  for (const double x : {-1.0, -0.0, 1.0 / 0.0, std::nan("")}) {
    expect_refused(params, patched(params.valid, 34, x), "the probability of failure");
  }
  // A claim of security needs no name, but these parameters do not have it.
  const TfheLoader& fresh = loader("tfhe_ciphertext_fresh");
  for (const std::uint8_t flags : {8, 16, 128, 255}) {
    expect_refused(fresh, patched(fresh.valid, 16, flags), "flags");
  }
  for (const std::uint32_t count : {0u, 4u, 6u, 0x7fffffffu, 0xffffffffu}) {
    expect_refused(fresh, patched(fresh.valid, 17, count), "count");
  }
  for (const double x : {-1.0, -0.0, 9.5, 1.0 / 0.0, std::nan("")}) {
    expect_refused(fresh, patched(fresh.valid, 21, x), "noise");
  }
  expect_refused(fresh, patched(fresh.valid, 21, 0.0), "fresh and without noise");
  expect_refused(fresh, patched(fresh.valid, 29, std::uint16_t{8}), "degree");
  const TfheLoader& computed = loader("tfhe_ciphertext_computed");
  Bytes equal = computed.valid;
  for (std::size_t i = 0; i < 5; ++i) equal = patched(equal, 29 + 2 * i, std::uint16_t{3});
  expect_refused(computed, equal, "equal degrees that are written one by one");
  // Keys that belong to no secret, and keys that hide nothing.
  for (const char* name : {"tfhe_evaluation_keys", "tfhe_evaluation_keys_stream", "tfhe_secret_key",
                           "tfhe_public_key", "tfhe_compact"}) {
    Bytes bad = loader(name).valid;
    std::fill_n(bad.begin() + kHeaderBytes, 16, 0);
    expect_refused(loader(name), sealed(bad), "of no secret");
  }
  const TfheLoader& keys = loader("tfhe_evaluation_keys");
  Bytes empty = keys.valid;
  std::fill(empty.begin() + kHeaderBytes + 17 + 32, empty.end() - kChecksumBytes, 0);
  expect_refused(keys, sealed(empty), "emptied");
  // Public keys whose bodies are constant, or only errors.
  const TfheLoader& open = loader("tfhe_public_key");
  const std::size_t word = backend::torus_bytes(o.params->torus());
  for (const std::uint8_t byte : {0, 0x40, 0xff}) {
    Bytes bad = open.valid;
    std::fill(bad.begin() + kHeaderBytes + 16 + 32, bad.end() - kChecksumBytes, byte);
    expect_refused(open, sealed(bad), "one byte everywhere");
  }
  for (const bool negative : {false, true}) {
    Bytes bad = open.valid;
    for (std::size_t i = kHeaderBytes + 16 + 32; i + kChecksumBytes < bad.size(); ++i) {
      if ((i - kHeaderBytes - 48) % word == word - 1) bad[i] = negative && i % 3 == 0 ? 0xff : 0;
    }
    expect_refused(open, sealed(bad), "small");
  }
  const TfheLoader& compact = loader("tfhe_compact");
  expect_refused(compact, patched(compact.valid, 16, std::uint8_t{2}), "flags");
  for (const std::uint32_t count : {0u, 4u, 6u, 0x7fffffffu, 0xffffffffu}) {
    expect_refused(compact, patched(compact.valid, 17, count), "count");
  }
  for (const std::uint32_t each : {0u, 257u, 0x7fffffffu, 0xffffffffu}) {
    expect_refused(compact, patched(compact.valid, 21, each), "messages of a polynomial");
  }
  expect_refused(compact, patched(compact.valid, 25, std::uint16_t{8}), "degree");
  expect_refused(compact, patched(compact.valid, 27, std::uint8_t{64}), "integers of 64 bits");
  expect_refused(compact, patched(compact.valid, 30, std::uint32_t{4}), "an axis");
  const TfheLoader& secret = loader("tfhe_secret_key");
  for (const std::uint8_t byte : {0, 0xff}) {
    Bytes bad = secret.valid;
    std::fill(bad.begin() + kHeaderBytes + 16, bad.end() - kChecksumBytes, byte);
    expect_refused(secret, sealed(bad), "all bits equal");
  }
}

TEST_P(TfheWire, AllocatesNothingBeforeSizesAreChecked) {
  const TfheLoader& fresh = loader("tfhe_ciphertext_fresh");
  const Limits small{fresh.valid.size(), 0};  // the rows take more
  EXPECT_THROW(fresh.load(fresh.valid, small), LimitExceeded);
  const TfheLoader& compact = loader("tfhe_compact");
  EXPECT_THROW(compact.load(compact.valid, {compact.valid.size(), 0}), LimitExceeded);
  const TfheLoader& keys = loader("tfhe_evaluation_keys_stream");
  EXPECT_THROW(keys.load(keys.valid, {keys.valid.size() - 1, 0}), LimitExceeded);
}

TEST_P(TfheWire, LayoutsComeBackOrAreRefused) {
  const TfheLoader& fresh = loader("tfhe_ciphertext_fresh");
  tfhe::Ciphertext x = o.fresh;  // five elements
  const auto bits = static_cast<std::uint8_t>(5 * o.params->message_bits());
  for (const tfhe::Layout& layout :
       {tfhe::Layout{{5}, 0, false}, tfhe::Layout{{1, 5, 1}, 0, false},
        tfhe::Layout{{}, bits, true}, tfhe::Layout{{1}, bits, false}}) {
    x.layout = layout;
    const Bytes bytes = to_bytes(x);
    const auto read = tfhe_ciphertext_from_bytes(bytes, o.params);
    EXPECT_EQ(read.layout, x.layout);
    EXPECT_EQ(read.degree, x.degree);
    EXPECT_EQ(judge(fresh, bytes, "with a layout"), Outcome::accepted);
  }
  for (const tfhe::Layout& layout :
       {tfhe::Layout{{4}, 0, false}, tfhe::Layout{{}, 0, false}, tfhe::Layout{{5, 0}, 0, false},
        tfhe::Layout{{5}, bits, false}, tfhe::Layout{{5}, 0, true}, tfhe::Layout{{1}, 65, false},
        tfhe::Layout{std::vector<std::uint32_t>(33, 1), bits, false}}) {
    x.layout = layout;
    EXPECT_THROW(to_bytes(x), InvalidArgument);
  }
  // The same from hostile bytes: the layout lies behind the single degree.
  x.layout = tfhe::Layout{{5}, 0, false};
  const Bytes valid = to_bytes(x);
  expect_refused(fresh, patched(valid, 31, std::uint8_t{64}), "integers of 64 bits");
  expect_refused(fresh, patched(valid, 32, std::uint8_t{1}), "messages with a sign");
  expect_refused(fresh, patched(valid, 32, std::uint8_t{2}), "a sign of 2");
  expect_refused(fresh, patched(valid, 33, std::uint8_t{33}), "33 axes");
  for (const std::uint32_t axis : {0u, 4u, 6u, 0xffffffffu}) {
    expect_refused(fresh, patched(valid, 34, axis), "an axis");
  }
}

TEST_P(TfheWire, RefusesOriginsThatAreNone) {
  const TfheLoader* const summed = &loader("tfhe_ciphertext_summed");
  // Behind the name, the flags, the count, the noise and five degrees: a constant, the number of
  // terms, an id and a weight.
  constexpr std::size_t kFirst = 16 + 1 + 4 + 8 + 5 * 2;
  const auto none = std::uint64_t{0}, unknown = std::uint64_t{1}, huge = std::uint64_t{1} << 63;
  expect_refused(*summed, patched(summed->valid, kFirst + 8, std::uint32_t{0xffffffff}), "terms");
  expect_refused(*summed, patched(summed->valid, kFirst + 8, std::uint32_t{1}), "a term less");
  expect_refused(*summed, patched(summed->valid, kFirst + 12, none), "no id");
  expect_refused(*summed, patched(summed->valid, kFirst + 12, unknown), "the id of the unknown");
  for (const std::uint64_t weight : {std::uint64_t{0}, std::uint64_t{3}, huge}) {
    expect_refused(*summed, patched(summed->valid, kFirst + 20, weight), "another weight");
  }
}

TEST(TfheCiphertext, WithoutElementsOrNoiseComesBack) {
  TfheObjects o(tfhe_literal(Torus::t64, Order::switch_first, Rotation::classic));
  const tfhe::Evaluator evaluator(backend::make_ref_tfhe(o.params->config()), o.keys);
  const auto none = o.client.encrypt({});
  EXPECT_EQ(tfhe_ciphertext_from_bytes(to_bytes(none), o.params).size(), 0u);
  const std::vector<std::uint64_t> values{3, 0, 7};
  const auto clear = evaluator.clear(values);
  const auto read = tfhe_ciphertext_from_bytes(to_bytes(clear), o.params);
  EXPECT_EQ(o.client.decrypt(read), values);
  EXPECT_EQ(read.history.norm2(), 0);
  EXPECT_TRUE(read.key_id.is_none());
}

// --- known bytes ---------------------------------------------------------------------------------

Bytes vector(const std::string& name) {
  std::ifstream in(std::string(JALI_VECTORS) + "/v1/" + name + ".jali", std::ios::binary);
  EXPECT_TRUE(in.good()) << "vectors/v1/" << name << ".jali is missing";
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(TfheVectors, AreUnchangedAndMeanWhatTheyMeant) {
  const std::map<std::string, std::string> known{
      {"tfhe_params", "c212dd0aa7ee8aa42baf25ec3955653d"},
      {"tfhe_ciphertext_fresh", "fb4d1c3b288564958b9159a84c5dacb5"},
      {"tfhe_ciphertext_computed", "7f1584230db4bedd2557d6c97540412d"},
      {"tfhe_ciphertext_summed", "ec90458b21ab4316887bcf14a0d0d946"},
      {"tfhe_evaluation_keys", "e437f507ecc13dd890b2d75526da39e8"},
      {"tfhe_compact", "ce90de7a78e4c334c98131e0e34bf61b"},
      {"tfhe_public_key", "30ad8091da577a5b27511e2c1feec327"},
      {"tfhe_secret_key", "7ad4776b0ab462ee6b9208e0e0c42566"}};
  for (const auto& [name, digest] : known) {
    EXPECT_EQ(test::hex(hash256(vector(name))).substr(0, 32), digest) << name;
  }
  const auto params = tfhe_params_from_bytes(vector("tfhe_params"), kLimits);
  EXPECT_EQ(to_bytes(*params), vector("tfhe_params"));
  auto secret = tfhe_secret_from_bytes(vector("tfhe_secret_key"), params);
  const auto again = secret_to_bytes(secret);
  EXPECT_EQ(Bytes(again.begin(), again.end()), vector("tfhe_secret_key"));
  const tfhe::Client client(std::make_shared<const lwe::SecretKey>(std::move(secret)));
  const auto keys = tfhe_keys_from_bytes(vector("tfhe_evaluation_keys"), params);
  EXPECT_EQ(to_bytes(keys), vector("tfhe_evaluation_keys"));
  const tfhe::Evaluator evaluator(backend::make_ref_tfhe(params->config()), keys);
  const auto compact = tfhe_compact_from_bytes(vector("tfhe_compact"), params);
  EXPECT_EQ(to_bytes(compact), vector("tfhe_compact"));
  EXPECT_EQ(client.decrypt(compact), TfheObjects::values());
  EXPECT_EQ(client.decrypt(evaluator.refresh(evaluator.bind(compact))), TfheObjects::values());
  const auto open = tfhe_public_key_from_bytes(vector("tfhe_public_key"), params);
  EXPECT_EQ(to_bytes(open), vector("tfhe_public_key"));
  tfhe::PublicEncryptor owner(std::make_shared<const lwe::PublicKey>(
      tfhe_public_key_from_bytes(vector("tfhe_public_key"), params)));
  EXPECT_EQ(client.decrypt(owner.encrypt(TfheObjects::values())), TfheObjects::values());
  for (const char* name :
       {"tfhe_ciphertext_fresh", "tfhe_ciphertext_computed", "tfhe_ciphertext_summed"}) {
    const auto x = tfhe_ciphertext_from_bytes(vector(name), params);
    EXPECT_EQ(to_bytes(x), vector(name));
    EXPECT_EQ(client.decrypt(x), TfheObjects::values());
    EXPECT_EQ(client.decrypt(evaluator.refresh(evaluator.bind(x))), TfheObjects::values());
  }
}

}  // namespace
}  // namespace jali::wire
