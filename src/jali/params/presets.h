// Named parameter sets, as data.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "jali/params/bootstrap_request.h"
#include "jali/params/ckks_params.h"

namespace jali::params {

/// A named literal. All are at least 128-bit secure by the table.
struct Preset {
  std::string_view name;
  std::string_view purpose;
  int log_n;
  int depth;
  double scale_bits;
  double integer_bits;
  std::optional<Word> word;  // empty: the default for the scale
  int dnum;                  // 0: chosen
};

// Sets of papers keep the paper's ring, depth and digits; where the paper's modulus exceeds the table
// (438 bits at 2^14, 881 at 2^15), the table holds.
inline constexpr Preset kPresets[] = {
    // General use: the largest scale, in whole bits, that leaves room for P.
    {"n12_d1", "one multiplication in a small ring", 12, 1, 30, 10, {}, 0},
    {"n13_d3", "matrix-vector paper, Set-A", 13, 3, 38, 10, {}, 0},
    {"n13_d5", "small networks: LoLa and FxHENN shapes", 13, 5, 28, 10, {}, 0},
    {"n14_d7", "matrix-vector paper, Set-B", 14, 7, 40, 10, {}, 0},
    {"n15_d14", "matrix-vector paper, Set-C", 15, 14, 40, 10, {}, 0},
    {"n16_d30", "deep circuits without bootstrapping", 16, 30, 40, 10, {}, 0},
    // Benchmarks: the moduli of the peers they are timed against.
    {"n14_q285_dnum3", "log Q 285 in grouped digits, two special primes", 14, 5, 47, 3, {}, 3},
    {"n14_q375_dnum8", "log Q 375, one digit a prime, one special prime", 14, 7, 46.5, 3, {}, 8},
    // TensorFHE's rings with one digit a prime, as it has them, on 32-bit words. For timing: level 0 has no
    // room above the scale.
    {"tensorfhe_n12", "TensorFHE at N = 2^12", 12, 2, 25, 0, Word::w32, 3},
    {"tensorfhe_n13", "TensorFHE at N = 2^13", 13, 5, 29, 0, Word::w32, 6},
    {"tensorfhe_n14", "TensorFHE at N = 2^14", 14, 12, 29, 0, Word::w32, 13},
    {"tensorfhe_n16", "TensorFHE, Table V, Default", 16, 44, 28.5, 0, Word::w32, 45},
};

inline constexpr std::span<const Preset> presets() { return kPresets; }

/// What a word makes of a preset: limbs of Q and of P, digits of key switching.
struct Shape {
  std::size_t limbs, special, digits;
};

/// A named bootstrapping: create_with_bootstrap of these, at 128 bits.
struct BootstrapPreset {
  std::string_view name;
  std::string_view purpose;
  int log_n;
  double precision_bits;
  int levels_after;
  double scale_bits;  // 0: what the precision needs
  BootstrapOrder order;
  std::optional<Word> word;  // empty: the device's
  Shape w32, w52;
};

// With slots to coefficients first a slot's error is that of two coefficients, not of all. Scales: 43 bits would leave
// 32-bit words a drift of a third of a bit; 42.5 is the least for which they have primes at 2^17, where 40 levels of 40
// bits take more near 27 bits than there are.
// What each word makes of them: presets/NAME.toml. Times and precision: docs/bootstrapping.md.
// clang-format off
inline constexpr BootstrapPreset kBootstrapPresets[] = {
    {"n16_fast", "bootstrapping of 2^15 complex slots in the least time",
     16, 22, 13, 40, BootstrapOrder::slots_first, {}, {48, 12, 4}, {38, 7, 4}},
    {"n16_precise", "bootstrapping of 2^15 complex slots to 28 bits",
     16, 28, 9, 42.9, BootstrapOrder::slots_first, {}, {47, 12, 4}, {38, 8, 4}},
    {"n16_real", "bootstrapping of 2^15 real slots, imaginary parts dropped",
     16, 22, 13, 40, BootstrapOrder::slots_first, {}, {48, 12, 4}, {38, 7, 4}},
    {"n15_small", "bootstrapping in the memory of a small card",
     15, 14, 2, 0, BootstrapOrder::slots_first, {}, {26, 6, 5}, {18, 4, 4}},
    {"n17_deep", "bootstrapping that leaves many levels",
     17, 24, 40, 42.5, BootstrapOrder::slots_first, {}, {91, 30, 3}, {69, 18, 3}},
};
// clang-format on

inline constexpr std::span<const BootstrapPreset> bootstrap_presets() { return kBootstrapPresets; }

/// The literal of a preset of either kind. word: instead of the preset's own. Throws InvalidArgument with
/// the names there are.
ckks::Literal preset(std::string_view name, std::optional<Word> word = {});

}  // namespace jali::params
