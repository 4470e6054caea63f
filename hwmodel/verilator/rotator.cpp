// rotator against the oracle's times_power.
#include "jali/backend/ref/torus.h"
#include "lanes.h"

using namespace rtl;
namespace ref = jali::backend::ref;

int main(int argc, char** argv) {
  constexpr int C = PARAM_C;
  constexpr std::size_t N = PARAM_N, T = N / C;
  Stream stream(
      [](Unit& unit, const Words& beat) {
        for (int lane = 0; lane < C; ++lane) set_lane(unit.in_data, lane, 32, beat[lane]);
        unit.in_exponent = beat[C];
      },
      [](Unit& unit) {
        Words beat(C);
        for (int lane = 0; lane < C; ++lane) beat[lane] = lane_of(unit.out_data, lane, 32);
        return beat;
      },
      seed_of(argc, argv));
  std::vector<Words> beats, expected;
  for (int frame = 0; frame < 60; ++frame) {
    std::vector<std::uint32_t> p(N), turned(N);
    for (auto& x : p) x = static_cast<std::uint32_t>(stream.random()());
    const u64 a = frame == 0 ? N : stream.random()() % (2 * N);
    ref::times_power(turned.data(), p.data(), a, N);
    for (std::size_t t = 0; t < T; ++t) {
      Words in, out;
      for (std::size_t lane = 0; lane < C; ++lane) {
        const std::size_t j = t + lane * T;
        in.push_back(p[j]);
        out.push_back(turned[j] - p[j]);
      }
      in.push_back(a);
      beats.push_back(in);
      expected.push_back(out);
    }
  }
  stream.check(beats, expected);
  stream.measure_frames(beats, expected.size(), T);
}
