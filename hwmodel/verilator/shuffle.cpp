// shuffle against the oracle's bit reversal: of a pair's two index bits, which segment (of L beats)
// and which lane, it makes the reversed index. A cascade of such units is the reversal of all bits
// that the transform needs.
#include "jali/backend/ref/transform.h"
#include "lanes.h"

using namespace rtl;
namespace ref = jali::backend::ref;

int main(int argc, char** argv) {
  constexpr int WIDTH = PARAM_WIDTH;
  constexpr std::size_t L = PARAM_L, T = PARAM_T;
  static_assert(WIDTH <= 64 && T % (2 * L) == 0);
  Stream stream(
      [](Unit& unit, const Words& beat) {
        set_lane(unit.in_u, 0, WIDTH, beat[0]);
        set_lane(unit.in_v, 0, WIDTH, beat[1]);
      },
      [](Unit& unit) {
        return Words{lane_of(unit.out_u, 0, WIDTH), lane_of(unit.out_v, 0, WIDTH)};
      },
      seed_of(argc, argv));
  std::vector<Words> beats, expected;
  for (std::size_t t = 0; t < 20 * T; ++t) {
    beats.push_back({stream.random()() & (~u64{0} >> (64 - WIDTH)),
                     stream.random()() & (~u64{0} >> (64 - WIDTH))});
  }
  for (std::size_t t = 0; t < beats.size(); ++t) {
    const std::size_t pair = t / (2 * L) * 2 * L, segment = t / L % 2;
    Words out;
    for (std::size_t lane = 0; lane < 2; ++lane) {
      const std::size_t from = ref::bit_reverse(2 * segment + lane, 4);
      out.push_back(beats[pair + from / 2 * L + t % L][from % 2]);
    }
    expected.push_back(out);
  }
  stream.check(beats, expected);
  stream.measure_frames(beats, expected.size());
}
