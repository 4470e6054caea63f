// Manifests of someone who lies are refused with the place, before any work; honest ones come back.
#include "jali/client/manifest.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <functional>
#include <limits>
#include <random>

#include "allocations.h"
#include "jali/base/error.h"
#include "support.h"
#include "tampering.h"

namespace jali::client {
namespace {

using namespace testing;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

const Objects& objects() {
  static const Objects o(small_literal(Word::w52, 40, 2));
  return o;
}

Manifest honest() { return small_manifest(objects().params); }

Manifest with_columns() {
  Manifest m = honest();
  m.inputs[0].columns = "a\nb\nc\nd\ne";
  return m;
}

TEST(Manifest, ComesBack) {
  const Manifest m = honest();
  const wire::Bytes bytes = to_bytes(m);
  const Manifest again = manifest_from_bytes(bytes, kLimits);
  EXPECT_EQ(to_bytes(again), bytes);
  EXPECT_EQ(fingerprint(again), fingerprint(m));
  EXPECT_TRUE(again.is_like(m));
  EXPECT_EQ(again.demand, m.demand);
  EXPECT_EQ(again.inputs[1].name, "größe");
  EXPECT_EQ(again.outputs[0].low, m.outputs[0].low);
}

TEST(Manifest, NamesOfColumnsComeBack) {
  const Manifest none = honest();
  Manifest m = none;
  m.inputs[1].columns = "größe\nage\na b";
  const wire::Bytes bytes = to_bytes(m);
  const Manifest again = manifest_from_bytes(bytes, kLimits);
  EXPECT_EQ(again.inputs[1].columns, m.inputs[1].columns);
  EXPECT_EQ(again.inputs[0].columns, "");
  EXPECT_EQ(to_bytes(again), bytes);
  EXPECT_NE(fingerprint(again), fingerprint(none));
  EXPECT_TRUE(again.is_like(none));
  // There is one way to write that there are none.
  const wire::Bytes whole = to_bytes(none);
  const auto payload = payload_of(whole);
  wire::Bytes longer(payload.begin(), payload.end());
  longer.resize(longer.size() + 8);
  EXPECT_THROW(manifest_from_bytes(with_payload(bytes, longer), kLimits), CorruptData);
}

TEST(Manifest, IsLikeAnotherUpToRounding) {
  const Manifest m = honest();
  Manifest other = m;
  other.inputs[0].name = "other", other.inputs[0].rms = 0.25;
  other.inputs[0].centre = Numbers::all(0.5 * (1 + 1e-12));
  EXPECT_TRUE(other.is_like(m));
  for (const auto& change : std::vector<std::function<void(Manifest&)>>{
           [](Manifest& x) { x.inputs[0].radius = Numbers::all(2.001); },
           [](Manifest& x) { x.inputs[0].level = 0; },
           [](Manifest& x) { x.inputs[0].layout.period = 16; },
           [](Manifest& x) { x.outputs[0].shape = {2, 9}; },
           [](Manifest& x) { x.outputs.pop_back(); },
           [](Manifest& x) { x.params = Objects(small_literal(Word::w52, 39, 2)).params; }}) {
    other = m;
    change(other);
    EXPECT_FALSE(other.is_like(m));
  }
}

TEST(Manifest, HasTheSecurityThatIsDemanded) {
  EXPECT_THROW(manifest_from_bytes(to_bytes(honest())), InsecureParams);
}

struct Lie {
  std::function<void(Manifest&)> change;
  const char* sentence;
};

// Each of these is what a server may write that knows the format.
const std::vector<Lie>& lies() {
  static const std::vector<Lie> all = {
      {[](Manifest& m) { m.inputs.clear(); }, "inputs: must be a list of 1 to"},
      {[](Manifest& m) { m.outputs.clear(); }, "outputs: must be a list of 1 to"},
      {[](Manifest& m) { m.demand.noise_bits.clear(); }, "noise_bits: must be a list of 1 to"},
      {[](Manifest& m) { m.demand.noise_bits = {12}; },
       "noise_bits: must be a number for each output"},
      {[](Manifest& m) { m.demand.noise_bits[0] = -5000; },
       "noise_bits: entry 0: must be a number from 1 to 64"},
      {[](Manifest& m) { m.demand.noise_bits[1] = kNan; },
       "noise_bits: entry 1: must be a number from 1 to 64"},
      {[](Manifest& m) { m.demand.noise_bits[0] = 0.999; }, "noise_bits: entry 0"},
      {[](Manifest& m) { m.demand.noise_bits[0] = 64.5; }, "noise_bits: entry 0"},
      {[](Manifest& m) { m.outputs[0].peak = 1e5; },
       "outputs: peak: is larger than any number that decryption gives"},
      {[](Manifest& m) { m.outputs[0].peak = m.outputs[0].rms = 1e-9; },
       "peak: must hold for all numbers from low to high"},
      {[](Manifest& m) { m.inputs[0].peak = m.inputs[0].rms = 0.01; },
       "inputs: entry 0: peak: must hold for all numbers"},
      {[](Manifest& m) { m.inputs[0].rms = 5; }, "rms: must be above 0 and at most peak"},
      {[](Manifest& m) { m.inputs[0].rms = 0; }, "rms: must be above 0 and at most peak"},
      {[](Manifest& m) { m.inputs[0].rms = kNan; }, "rms: must be a number"},
      {[](Manifest& m) { m.inputs[0].peak = kInf; }, "peak: must be a number"},
      {[](Manifest& m) { m.inputs[0].peak = 1e7; }, "peak: must be a number from 0 to 1e+06"},
      {[](Manifest& m) { m.inputs[0].name = "x\x1b[2J"; },
       "name: must be a text without control characters"},
      {[](Manifest& m) { m.inputs[0].name = "\xe2\x80\xaetxt"; },
       "name: must be a text without control characters"},
      {[](Manifest& m) { m.inputs[0].name.clear(); },
       "name: must be a text of 1 to 1,000 characters"},
      {[](Manifest& m) { m.inputs[0].name = m.inputs[1].name; }, "inputs: two have one name"},
      {[](Manifest& m) { m.inputs[0].columns = "a\nb\nc\nd"; },
       "inputs: entry 0: columns: must be a name for each number of the last axis"},
      {[](Manifest& m) { m.inputs[0].columns = "a\nb\nc\nd\ne\n"; }, "columns: must be a name for"},
      {[](Manifest& m) { m.inputs[0].columns = "a\nb\nc\n\ne"; }, "columns: must be texts of 1 to"},
      {[](Manifest& m) { m.inputs[0].columns = "a\nb\nc\n\x1b[2J\ne"; },
       "columns: must be texts of 1 to 1,000 characters without control characters"},
      {[](Manifest& m) { m.inputs[0].columns = "a\nb\nc\nd\n" + std::string(1001, 'e'); },
       "columns: must be texts of 1 to 1,000 characters"},
      {[](Manifest& m) { m.inputs[0].level = 3; }, "level: must be a whole number"},
      {[](Manifest& m) { m.inputs[0].shape = {6}; },
       "shape: has another number of numbers than laid"},
      {[](Manifest& m) { m.inputs[0].shape = {0}; },
       "shape: has another number of numbers than laid"},
      {[](Manifest& m) { m.inputs[0].layout.period = 4; }, "period: must be as long as the array"},
      {[](Manifest& m) { m.inputs[0].layout.period = 6; }, "period: must be a power of two"},
      {[](Manifest& m) { m.inputs[0].layout.gap = 65; },
       "gap: must be a whole number from 1 to 64"},
      {[](Manifest& m) { m.inputs[0].layout.grid = {4}; },
       "grid: must have the sizes of all axes but the first"},
      {[](Manifest& m) { m.outputs[0].layout.grid = {2, 2}; }, "laid: two numbers lie in one slot"},
      {[](Manifest& m) { m.inputs[1].layout.table[0] = 3; },
       "table: names numbers that the array does not have"},
      {[](Manifest& m) { m.inputs[1].layout.table[0] = -2; },
       "table: names numbers that the array does not have"},
      {[](Manifest& m) {
         for (auto& x : m.inputs[1].layout.table) x = x == 2 ? 1 : x;
       },
       "table: leaves out a number"},
      {[](Manifest& m) { m.outputs[1] = m.inputs[1]; }, "outputs: table: an output has none"},
      {[](Manifest& m) { m.inputs[0].centre = Numbers::all(kNan); }, "numbers: must be finite"},
      {[](Manifest& m) { m.inputs[0].radius = Numbers::all(0); },
       "numbers: a radius or a range is empty"},
      {[](Manifest& m) { m.inputs[0].radius = Numbers::all(-2); },
       "numbers: a radius or a range is empty"},
      {[](Manifest& m) { m.inputs[0].low = Numbers::all(2.6); },
       "numbers: a radius or a range is empty"},
      {[](Manifest& m) { m.inputs[0].centre = Numbers::all(1e151); },
       "numbers: must be at most 1e+150"},
      {[](Manifest& m) { m.demand.rotations[600] = 0; },
       "rotations: a step or a level is out of range"},
      {[](Manifest& m) { m.demand.rotations[1] = 3; },
       "rotations: a step or a level is out of range"},
      {[](Manifest& m) { m.demand.product = 3; }, "product: must be a level"},
      {[](Manifest& m) { m.demand.conjugation = -2; }, "conjugation: must be a level, or -1"},
      {[](Manifest& m) { m.demand.bootstrap = BootstrapKeys::all; },
       "bootstrap: must be one of none"},
      {[](Manifest& m) {
         m.demand.bootstrap = BootstrapKeys::within, m.demand.bootstrap_bytes = 5;
       },
       "bootstrap: must be one of none"},
      {[](Manifest& m) { m.demand.bootstrap_bytes = 5; }, "bootstrap: has a number of bytes"},
      {[](Manifest& m) { m.demand.packings.clear(); }, "packings: must be a list of 1 to"},
      {[](Manifest& m) { m.demand.packings = {3}; }, "packings: must be 0, or powers of two"},
      {[](Manifest& m) { m.demand.packings = {512}; }, "packings: must be 0, or powers of two"},
      {[](Manifest& m) { m.demand.restored_bits = 1e9; },
       "restored_bits: must be a number from 0 to 64"},
      {[](Manifest& m) { m.lanes = 3; }, "lanes: must be a power of two"},
      {[](Manifest& m) { m.lanes = 1024; }, "lanes: must be a power of two"},
  };
  return all;
}

TEST(Manifest, ThatLiesIsRefusedWithThePlace) {
  for (std::size_t k = 0; k < lies().size(); ++k) {
    Manifest m = honest();
    lies()[k].change(m);
    try {
      manifest_from_bytes(to_bytes(m), kLimits);
      ADD_FAILURE() << "lie " << k << " is accepted: " << lies()[k].sentence;
    } catch (const CorruptData& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find(lies()[k].sentence), std::string::npos) << "lie " << k << ": " << text;
      EXPECT_EQ(std::ranges::count_if(text, [](char c) { return c < ' ' || c == 0x7f; }), 0)
          << text;
    }
  }
}

// Equal numbers are written once, so that the size of the bytes bounds nothing.
TEST(Manifest, ThatIsSmallCannotClaimLargeArrays) {
  Manifest m = honest();
  Port large = m.inputs[0];
  large.shape = large.layout.shape = {1 << 24};
  large.layout.period = large.layout.slots;
  large.level = 0;
  m.inputs.clear();
  for (int k = 0; k < 5; ++k) {
    large.name = "x" + std::to_string(k);
    m.inputs.push_back(large);
  }
  const wire::Bytes bytes = to_bytes(m);
  EXPECT_LT(bytes.size(), 2000u);
  const std::size_t before = allocated_bytes();
  EXPECT_THROW(manifest_from_bytes(bytes, kLimits), CorruptData);
  EXPECT_LT(allocated_bytes() - before, std::size_t{1} << 20);
}

// Whether two numbers share a slot takes a list of them where the last plane of a grid has not all
// of its channels: 90 KB of such inputs took 10 s.
TEST(Manifest, ThatIsSmallCannotAskForMuchWork) {
  Manifest m = honest();
  Port large = m.inputs[0];
  large.level = 0;
  large.layout.period = large.layout.slots;
  large.layout.gap = 2;
  large.layout.grid = {1023, 2047};
  large.shape = large.layout.shape = {2, 512, 1024};
  m.inputs.clear();
  for (int k = 0; k < 1024; ++k) {
    large.name = "x" + std::to_string(k);
    m.inputs.push_back(large);
  }
  const wire::Bytes bytes = to_bytes(m);
  const auto start = std::clock();
  EXPECT_THROW(manifest_from_bytes(bytes, kLimits), CorruptData);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 0.5);
  m.inputs.resize(1);
  EXPECT_NO_THROW(manifest_from_bytes(to_bytes(m), kLimits));
  m.inputs[0].layout.grid = {2047, 4095};
  m.inputs[0].shape = m.inputs[0].layout.shape = {2, 1024, 2048};
  EXPECT_THROW(manifest_from_bytes(to_bytes(m), kLimits), CorruptData);
}

TEST(Manifest, HasNamesOfColumnsForInputsAlone) {
  Manifest m = honest();
  m.outputs[1].columns = "a";
  EXPECT_THROW(check(m), CorruptData);
}

// Whatever a manifest says, a number near the end of what decryption can give is beyond what the
// output allows.
TEST(Manifest, CannotSwitchOffTheRangeCheckOfDecryption) {
  const ckks::Params& params = *objects().params;
  const double room = std::exp2(params.level(0).log_q - std::log2(params.scale(0)) - 1);
  int seen = 0;
  for (const double bits : {1.0, 2.0, 8.0, 64.0}) {
    for (int log = -3; log < 20; ++log) {
      Manifest m = honest();
      m.demand.noise_bits = {bits, bits};
      m.outputs[0].peak = std::exp2(log);
      try {
        manifest_from_bytes(to_bytes(m), kLimits);
      } catch (const CorruptData&) {
        continue;
      }
      ++seen;
      EXPECT_LE(m.outputs[0].peak * kTolerance + kSigmas * std::exp2(-bits), room);
    }
  }
  EXPECT_GT(seen, 10);
}

class Tampered : public ::testing::Test {
 protected:
  const wire::Bytes valid = to_bytes(with_columns());
  /// The names of columns are left out if there are none: cut there, a manifest is one without.
  const wire::Bytes nameless = to_bytes(honest());
  std::mt19937_64 random{0x6a616c69};

  Outcome judge(const wire::Bytes& bytes, const std::string& what) {
    const auto start = std::clock();
    const Outcome out =
        judged(what, bytes, [&] { return to_bytes(manifest_from_bytes(bytes, kLimits)); });
    seconds = std::max(seconds, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
    return out;
  }
  double seconds = 0;
};

TEST_F(Tampered, CutOrExtended) {
  for (const std::size_t size : cuts(valid.size(), 250, 200, random)) {
    EXPECT_EQ(judge(cut(valid, size), "cut"), Outcome::refused);
    const wire::Bytes bad = sealed(cut(valid, size));
    EXPECT_EQ(judge(bad, "cut and sealed"), bad == nameless ? Outcome::accepted : Outcome::refused);
  }
  const auto payload = payload_of(valid);
  for (std::size_t size = 0; size < payload.size(); size += 1 + size / 100) {
    const wire::Bytes bad = with_payload(valid, payload.first(size));
    EXPECT_EQ(judge(bad, "payload cut"), bad == nameless ? Outcome::accepted : Outcome::refused);
  }
  for (const std::size_t extra : {1, 8, 1000}) {
    wire::Bytes longer(payload.begin(), payload.end());
    longer.resize(longer.size() + extra);
    EXPECT_EQ(judge(with_payload(valid, longer), "payload extended"), Outcome::refused);
  }
}

TEST_F(Tampered, FlippedOrScrambled) {
  int accepted = 0;
  for (std::size_t bit = random() % 5; bit < 8 * valid.size(); bit += 5) {
    EXPECT_EQ(judge(flipped(valid, bit), "flipped"), Outcome::refused);
    const wire::Bytes bad = sealed(flipped(valid, bit));
    if (bad != valid) accepted += judge(bad, "flipped and sealed") == Outcome::accepted;
  }
  EXPECT_GT(accepted, 10) << "of names and magnitudes";
  for (int k = 0; k < 500; ++k) {
    wire::Bytes bad = scrambled(valid, k, random);
    std::copy_n(valid.begin(), 8, bad.begin());
    judge(sealed(bad), "scrambled");
  }
  EXPECT_LT(seconds, 0.5) << "of a refusal";
}

TEST_F(Tampered, MemoryStaysWithinTheBytes) {
  for (int k = 0; k < 500; ++k) {
    wire::Bytes bad = scrambled(valid, k, random);
    std::copy_n(valid.begin(), 8, bad.begin());
    bad = sealed(bad);
    const std::size_t before = allocated_bytes();
    try {
      manifest_from_bytes(bad, kLimits);
    } catch (const Error&) {
    }
    // The parameters take what their levels need (tests/wire/hostile_params_test.cpp).
    EXPECT_LT(allocated_bytes() - before, (std::size_t{1} << 22) + 20 * bad.size());
  }
}

}  // namespace
}  // namespace jali::client
