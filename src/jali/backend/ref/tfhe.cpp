#include "jali/backend/ref/tfhe.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "jali/backend/ref/torus.h"
#include "jali/backend/tfhe_checks.h"
#include "jali/backend/tfhe_ops.h"

namespace jali::backend {

namespace ref {

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

template <class W>
const W* words(const void* data) {
  return static_cast<const W*>(data);
}
template <class W>
W* words(void* data) {
  return static_cast<W*>(data);
}

/// The accumulator of input i before the blind rotation: X^(-b') times its table.
template <class W>
Glwe<W> start(const TfheConfig& config, const TableView& tables, std::size_t i, std::size_t body) {
  const std::size_t N = config.N.value, k = config.k.value;
  const std::size_t table = tables.of_input.empty() ? 0 : tables.of_input[i];
  Glwe<W> acc((k + 1) * N, 0);
  const std::size_t minus_body = (2 * N - body) % (2 * N);
  if (tables.encrypted) {
    const W* from = words<W>(tables.data) + table * (k + 1) * N;
    for (std::size_t c = 0; c <= k; ++c) times_power(&acc[c * N], from + c * N, minus_body, N);
  } else {
    times_power(&acc[k * N], words<W>(tables.data) + table * N, minus_body, N);
  }
  return acc;
}

template <class W>
Glwe<W> rotated(const TfheConfig& config, const TableView& tables, std::size_t i,
                const u32* ciphertext, const W* key) {
  const std::size_t n = config.n.value;
  std::vector<u32> exponents(n + 1);
  switched(exponents, ciphertext, config, tables.log_many);
  Glwe<W> acc = start<W>(config, tables, i, exponents[n]);
  rotate<W>(config, acc, {exponents.data(), n}, key);
  return acc;
}

/// Coefficient h of B - sum_c A_c S_c, as a ciphertext under the coefficients of the S_c.
template <class W>
void extract_one(const TfheConfig& config, W* out, const W* glwe, std::size_t h) {
  const std::size_t N = config.N.value, k = config.k.value;
  for (std::size_t c = 0; c < k; ++c) {
    const W* a = glwe + c * N;
    for (std::size_t i = 0; i < N; ++i) {
      out[c * N + i] = i <= h ? a[h - i] : static_cast<W>(0 - a[N + h - i]);
    }
  }
  out[k * N] = glwe[k * N + h];
}

template <class W>
void switch_one(const TfheConfig& config, u32* out, const W* in, const u32* key) {
  const std::size_t n = config.n.value, large = config.large().value;
  const auto levels = static_cast<std::size_t>(config.switch_gadget.levels);
  std::memset(out, 0, n * sizeof(u32));
  const W body = in[large];
  if constexpr (sizeof(W) == 8) {
    out[n] = static_cast<u32>((body + (W{1} << 31)) >> 32);
  } else {
    out[n] = body;
  }
  std::vector<std::int32_t> digits(levels);
  for (std::size_t i = 0; i < large; ++i) {
    decompose<W>(digits, in[i], config.switch_gadget);
    for (std::size_t j = 0; j < levels; ++j) {
      const u32* row = key + (i * levels + j) * (n + 1);
      const auto digit = static_cast<u32>(digits[j]);
      for (std::size_t m = 0; m <= n; ++m) out[m] -= digit * row[m];
    }
  }
}

/// acc: the packing of `count` rows, by a polynomial of digits for each word of the masks and each
/// level.
template <class W, class In>
void pack_one(const TfheConfig& config, W* acc, const In* in, std::size_t d, std::size_t count,
              const u32* coefficients, const W* key) {
  const std::size_t N = config.N.value, rows = config.k.value + 1;
  const auto levels = static_cast<std::size_t>(config.rotation_gadget.levels);
  const auto widened = [](In word) {
    return static_cast<W>(static_cast<W>(word) << (8 * (sizeof(W) - sizeof(In))));
  };
  std::fill(acc, acc + rows * N, W{0});
  for (std::size_t t = 0; t < count; ++t) {
    acc[(rows - 1) * N + coefficients[t]] = widened(in[t * (d + 1) + d]);
  }
  std::vector<std::int32_t> digits(levels), minus(levels * N);
  for (std::size_t i = 0; i < d; ++i) {
    std::fill(minus.begin(), minus.end(), 0);
    for (std::size_t t = 0; t < count; ++t) {
      decompose<W>(digits, widened(in[t * (d + 1) + i]), config.rotation_gadget);
      for (std::size_t j = 0; j < levels; ++j) minus[j * N + coefficients[t]] = -digits[j];
    }
    for (std::size_t j = 0; j < levels; ++j) {
      for (std::size_t c = 0; c < rows; ++c) {
        add_product<W>(acc + c * N, std::span(minus).subspan(j * N, N),
                       key + ((i * levels + j) * rows + c) * N);
      }
    }
  }
}

template <class W>
void combine_row(W* out, const W* in, std::size_t words, const LweCombination& sum,
                 std::size_t row) {
  for (std::size_t m = 0; m < words; ++m) out[m] = 0;
  for (std::size_t e = sum.begin[row]; e < sum.begin[row + 1]; ++e) {
    const W* from = in + sum.column[e] * words;
    const W weight = static_cast<W>(sum.weight[e]);
    for (std::size_t m = 0; m < words; ++m) out[m] += weight * from[m];
  }
  if (!sum.constant.empty()) out[words - 1] += static_cast<W>(sum.constant[row]);
}

class RefTfhe final : public TfheOps {
 public:
  explicit RefTfhe(TfheConfig config)
      : TfheOps(device::host_device()), config_(validated(std::move(config))) {}

  std::string name() const override { return "ref"; }
  const TfheConfig& config() const override { return config_; }

  std::size_t rotation_key_bytes() const override {
    return config_.steps() * config_.units() * config_.ggsw_words() * torus_bytes(config_.torus);
  }

  void prepare_rotation_key(void* out, const void* ggsws, std::size_t first,
                            std::size_t count) const override {
    check_prepare_rotation_key(config_, out, ggsws, first, count);
    const std::size_t step = rotation_key_bytes() / config_.steps();
    std::memcpy(words<std::byte>(out) + first * step, ggsws, count * step);
  }

  std::size_t switch_key_bytes() const override {
    return config_.large().value * static_cast<std::size_t>(config_.switch_gadget.levels) *
           (config_.n.value + 1) * sizeof(u32);
  }

  void prepare_switch_key(void* out, const void* rows) const override {
    check_prepare_switch_key(out, rows);
    std::memcpy(out, rows, switch_key_bytes());
  }

  void key_switch(LweView out, ConstLweView in, const void* switch_key) const override {
    check_key_switch(config_, out, in, switch_key);
    const std::size_t n = config_.n.value, large = config_.large().value;
    with_word(config_.torus, [&](auto zero) {
      using W = decltype(zero);
      for (std::size_t r = 0; r < in.count; ++r) {
        switch_one<W>(config_, words<u32>(out.data) + r * (n + 1),
                      words<W>(in.data) + r * (large + 1), words<u32>(switch_key));
      }
    });
  }

  void bootstrap(LweView out, ConstLweView in, const TableView& tables,
                 const void* rotation_key) const override {
    check_bootstrap(config_, out, in, tables, rotation_key);
    const std::size_t n = config_.n.value, large = config_.large().value;
    const std::size_t many = std::size_t{1} << tables.log_many;
    with_word(config_.torus, [&](auto zero) {
      using W = decltype(zero);
      for (std::size_t i = 0; i < in.count; ++i) {
        const Glwe<W> acc = rotated<W>(config_, tables, i, words<u32>(in.data) + i * (n + 1),
                                       words<W>(rotation_key));
        for (std::size_t j = 0; j < many; ++j) {
          extract_one<W>(config_, words<W>(out.data) + (i * many + j) * (large + 1), acc.data(), j);
        }
      }
    });
  }

  void switch_bootstrap(LweView out, ConstLweView in, const TableView& tables,
                        const void* switch_key, const void* rotation_key) const override {
    check_switch_bootstrap(config_, out, in, tables, switch_key, rotation_key);
    std::vector<u32> between(in.count * (config_.n.value + 1));
    const LweView small{between.data(), Torus::t32, config_.n, in.count};
    key_switch(small, in, switch_key);
    bootstrap(out, small, tables, rotation_key);
  }

  void bootstrap_switch(LweView out, ConstLweView in, const TableView& tables,
                        const void* switch_key, const void* rotation_key) const override {
    check_bootstrap_switch(config_, out, in, tables, switch_key, rotation_key);
    // Of 64-bit words, so that it is aligned for either torus.
    const std::size_t row = (config_.large().value + 1) * torus_bytes(config_.torus);
    std::vector<u64> between((out.count * row + 7) / 8);
    const LweView large{between.data(), config_.torus, config_.large(), out.count};
    bootstrap(large, in, tables, rotation_key);
    key_switch(out, large, switch_key);
  }

  void blind_rotate(GlweView out, ConstLweView in, const TableView& tables,
                    const void* rotation_key) const override {
    check_blind_rotate(config_, out, in, tables, rotation_key);
    const std::size_t n = config_.n.value;
    with_word(config_.torus, [&](auto zero) {
      using W = decltype(zero);
      for (std::size_t i = 0; i < in.count; ++i) {
        const Glwe<W> acc = rotated<W>(config_, tables, i, words<u32>(in.data) + i * (n + 1),
                                       words<W>(rotation_key));
        std::memcpy(words<W>(out.data) + i * glwe_words(), acc.data(), glwe_words() * sizeof(W));
      }
    });
  }

  void combine(LweView out, ConstLweView in, const LweCombination& combination) const override {
    check_combine(out, in, combination);
    const std::size_t row = in.dimension.value + 1;
    with_word(in.torus, [&](auto zero) {
      using W = decltype(zero);
      for (std::size_t r = 0; r < out.count; ++r) {
        combine_row<W>(words<W>(out.data) + r * row, words<W>(in.data), row, combination, r);
      }
    });
  }

  void extract(LweView out, ConstGlweView in, std::span<const u32> coefficients,
               std::size_t per) const override {
    check_extract(config_, out, in, coefficients, per);
    const std::size_t large = config_.large().value;
    with_word(config_.torus, [&](auto zero) {
      using W = decltype(zero);
      for (std::size_t r = 0; r < out.count; ++r) {
        extract_one<W>(config_, words<W>(out.data) + r * (large + 1),
                       words<W>(in.data) + r / per * glwe_words(), coefficients[r]);
      }
    });
  }

  void pack(GlweView out, ConstLweView in, std::span<const u32> coefficients, std::size_t per,
            const void* packing_key) const override {
    check_pack(config_, out, in, coefficients, per, packing_key);
    const std::size_t d = in.dimension.value;
    with_word(config_.torus, [&](auto zero) {
      using W = decltype(zero);
      with_word(in.torus, [&](auto narrow) {
        using In = decltype(narrow);
        if constexpr (sizeof(In) <= sizeof(W)) {
          for (std::size_t first = 0, o = 0; first < in.count; first += per, ++o) {
            pack_one<W>(config_, words<W>(out.data) + o * glwe_words(),
                        words<In>(in.data) + first * (d + 1), d, std::min(per, in.count - first),
                        coefficients.data() + first, words<W>(packing_key));
          }
        }
      });
    });
  }

 private:
  std::size_t glwe_words() const { return (config_.k.value + 1) * config_.N.value; }
  const TfheConfig config_;
};

}  // namespace
}  // namespace ref

std::unique_ptr<TfheOps> make_ref_tfhe(TfheConfig config) {
  return std::make_unique<ref::RefTfhe>(std::move(config));
}

}  // namespace jali::backend
