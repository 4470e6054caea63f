// ks_mac against TfheOps::key_switch of the oracle: whole key switches, from a dimension of 256 to
// COLP - 1.
#include "jali/backend/ref/torus.h"
#include "jali/backend/tfhe_ops.h"
#include "lanes.h"

using namespace rtl;
namespace backend = jali::backend;

int main(int argc, char** argv) {
  constexpr int CLP = PARAM_CLP, COLP = PARAM_COLP, D = PARAM_D;
  constexpr int kLevels = 2, kLarge = 256;
  Stream stream(
      [](Unit& unit, const Words& beat) {
        for (int i = 0; i < CLP; ++i) set_lane(unit.in_digits, i, D, beat[i]);
        for (int i = 0; i < CLP * COLP; ++i) set_lane(unit.in_key, i, 32, beat[CLP + i]);
        unit.in_last = beat[CLP + CLP * COLP];
      },
      [](Unit& unit) {
        Words beat(COLP);
        for (int m = 0; m < COLP; ++m) beat[m] = lane_of(unit.out_data, m, 32);
        return beat;
      },
      seed_of(argc, argv));
  backend::TfheConfig config;
  config.torus = backend::Torus::t32;
  config.n = backend::LweDimension(COLP - 1);
  config.k = backend::GlweDimension(1);
  config.N = backend::PolynomialSize(kLarge);
  config.rotation_gadget.base_log = config.switch_gadget.base_log = D - 1;
  config.rotation_gadget.levels = config.switch_gadget.levels = kLevels;
  const auto ops = backend::make_ref_tfhe(config);

  std::vector<std::uint32_t> key(kLarge * kLevels * COLP), prepared(key.size());
  for (auto& x : key) x = static_cast<std::uint32_t>(stream.random()());
  ops->prepare_switch_key(prepared.data(), key.data());
  std::vector<Words> beats, expected;
  for (int i = 0; i < 20; ++i) {
    std::vector<std::uint32_t> in(kLarge + 1), out(COLP);
    for (auto& x : in) x = static_cast<std::uint32_t>(stream.random()());
    ops->key_switch({out.data(), backend::Torus::t32, config.n, 1},
                    {in.data(), backend::Torus::t32, backend::LweDimension(kLarge), 1},
                    prepared.data());
    std::vector<std::int32_t> digits(kLarge * kLevels);
    for (int a = 0; a < kLarge; ++a) {
      backend::ref::decompose<std::uint32_t>({&digits[a * kLevels], kLevels}, in[a],
                                             config.switch_gadget);
    }
    for (int at = 0; at < kLarge * kLevels; at += CLP) {
      Words beat(CLP + CLP * COLP + 1);
      for (int r = 0; r < CLP; ++r) {
        beat[r] = static_cast<std::uint32_t>(digits[at + r]);
        for (int m = 0; m < COLP; ++m) beat[CLP + r * COLP + m] = key[(at + r) * COLP + m];
      }
      beat.back() = at + CLP == kLarge * kLevels;
      beats.push_back(beat);
    }
    out.back() -= in.back();  // the body, which another adder brings
    expected.emplace_back(out.begin(), out.end());
  }
  stream.check(beats, expected);
  stream.measure_sums(beats, expected.size());
}
