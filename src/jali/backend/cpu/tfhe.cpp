#include "jali/backend/cpu/tfhe.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "jali/backend/tfhe_checks.h"
#include "jali/base/error.h"

namespace jali::backend {

namespace cpu {

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

/// Words of either torus as words of 64 bits, and back, rounded half a unit up.
u64 lifted(u32 word) { return static_cast<u64>(word) << 32; }
u64 lifted(u64 word) { return word; }
template <class W>
W lowered(u64 word) {
  if constexpr (std::is_same_v<W, u32>) {
    return static_cast<u32>((word + (u64{1} << 31)) >> 32);
  } else {
    return word;
  }
}

constexpr std::size_t rounded_up(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Word i of out = the mask of coefficient h of a GLWE ciphertext whose component c begins at glwe
/// + c stride.
template <class W, class From>
void extract_one(const TfheConfig& config, W* out, const From* glwe, std::size_t stride,
                 std::size_t h) {
  const std::size_t N = config.N.value, k = config.k.value;
  for (std::size_t c = 0; c < k; ++c) {
    const From* const a = glwe + c * stride;
    W* const to = out + c * N;
    for (std::size_t i = 0; i <= h; ++i) to[i] = lowered<W>(lifted(a[h - i]));
    for (std::size_t i = h + 1; i < N; ++i) {
      to[i] = static_cast<W>(0 - lowered<W>(lifted(a[N + h - i])));
    }
  }
  out[k * N] = lowered<W>(lifted(glwe[k * stride + h]));
}

/// The config with the transform that the engine takes.
TfheConfig chosen(TfheConfig config) {
  if (config.transform.empty()) config.transform = "fft";
  return config;
}
std::unique_ptr<const Rotator> make_rotator(const TfheConfig& config, const TfheKernels& kernels) {
  if (config.transform == "ntt") return make_exact_rotator(config, kernels);
  return make_fourier_rotator(config, kernels);
}

}  // namespace

CpuTfhe::CpuTfhe(TfheConfig config, std::shared_ptr<device::Device> device)
    : TfheOps(std::move(device)),
      config_(chosen(validated(std::move(config)))),
      kernels_(select_tfhe_kernels(config_.isa)),
      switch_rule_(config_.switch_gadget),
      packing_rule_(config_.rotation_gadget),
      rotator_(make_rotator(config_, kernels_)),
      pool_(config_.threads) {}

// --- blind rotations -----------------------------------------------------------------------------

std::size_t CpuTfhe::rotation_key_bytes() const { return config_.steps() * rotator_->step_bytes(); }

void CpuTfhe::prepare_rotation_key(void* out, const void* ggsws, std::size_t first,
                                   std::size_t count) const {
  check_prepare_rotation_key(config_, out, ggsws, first, count);
  const std::size_t N = config_.N.value, rows = config_.k.value + 1, units = config_.units();
  const std::size_t digits = rows * static_cast<std::size_t>(config_.rotation_gadget.levels);
  const std::size_t words_bytes = rounded_up(N * sizeof(u64));
  pool_.parallel(count * units * digits, [&](std::size_t i) {
    const ScratchPool::Lease lease = scratch_.lend(words_bytes + rotator_->prepare_scratch_bytes());
    auto* const words = reinterpret_cast<u64*>(lease.data());
    const std::size_t step = i / (units * digits);
    auto* const key = static_cast<std::byte*>(out) + (first + step) * rotator_->step_bytes();
    for (std::size_t o = 0; o < rows; ++o) {
      with_word(config_.torus, [&](auto zero) {
        const auto* const from = static_cast<const decltype(zero)*>(ggsws) + (i * rows + o) * N;
        for (std::size_t w = 0; w < N; ++w) words[w] = lifted(from[w]);
      });
      rotator_->prepare(key, i / digits % units, i % digits, o, words, lease.data() + words_bytes);
    }
  });
}

std::size_t CpuTfhe::together(std::size_t count) const {
  // Accumulators stay in the L2 cache beside the keys of two steps; four at least, because a larger
  // key comes from further away.
  constexpr std::size_t kCache = std::size_t{768} << 10;
  const std::size_t each = (config_.k.value + 1) * acc_stride(config_.N.value) * sizeof(u64);
  const std::size_t others = 2 * rotator_->step_bytes() + rotator_->scratch_bytes();
  const std::size_t most =
      std::clamp<std::size_t>(others < kCache ? (kCache - others) / each : 0, 4, 16);
  const auto threads = static_cast<std::size_t>(pool_.threads());
  return std::min(most, (count + threads - 1) / threads);
}

void CpuTfhe::begin(u64* acc, const TableView& tables, std::size_t i, u32 body) const {
  const std::size_t N = config_.N.value, k = config_.k.value;
  const std::size_t table = tables.of_input.empty() ? 0 : tables.of_input[i];
  with_word(config_.torus, [&](auto zero) {
    const auto* from = static_cast<const decltype(zero)*>(tables.data);
    from += table * (tables.encrypted ? k + 1 : 1) * N;
    for (std::size_t c = 0; c <= k; ++c) {
      u64* const to = acc + c * acc_stride(N);
      if (c < k && !tables.encrypted) {
        std::fill(to, to + acc_stride(N), 0);
        continue;
      }
      // Word j of X^(-b') p is word j + b' of p, with p_(j+N) = -p_j.
      for (std::size_t j = 0; j < N; ++j) {
        const std::size_t at = j + body;
        const u64 word = lifted(from[at % N]);
        to[j] = at / N % 2 == 0 ? word : 0 - word;
      }
      pad(to, N);
      from += N;
    }
  });
}

template <class Done>
void CpuTfhe::rotate(ConstLweView in, const TableView& tables, const void* rotation_key,
                     const Done& done) const {
  const std::size_t n = config_.n.value, most = together(in.count);
  const std::size_t acc_words = (config_.k.value + 1) * acc_stride(config_.N.value);
  const std::size_t parts = (in.count + most - 1) / most;
  const std::size_t accs_bytes = rounded_up(most * acc_words * sizeof(u64));
  const std::size_t exponents_bytes = rounded_up(most * (n + 1) * sizeof(u32));
  pool_.parallel(parts, [&](std::size_t part) {
    const std::size_t first = in.count * part / parts;
    const std::size_t count = in.count * (part + 1) / parts - first;
    const ScratchPool::Lease lease =
        scratch_.lend(accs_bytes + exponents_bytes + rotator_->scratch_bytes());
    auto* const accs = reinterpret_cast<u64*>(lease.data());
    auto* const exponents = reinterpret_cast<u32*>(lease.data() + accs_bytes);
    for (std::size_t i = 0; i < count; ++i) {
      const std::span<u32> mine(exponents + i * (n + 1), n + 1);
      switched(mine, static_cast<const u32*>(in.data) + (first + i) * (n + 1), config_,
               tables.log_many);
      begin(accs + i * acc_words, tables, first + i, mine[n]);
    }
    rotator_->rotate(accs, exponents, count, static_cast<const std::byte*>(rotation_key),
                     lease.data() + accs_bytes + exponents_bytes);
    for (std::size_t i = 0; i < count; ++i) done(first + i, accs + i * acc_words);
  });
}

void CpuTfhe::bootstrap(LweView out, ConstLweView in, const TableView& tables,
                        const void* rotation_key) const {
  check_bootstrap(config_, out, in, tables, rotation_key);
  const std::size_t row = config_.large().value + 1;
  const std::size_t many = std::size_t{1} << tables.log_many;
  rotate(in, tables, rotation_key, [&](std::size_t i, const u64* acc) {
    with_word(config_.torus, [&](auto zero) {
      using W = decltype(zero);
      for (std::size_t j = 0; j < many; ++j) {
        extract_one<W>(config_, static_cast<W*>(out.data) + (i * many + j) * row, acc,
                       acc_stride(config_.N.value), j);
      }
    });
  });
}

void CpuTfhe::blind_rotate(GlweView out, ConstLweView in, const TableView& tables,
                           const void* rotation_key) const {
  check_blind_rotate(config_, out, in, tables, rotation_key);
  const std::size_t N = config_.N.value, rows = config_.k.value + 1;
  rotate(in, tables, rotation_key, [&](std::size_t i, const u64* acc) {
    with_word(config_.torus, [&](auto zero) {
      using W = decltype(zero);
      for (std::size_t c = 0; c < rows; ++c) {
        W* const to = static_cast<W*>(out.data) + (i * rows + c) * N;
        const u64* const from = acc + c * acc_stride(N);
        for (std::size_t j = 0; j < N; ++j) to[j] = lowered<W>(from[j]);
      }
    });
  });
}

void CpuTfhe::switch_bootstrap(LweView out, ConstLweView in, const TableView& tables,
                               const void* switch_key, const void* rotation_key) const {
  check_switch_bootstrap(config_, out, in, tables, switch_key, rotation_key);
  const ScratchPool::Lease lease = scratch_.lend(in.count * (config_.n.value + 1) * sizeof(u32));
  const LweView small{lease.data(), Torus::t32, config_.n, in.count};
  key_switch(small, in, switch_key);
  bootstrap(out, small, tables, rotation_key);
}

void CpuTfhe::bootstrap_switch(LweView out, ConstLweView in, const TableView& tables,
                               const void* switch_key, const void* rotation_key) const {
  check_bootstrap_switch(config_, out, in, tables, switch_key, rotation_key);
  const ScratchPool::Lease lease =
      scratch_.lend(out.count * (config_.large().value + 1) * torus_bytes(config_.torus));
  const LweView large{lease.data(), config_.torus, config_.large(), out.count};
  bootstrap(large, in, tables, rotation_key);
  key_switch(out, large, switch_key);
}

// --- what is linear ------------------------------------------------------------------------------

std::size_t CpuTfhe::switch_key_bytes() const {
  return switch_tiles() * switch_rows() * kSwitchColumns * sizeof(u32);
}

void CpuTfhe::prepare_switch_key(void* out, const void* rows) const {
  check_prepare_switch_key(out, rows);
  const std::size_t words = config_.n.value + 1, count = switch_rows();
  pool_.parallel(switch_tiles(), [&](std::size_t tile) {
    const std::size_t first = tile * kSwitchColumns, here = std::min(kSwitchColumns, words - first);
    auto* to = static_cast<u32*>(out) + tile * count * kSwitchColumns;
    const auto* from = static_cast<const u32*>(rows) + first;
    for (std::size_t r = 0; r < count; ++r, to += kSwitchColumns, from += words) {
      std::copy(from, from + here, to);
      std::fill(to + here, to + kSwitchColumns, 0);
    }
  });
}

void CpuTfhe::key_switch(LweView out, ConstLweView in, const void* switch_key) const {
  check_key_switch(config_, out, in, switch_key);
  const std::size_t n = config_.n.value, large = config_.large().value;
  const std::size_t rows = switch_rows(), tiles = switch_tiles(), columns = tiles * kSwitchColumns;
  // A block of rows of a tile stays in the L2 cache for all ciphertexts, and their digits stay in
  // reach.
  constexpr std::size_t kRows = 1024, kDigits = std::size_t{8} << 20;
  const std::size_t most =
      std::min(in.count, std::clamp<std::size_t>(kDigits / (rows * sizeof(u32)), 8, 256));
  const std::size_t digits_bytes = rounded_up(most * rows * sizeof(std::int32_t));
  const std::size_t sums_bytes = rounded_up(most * columns * sizeof(u32));
  const ScratchPool::Lease lease = scratch_.lend(digits_bytes + sums_bytes);
  auto* const digits = reinterpret_cast<std::int32_t*>(lease.data());
  auto* const sums = reinterpret_cast<u32*>(lease.data() + digits_bytes);
  for (std::size_t first = 0; first < in.count; first += most) {
    const std::size_t count = std::min(most, in.count - first);
    pool_.parallel(count, [&](std::size_t i) {
      std::fill(sums + i * columns, sums + (i + 1) * columns, 0);
      with_word(config_.torus, [&](auto zero) {
        using W = decltype(zero);
        const W* const row = static_cast<const W*>(in.data) + (first + i) * (large + 1);
        constexpr std::size_t kPiece = 256;
        u64 words[kPiece];
        const auto levels = static_cast<std::size_t>(config_.switch_gadget.levels);
        for (std::size_t at = 0; at < large; at += kPiece) {  // large is a multiple of 256
          for (std::size_t j = 0; j < kPiece; ++j) words[j] = lifted(row[at + j]);
          kernels_.digits(digits + i * rows + at * levels, words, kPiece, switch_rule_);
        }
      });
    });
    pool_.parallel(tiles, [&](std::size_t t) {
      for (std::size_t at = 0; at < rows; at += kRows) {
        SwitchTile tile{};
        tile.key = static_cast<const u32*>(switch_key) + (t * rows + at) * kSwitchColumns;
        tile.rows = std::min(kRows, rows - at);
        tile.digits = digits + at;
        tile.digit_stride = rows;
        tile.out = sums + t * kSwitchColumns;
        tile.out_stride = columns;
        tile.count = count;
        kernels_.switch_tile(tile);
      }
    });
    for (std::size_t i = 0; i < count; ++i) {
      u32* const to = static_cast<u32*>(out.data) + (first + i) * (n + 1);
      for (std::size_t w = 0; w <= n; ++w) to[w] = 0 - sums[i * columns + w];
      with_word(config_.torus, [&](auto zero) {
        using W = decltype(zero);
        const W body = static_cast<const W*>(in.data)[(first + i) * (large + 1) + large];
        to[n] += lowered<u32>(lifted(body));
      });
    }
  }
}

void CpuTfhe::combine(LweView out, ConstLweView in, const LweCombination& combination) const {
  check_combine(out, in, combination);
  const std::size_t words = in.dimension.value + 1;
  with_word(in.torus, [&](auto zero) {
    using W = decltype(zero);
    pool_.parallel(out.count, [&](std::size_t r) {
      W* const to = static_cast<W*>(out.data) + r * words;
      std::fill(to, to + words, 0);
      for (std::size_t e = combination.begin[r]; e < combination.begin[r + 1]; ++e) {
        const W* const from = static_cast<const W*>(in.data) + combination.column[e] * words;
        const auto weight = static_cast<W>(combination.weight[e]);
        if constexpr (sizeof(W) == 8) {
          kernels_.add_multiple64(to, from, weight, words);
        } else {
          kernels_.add_multiple32(to, from, weight, words);
        }
      }
      if (!combination.constant.empty()) {
        to[words - 1] += static_cast<W>(combination.constant[r]);
      }
    });
  });
}

void CpuTfhe::extract(LweView out, ConstGlweView in, std::span<const u32> coefficients,
                      std::size_t per) const {
  check_extract(config_, out, in, coefficients, per);
  const std::size_t N = config_.N.value, rows = config_.k.value + 1;
  with_word(config_.torus, [&](auto zero) {
    using W = decltype(zero);
    pool_.parallel(out.count, [&](std::size_t r) {
      extract_one<W>(config_, static_cast<W*>(out.data) + r * (config_.large().value + 1),
                     static_cast<const W*>(in.data) + r / per * rows * N, N, coefficients[r]);
    });
  });
}

}  // namespace cpu

std::unique_ptr<TfheOps> make_cpu_tfhe(TfheConfig config, std::shared_ptr<device::Device> device) {
  require<InvalidArgument>(device != nullptr && device->memory()->host_accessible(),
                           "a CPU engine needs a device whose memory is the host's "
                           "(device::host_device)");
  return std::make_unique<cpu::CpuTfhe>(std::move(config), std::move(device));
}

}  // namespace jali::backend
