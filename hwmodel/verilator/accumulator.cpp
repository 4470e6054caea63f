// accumulator against the oracle's blind rotation. The frames of a sum are an accumulator's
// polynomial and the (k + 1) levels products that a step adds to it (ref::add_product); the sum is
// what ref::rotate makes of it. Some sums are external products alone, and some have one frame.
#include "jali/backend/ref/tfhe.h"
#include "jali/backend/ref/torus.h"
#include "lanes.h"

using namespace rtl;
namespace backend = jali::backend;
namespace ref = jali::backend::ref;

using Torus32 = std::uint32_t;
using Polynomial = std::vector<Torus32>;

int main(int argc, char** argv) {
  constexpr int C = PARAM_C;
  constexpr std::size_t T = PARAM_T, N = C * T;
  Stream stream(
      [](Unit& unit, const Words& beat) {
        for (int lane = 0; lane < C; ++lane) set_lane(unit.in_data, lane, 32, beat[lane]);
        unit.in_first = beat[C];
        unit.in_last = beat[C + 1];
      },
      [](Unit& unit) {
        Words beat(C);
        for (int lane = 0; lane < C; ++lane) beat[lane] = lane_of(unit.out_data, lane, 32);
        return beat;
      },
      seed_of(argc, argv));
  const auto random_words = [&](std::size_t count) {
    Polynomial words(count);
    for (auto& x : words) x = static_cast<Torus32>(stream.random()());
    return words;
  };
  std::vector<Words> beats, expected;
  const auto send = [&](const std::vector<Polynomial>& frames, const Torus32* sum) {
    for (std::size_t frame = 0; frame < frames.size(); ++frame) {
      for (std::size_t t = 0; t < T; ++t) {
        Words beat;
        for (std::size_t lane = 0; lane < C; ++lane) beat.push_back(frames[frame][t + lane * T]);
        beat.push_back(frame == 0);
        beat.push_back(frame + 1 == frames.size());
        beats.push_back(beat);
      }
    }
    for (std::size_t t = 0; t < T; ++t) {
      Words beat;
      for (std::size_t lane = 0; lane < C; ++lane) beat.push_back(sum[t + lane * T]);
      expected.push_back(beat);
    }
  };

  for (int i = 0; i < 30; ++i) {
    backend::TfheConfig config;
    config.torus = backend::Torus::t32;
    config.n = backend::LweDimension(1);
    config.k = backend::GlweDimension(1 + stream.random()() % 2);
    config.N = backend::PolynomialSize(N);
    config.rotation_gadget.base_log = 7;
    config.rotation_gadget.levels = 1 + static_cast<int>(stream.random()() % 3);
    const std::size_t polynomials = config.k.value + 1;
    const auto levels = static_cast<std::size_t>(config.rotation_gadget.levels);
    const Polynomial ggsw = random_words(config.ggsw_words());
    const ref::Glwe<Torus32> acc = random_words(polynomials * N);
    const bool step = i % 3 != 0;  // of a rotation; else an external product alone
    const std::uint32_t exponent[] = {
        static_cast<std::uint32_t>(1 + stream.random()() % (2 * N - 1))};

    ref::Glwe<Torus32> in = acc, sum = acc;
    if (step) {
      for (std::size_t c = 0; c < polynomials; ++c) {
        ref::times_power(&in[c * N], &acc[c * N], exponent[0], N);
      }
      for (std::size_t j = 0; j < in.size(); ++j) in[j] -= acc[j];
      ref::rotate<Torus32>(config, sum, exponent, ggsw.data());
    } else {
      sum = ref::external_product<Torus32>(config, ggsw.data(), in);
    }
    std::vector<std::vector<std::int32_t>> digits(polynomials * levels,
                                                  std::vector<std::int32_t>(N));
    std::vector<std::int32_t> word(levels);
    for (std::size_t j = 0; j < in.size(); ++j) {
      ref::decompose<Torus32>(word, in[j], config.rotation_gadget);
      for (std::size_t level = 0; level < levels; ++level) {
        digits[j / N * levels + level][j % N] = word[level];
      }
    }
    for (std::size_t to = 0; to < polynomials; ++to) {
      std::vector<Polynomial> frames;
      if (step) frames.emplace_back(&acc[to * N], &acc[to * N] + N);
      for (std::size_t row = 0; row < digits.size(); ++row) {
        frames.emplace_back(N, 0);
        ref::add_product<Torus32>(frames.back().data(), digits[row],
                                  &ggsw[(row * polynomials + to) * N]);
      }
      send(frames, &sum[to * N]);
    }
    const Polynomial alone = random_words(N);
    send({alone}, alone.data());
  }
  stream.check(beats, expected);
  stream.measure_sums(beats, expected.size());
}
