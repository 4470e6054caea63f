// Blind rotations by the folded Fourier transform.
//
// Its error. The standard deviation of a word after one step, relative to the size of the sums,
// 2^(g-1) 2^63 sqrt(P N), is 2^-53.1 at N = 2^8 to 2^-52.6 at N = 2^12 (measured against the exact
// product; the tests hold it to 2^-52). Of that, the rounding of the key to doubles is a part. With
// digits of 23 bits this is of the size of the scheme's own noise, see docs/notebook.
#include <algorithm>
#include <cmath>
#include <vector>

#include "jali/backend/cpu/tfhe_rotator.h"

namespace jali::backend::cpu {

Rotator::Rotator(const TfheConfig& config)
    : kind_(config.rotation),
      N_(config.N.value),
      rows_(config.k.value + 1),
      digits_(rows_ * static_cast<std::size_t>(config.rotation_gadget.levels)),
      steps_(config.steps()),
      units_(config.units()),
      group_(static_cast<std::size_t>(config.group)),
      n_(config.n.value) {}

void Rotator::unit_exponents(std::uint32_t* units, const std::uint32_t* bits) const {
  if (kind_ != Rotation::multi_bit) {
    std::copy(bits, bits + units_, units);
    return;
  }
  const auto mask = static_cast<std::uint32_t>(2 * N_ - 1);
  for (std::size_t u = 0; u < units_; ++u) {
    std::uint32_t sum = 0;
    for (std::size_t j = 0; j < group_; ++j) sum += ((u + 1) >> j & 1) != 0 ? bits[j] : 0;
    units[u] = sum & mask;
  }
}

namespace {

/// How often a step fetches.
std::size_t fetching_turns(const FourierPlan& plan, std::size_t rows, std::size_t digits) {
  std::size_t each = plan.groups;  // of a transform
  for (std::size_t p = 0; p < plan.pass_count; ++p) {
    each += (plan.n >> plan.passes[p].log_radix) / plan.lanes;
  }
  return (rows + digits) * each + plan.groups * (rows + 1) / 2 * digits;
}

class FourierRotator final : public Rotator {
 public:
  FourierRotator(const TfheConfig& config, const TfheKernels& kernels)
      : Rotator(config),
        kernels_(kernels),
        tables_(N_, kernels.lanes, kernels.log_radix),
        rule_(config.rotation_gadget),
        place_{units_, rows_, digits_, static_cast<std::size_t>(kernels.lanes),
               static_cast<std::size_t>(kernels.quad)} {}

  std::size_t step_bytes() const override { return units_ * rows_ * digits_ * N_ * sizeof(double); }
  std::size_t prepare_scratch_bytes() const override { return N_ * sizeof(double); }

  void prepare(std::byte* step_key, std::size_t u, std::size_t c, std::size_t o,
               const std::uint64_t* words, std::byte* scratch) const override {
    auto* const form = reinterpret_cast<double*>(scratch);
    auto* const key = reinterpret_cast<double*>(step_key);
    kernels_.transform_words(plan_, form, words);
    const std::size_t lanes = plan_.lanes, pair = 2 * lanes;
    const double scale = std::ldexp(1 / static_cast<double>(plan_.n), -64);  // a power of two
    for (std::size_t g = 0; g < plan_.groups; ++g) {
      for (std::size_t p = 0; p < lanes; ++p) {
        const double* const from = form + (g * lanes + p) * pair;
        double* const to = key + place_(g, u, o, c, p) * pair;
        for (std::size_t t = 0; t < pair; ++t) to[t] = from[t] * scale;
      }
    }
  }

  std::size_t scratch_bytes() const override {
    return (digits_ * N_ + rows_ * N_ + tile_doubles(digits_, rows_, plan_.lanes)) * sizeof(double);
  }

  void rotate(std::uint64_t* accs, const std::uint32_t* exponents, std::size_t count,
              const std::byte* key, std::byte* scratch) const override {
    std::uint32_t units[16];
    RotationStep step{};
    step.plan = &plan_;
    step.rule = &rule_;
    step.rows = rows_;
    step.classic = kind_ == Rotation::classic;
    step.units = units_;
    step.exponents = units;
    step.digits = reinterpret_cast<double*>(scratch);
    step.sums = step.digits + digits_ * N_;
    step.tiles = step.sums + rows_ * N_;
    const std::size_t acc_words = rows_ * acc_stride(N_), bytes = step_bytes();
    // The key of the next step comes while this one is worked with, evenly spread over the
    // ciphertexts and over the places of a step that ask for it.
    const std::size_t share = (bytes / count + 63) / 64 * 64;
    const std::size_t turns = fetching_turns(plan_, rows_, digits_);
    step.ahead.bytes = (share / 64 + turns - 1) / turns * 64;
    for (std::size_t i = 0; i < steps_; ++i) {
      const std::byte* const at = key + i * bytes;
      step.key = reinterpret_cast<const double*>(at);
      for (std::size_t c = 0; c < count; ++c) {
        unit_exponents(units, exponents + c * (n_ + 1) + i * group_);
        step.acc = accs + c * acc_words;
        step.ahead.next = reinterpret_cast<const char*>(at) + bytes + c * share;
        if (i + 1 == steps_) step.ahead.bytes = 0;
        kernels_.step(step);
      }
    }
  }

 private:
  const TfheKernels kernels_;
  const FourierTables tables_;
  const FourierPlan& plan_ = tables_.plan();
  const DigitRule rule_;
  const KeyPlace place_;
};

}  // namespace

std::unique_ptr<Rotator> make_fourier_rotator(const TfheConfig& config,
                                              const TfheKernels& kernels) {
  return std::make_unique<FourierRotator>(config, kernels);
}

}  // namespace jali::backend::cpu
