// decomposer against the oracle's digits.
#include "jali/backend/ref/torus.h"
#include "lanes.h"

using namespace rtl;
namespace backend = jali::backend;

int main(int argc, char** argv) {
  constexpr int C = PARAM_C, D = PARAM_BASE_LOG + 1, L = PARAM_LEVELS;
  Stream stream(
      [](Unit& unit, const Words& beat) {
        for (int lane = 0; lane < C; ++lane) set_lane(unit.in_data, lane, 32, beat[lane]);
      },
      [](Unit& unit) {
        Words beat(C);
        for (int lane = 0; lane < C; ++lane) beat[lane] = lane_of(unit.out_data, lane, D);
        return beat;
      },
      seed_of(argc, argv));
  backend::Gadget gadget{};
  gadget.base_log = PARAM_BASE_LOG;
  gadget.levels = L;
  constexpr std::uint32_t kHalf = 1u << (PARAM_BASE_LOG - 1);
  std::vector<Words> beats, expected;
  for (int i = 0; i < 5'000; ++i) {
    Words in(C);
    std::vector<Words> out(L, Words(C));
    for (int lane = 0; lane < C; ++lane) {
      std::uint32_t x = static_cast<std::uint32_t>(stream.random()());
      if (i % 2 == 0) {  // digits at B/2, and neighbours
        x = stream.random()() % 3 - 1;
        for (int j = 1; j <= L; ++j) {
          x += ((stream.random()() & 1) != 0 ? kHalf
                                             : static_cast<std::uint32_t>(stream.random()() % 4))
               << (32 - j * PARAM_BASE_LOG);
        }
      }
      in[lane] = x;
      std::int32_t digits[L];
      backend::ref::decompose<std::uint32_t>(digits, x, gadget);
      for (int j = 0; j < L; ++j) {  // the last level comes first
        out[L - 1 - j][lane] = static_cast<std::uint32_t>(digits[j]) & ((1u << D) - 1);
      }
    }
    beats.push_back(in);
    expected.insert(expected.end(), out.begin(), out.end());
  }
  stream.check(beats, expected);
  stream.measure_frames(beats, expected.size());
}
