// The oracle of TFHE: every operation computed exactly, over integers modulo 2^w, by its formula. Keys stay in standard form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jali/backend/tfhe_ops.h"

namespace jali::backend::ref {

/// A GLWE ciphertext, k + 1 rows of N words.
template <class W>
using Glwe = std::vector<W>;

/// GGSW x in, by schoolbook products.
template <class W>
Glwe<W> external_product(const TfheConfig& config, const W* ggsw, const Glwe<W>& in);

/// Takes every step of the blind rotation of acc, with the exponents that `switched` gives.
template <class W>
void rotate(const TfheConfig& config, Glwe<W>& acc, std::span<const std::uint32_t> exponents,
            const W* key);

class RefTfhe final : public TfheOps {
 public:
  explicit RefTfhe(TfheConfig config);

  std::string name() const override { return "ref"; }
  const TfheConfig& config() const override { return config_; }

  std::size_t rotation_key_bytes() const override;
  void prepare_rotation_key(void* out, const void* ggsws, std::size_t first,
                            std::size_t count) const override;
  std::size_t switch_key_bytes() const override;
  void prepare_switch_key(void* out, const void* rows) const override;

  void key_switch(LweView out, ConstLweView in, const void* switch_key) const override;
  void bootstrap(LweView out, ConstLweView in, const TableView& tables,
                 const void* rotation_key) const override;
  void switch_bootstrap(LweView out, ConstLweView in, const TableView& tables,
                        const void* switch_key, const void* rotation_key) const override;
  void bootstrap_switch(LweView out, ConstLweView in, const TableView& tables,
                        const void* switch_key, const void* rotation_key) const override;
  void blind_rotate(GlweView out, ConstLweView in, const TableView& tables,
                    const void* rotation_key) const override;
  void combine(LweView out, ConstLweView in, const LweCombination& combination) const override;
  void extract(LweView out, ConstGlweView in, std::span<const std::uint32_t> coefficients,
               std::size_t per) const override;

 private:
  std::size_t glwe_words() const { return (config_.k.value + 1) * config_.N.value; }
  const TfheConfig config_;
};

}  // namespace jali::backend::ref
