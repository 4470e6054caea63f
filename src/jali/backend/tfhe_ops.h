// The operations of TFHE: programmable bootstrapping, key switching, and linear combinations, of
// batches.
//
// This table is a sibling of those of an Engine, on the same devices. An Engine serves one ring of
// RNS primes; this serves one set of dimensions and gadgets. See torus.h for how ciphertexts lie.
//
// Exactness. Everything but the external product is exact and specified to the bit, so that all
// engines agree. The external product by FFT has an error of its own, far below the scheme's noise:
// engines then agree in the decrypted value and in the noise. With the transform "ntt" it is exact.
// torus.h says what a step of a blind rotation is. Arguments. Every batch has at least one
// ciphertext. The spans in the arguments lie in host memory, all other data in the device's.
// tfhe_checks.h refuses what is wrong; every engine calls it. Aliasing. An output never overlaps an
// input, unless the operation says otherwise. Threads. Every operation may be called from several
// threads at once on disjoint outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "jali/backend/seeded.h"
#include "jali/backend/tfhe_config.h"
#include "jali/backend/torus.h"
#include "jali/device/device.h"

namespace jali::backend {

/// Look-up tables: accumulators that a blind rotation begins with.
struct TableView {
  /// `count` polynomials of N words, or, if they are encrypted, GLWE ciphertexts.
  const void* data = nullptr;
  std::size_t count = 0;
  bool encrypted = false;
  /// For each input which table it takes, below `count`; empty: all take the first.
  std::span<const std::uint32_t> of_input{};
  /// 2^log_many results of one rotation: the exponents are rounded to multiples of 2^log_many, and
  /// result j is the coefficient j of the rotated accumulator. Output row (i 2^log_many + j) is
  /// result j of input i. From 0 to log2(N).
  int log_many = 0;
};

/// A sparse matrix with small integer entries, by rows: row r has the entries [begin[r], begin[r +
/// 1]).
struct LweCombination {
  std::span<const std::uint32_t> begin;  // rows + 1 of them
  std::span<const std::uint32_t> column;  // which input ciphertext
  std::span<const std::int64_t> weight;
  /// One for each row, added to the body; empty: none. A torus of 32 bits takes their low 32 bits.
  std::span<const std::uint64_t> constant;
};

class TfheOps {
 public:
  explicit TfheOps(std::shared_ptr<device::Device> device) : device_(std::move(device)) {}
  TfheOps(const TfheOps&) = delete;
  TfheOps& operator=(const TfheOps&) = delete;
  virtual ~TfheOps() = default;

  virtual std::string name() const = 0;  // "ref", "cpu/avx512", "cuda:0", ...
  virtual const TfheConfig& config() const = 0;
  const std::shared_ptr<device::Device>& device() const { return device_; }
  /// By which layers above copy within the device's memory: that memory itself, or trace/'s, which
  /// records copies.
  virtual device::Memory& copies() const { return *device_->memory(); }
  /// So many bootstrappings at once take about as long as one; more take time in proportion.
  virtual std::size_t width() const { return 1; }

  /// Copies bytes of the host to the device's memory. A recording (Device::record) keeps them, and
  /// every run of its graph writes them again: so that tables may be part of a graph.
  virtual void copy_in(void* out, const void* host, std::size_t bytes) const;
  /// Writes LWE ciphertexts whose masks are a seed, whole, to the device's memory. On a GPU the
  /// bodies alone cross to the device, and a recording refuses it.
  virtual void copy_in_seeded(LweView out, const SeededKey& rows) const;

  // --- keys --------------------------------------------------------------------------------------
  // Keys come in standard form, in host memory. An engine keeps them in a form of its own in its
  // device's memory.

  /// Bytes of a bootstrapping key in the engine's form.
  virtual std::size_t rotation_key_bytes() const = 0;
  /// out: rotation_key_bytes() of the device's memory, the whole key. ggsws: of the steps [first,
  /// first + count), in order, config().units() GGSW ciphertexts each, of ggsw_words() words.
  /// Ranges of steps may come one after the other.
  virtual void prepare_rotation_key(void* out, const void* ggsws, std::size_t first,
                                    std::size_t count) const = 0;
  /// The same with the masks as a seed. key: of all steps, whose GGSW ciphertexts are its GLWE
  /// ciphertexts one after the other. On a GPU the bodies alone cross to the device, and are
  /// expanded there.
  virtual void prepare_seeded_rotation_key(void* out, const SeededKey& key, std::size_t first,
                                           std::size_t count) const;
  /// Bytes of a key-switching key in the engine's form.
  virtual std::size_t switch_key_bytes() const = 0;
  /// rows: k N * switch_gadget.levels small LWE ciphertexts; row (i, j), j = 1 .. levels, is at (i
  /// levels + j - 1), and its phase is S_i 2^(32 - j base_log), with S the bits of the large
  /// secret.
  virtual void prepare_switch_key(void* out, const void* rows) const = 0;
  /// The same with the masks as a seed.
  virtual void prepare_seeded_switch_key(void* out, const SeededKey& key) const;
  /// out: of the device's memory, the ciphertexts of packing_key_shape(config(), from), whole,
  /// which is how every engine takes a packing key.
  virtual void prepare_seeded_packing_key(void* out, LweDimension from, const SeededKey& key) const;

  // --- operations --------------------------------------------------------------------------------

  /// in: large. out: small, of as many rows. Each mask word a_i of `in` is decomposed by
  /// switch_gadget as a word of its own torus, with the digits d_ij; the result is (0, .., 0, b') -
  /// sum_ij d_ij row(i, j) modulo 2^32, b' the body rounded to 32 bits, half a unit up. Exact.
  virtual void key_switch(LweView out, ConstLweView in, const void* switch_key) const = 0;

  /// in: small. out: large, of 2^log_many rows for each of `in`. Modulus switch with compensation
  /// of the mean (see switched below), blind rotation, extraction of the first 2^log_many
  /// coefficients. The blind rotation begins with X^(-b') table and then takes the steps of torus.h
  /// in order, with the exponents a'_i. So its result is the table times X^(-p), with p = b' -
  /// sum_i a'_i s_i the phase.
  virtual void bootstrap(LweView out, ConstLweView in, const TableView& tables,
                         const void* rotation_key) const = 0;
  /// key_switch, then bootstrap. in, out: large.
  virtual void switch_bootstrap(LweView out, ConstLweView in, const TableView& tables,
                                const void* switch_key, const void* rotation_key) const = 0;
  /// The same order reversed. in, out: small.
  virtual void bootstrap_switch(LweView out, ConstLweView in, const TableView& tables,
                                const void* switch_key, const void* rotation_key) const = 0;
  /// bootstrap without the extraction: the rotated accumulators, as GLWE ciphertexts.
  virtual void blind_rotate(GlweView out, ConstLweView in, const TableView& tables,
                            const void* rotation_key) const = 0;
  /// Row r of out = sum of weight * input + constant, modulo 2^w. in and out have one torus and
  /// dimension. out.count is the number of rows.
  virtual void combine(LweView out, ConstLweView in, const LweCombination& combination) const = 0;
  /// Row j of out = coefficient h = coefficients[j] of the GLWE ciphertext `j / per`, as a large
  /// LWE ciphertext: its body is B[h], and word c N + i of its mask is A_c[h - i] if i <= h, else
  /// -A_c[N + h - i]. `in` has as many ciphertexts as that reads.
  virtual void extract(LweView out, ConstGlweView in, std::span<const std::uint32_t> coefficients,
                       std::size_t per) const = 0;
  /// The packing key switch. in: LWE ciphertexts of any dimension d, whose words are no wider than
  /// those of the torus; words of 32 bits become the highest of wider ones. Output o takes `per`
  /// rows, the last what is left: with t over these rows and h_t = coefficients[t], which differ
  /// within an output, it is
  ///   (0, sum_t b_t X^(h_t)) - sum_ij (sum_t d_tij X^(h_t)) key(i, j)   modulo 2^w,
  /// where rotation_gadget decomposes the mask words into the digits d_tij. packing_key: d levels
  /// GLWE ciphertexts in standard form; the phase of key(i, j), at (i levels + j - 1), is s_i 2^(w
  /// - j base_log). Exact.
  virtual void pack(GlweView out, ConstLweView in, std::span<const std::uint32_t> coefficients,
                    std::size_t per, const void* packing_key) const = 0;

 private:
  const std::shared_ptr<device::Device> device_;
};

/// The modulus switch of one small ciphertext to 2N, with log_many low bits kept 0. With the step
/// t = 2^(32 - log2(2N) + log_many): a'_i = round(a_i / t), half up, e_i = a_i - t a'_i, and
/// b' = round((b - round(mean sum_i e_i)) / t), half up, where the inner rounding is floor(x + 1/2)
/// of the double x: the product and the sum are rounded each by itself, never fused. All is times
/// 2^log_many, modulo 2N. The e_i are signed integers in [-t/2, t/2), and their sum is exact. If
/// mean = E[s_i], the rounding of the mask then shifts no mean (Bernard, Joye, Smart and Walter,
/// 2025/809). out: n
/// + 1 exponents in [0, 2N), the body last.
void switched(std::span<std::uint32_t> out, const std::uint32_t* ciphertext,
              const TfheConfig& config, int log_many);

/// The engines there are.
std::unique_ptr<TfheOps> make_ref_tfhe(TfheConfig config);
/// Throws Unsupported if config.isa names a set that this machine lacks.
std::unique_ptr<TfheOps> make_cpu_tfhe(
    TfheConfig config, std::shared_ptr<device::Device> device = device::host_device());
/// On a GPU that other engines share (device::gpu_device). Throws NoDevice if this build has no
/// CUDA, and Unsupported for GPUs before compute capability 9.0 or with less than 227 KB of shared
/// memory for a block (transform "fft"), or before 8.0 ("ntt").
std::unique_ptr<TfheOps> make_cuda_tfhe(TfheConfig config, std::shared_ptr<device::Device> device);

}  // namespace jali::backend
