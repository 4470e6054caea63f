// The narrow waist: every computation on residues that the layers above need, as one table of
// operations. ref/ is the oracle, cpu/ is fast, trace/ records. Integer results are bit-identical
// on every backend: all outputs are canonical, in [0, q), and every rounding is specified here.
//
// Layout. A View is a block of residues (limb, batch, coefficient), rows of N contiguous words;
// row (i, b) starts at word (i * batch + b) * N and holds residues modulo prime primes[i].
// Form. "NTT form": row value at index k is the polynomial evaluated at psi^(2*brv(k)+1), where
// psi = root(prime) and brv reverses log2(N) bits. "Coefficient form": index k is the coefficient of X^k in Z_q[X]/(X^N + 1).
// Aliasing. An output may be the very same block as an input of the same shape unless the operation
// says otherwise; partial overlap is never allowed.
// Broadcast. Where an operation says so, an input of batch 1 serves every batch entry of the output.
// Threads. Every operation may be called from several threads at once on disjoint outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "jali/arith/word.h"
#include "jali/backend/embedding.h"
#include "jali/device/buffer.h"
#include "jali/device/device.h"
#include "jali/device/faults.h"
#include "jali/device/gpu.h"
#include "jali/device/memory.h"

namespace jali::backend {

struct ConstView {
  const void* data = nullptr;
  std::span<const PrimeIndex> primes;  // one per limb, ascending
  std::size_t batch = 1;
};

struct View {
  void* data = nullptr;
  std::span<const PrimeIndex> primes;
  std::size_t batch = 1;
  operator ConstView() const { return {data, primes, batch}; }
};

/// A switching key in NTT form: residues (digit, part, position in primes, coefficient), part 0 = b,
/// 1 = a. It serves every operation whose accumulators have no other primes.
struct KeyView {
  const void* data = nullptr;
  std::size_t digits = 0;
  std::span<const PrimeIndex> primes;  // ascending
};

/// out_c = [out_c +] sum_k a_c[operands[k]] * b[k], c = 0, 1: a ciphertext's two polynomials, weighed by
/// plaintexts. See Ops::weighted_sums.
struct WeightedSum {
  View out0, out1;
  std::span<const std::uint32_t> operands;  // at least one, indices in a
  std::span<const ConstView> b;  // one an operand; may be broadcast
  bool accumulate = false;  // add to what out holds
};

/// A sum of products and multiples of ciphertexts of two parts each,
///   d = sum_j (1 or 2) a_j b_j + sum_k s_k x_k + constant.
/// It has three parts, as tensor has them, where there are products, and else two. Operands have its batch and
/// at least its primes, both parts the same ones: what is beyond the sum's is not read.
struct Combination {
  struct Product {
    ConstView a0, a1, b0, b1;
    bool twice = false;
  };
  struct Multiple {
    ConstView x0, x1;
    std::span<const std::uint64_t> s;  // one a limb of the sum, below its prime
  };
  std::span<const Product> products;
  std::span<const Multiple> multiples = {};
  std::span<const std::uint64_t> constant = {};  // one a limb, to d0 at every index; or none
};

/// An operand that is nowhere in memory: a ciphertext (c0, c1) under sigma_g, times P,
///   key_product(ext, key, g) + (s sigma_g(c0), 0), or for g = 1 (s c0, s c1),
/// ext the digits of c1 and s = [P] on the limbs that c0 has. See Ops::rotated_sums.
struct Rotated {
  ConstView ext;  // as mod_up writes it; not read for g = 1, nor is the key
  ConstView c0, c1;
  std::uint64_t g = 1;
  KeyView key;
};

/// A term of an outer sum: a ciphertext times P, over the primes of a level and of P, under sigma_g,
///   (sigma_g(x0), 0) + key_switch(sigma_g(y)), y = scale_down(x1) to the primes of the level.
struct Turned {
  ConstView x0, x1;
  std::uint64_t g = 1;
  KeyView key;
};

/// What joins the sum of a key switch before the division by P: acc_c += s_i c_c on limb i. Over the primes
/// of what is switched.
struct Joined {
  ConstView c0, c1;
  std::span<const std::uint64_t> s;  // one a limb, below its prime
};

/// What an Ops instance is made for.
struct Config {
  Word word = Word::w64;
  std::size_t n = 0;  // ring degree, a power of two in [2^10, 2^17] (ref: from 2^2)
  std::vector<std::uint64_t> primes;  // distinct, = 1 mod 2n, below 2^word_prime_bits(word)
  int threads = 1;  // >= 1
  std::string isa;  // cpu only: "", "portable", "avx2", "avx512", "ifma"; "" = best
  /// cuda only: choices among implementations with equal results, by family, e.g. {"ntt": "cluster"};
  /// what is missing is the engine's own choice. See cuda_variants.
  std::map<std::string, std::string> variants = {};
};

/// Implementations of one family of operations, all with equal results.
struct VariantFamily {
  std::string family;  // "ntt"
  std::vector<std::string> names;  // the first is the default: "auto", the engine's own choice
};

using Captured = device::Graph;
using device::StepTime;

/// Distributions of secrets and errors.
enum class Small { ternary, error };

enum class CrtMethod { mod, mul };
enum class IcrtMethod { product_sum, garner };

class Ops {
 public:
  /// device: borrowed; other engines may share it.
  explicit Ops(std::shared_ptr<device::Device> device = device::host_device())
      : device_(std::move(device)) {}
  Ops(const Ops&) = delete;
  Ops& operator=(const Ops&) = delete;
  virtual ~Ops() = default;

  virtual std::string name() const = 0;  // "ref", "cpu/ifma", ...
  virtual const Config& config() const = 0;
  /// Of the host that work on an operation: config().threads, or those that the system gave.
  virtual int threads() const { return config().threads; }

  // --- transforms, in place -----------------------------------------------------------------
  virtual void ntt(View x) const = 0;  // coefficient -> NTT form
  virtual void intt(View x) const = 0;  // NTT -> coefficient form

  // --- element-wise; b may be broadcast ------------------------------------------------------
  virtual void add(View out, ConstView a, ConstView b) const = 0;
  virtual void sub(View out, ConstView a, ConstView b) const = 0;
  virtual void neg(View out, ConstView a) const = 0;
  virtual void mul(View out, ConstView a, ConstView b) const = 0;
  virtual void mul_add(View acc, ConstView a, ConstView b) const = 0;  // acc += a * b
  /// out = a * s[i] on limb i; s[i] < q_i, one a limb.
  virtual void mul_scalar(View out, ConstView a, std::span<const std::uint64_t> s) const = 0;
  /// acc += a * s[i] on limb i.
  virtual void mul_scalar_add(View acc, ConstView a, std::span<const std::uint64_t> s) const = 0;
  /// out = a + s[i] on limb i at every index (NTT form: adds the constant polynomial s).
  virtual void add_scalar(View out, ConstView a, std::span<const std::uint64_t> s) const = 0;
  /// out = sum_k a[k] * b[k]; each b[k] may be broadcast; out is none of the inputs.
  virtual void inner_product(View out, std::span<const ConstView> a,
                             std::span<const ConstView> b) const = 0;
  /// The inner sums of a baby-step giant-step block: many sums over the same a0[k], a1[k]. All blocks
  /// have the same primes, and all but the b the same batch; no out overlaps anything else.
  virtual void weighted_sums(std::span<const ConstView> a0, std::span<const ConstView> a1,
                             std::span<const WeightedSum> sums) const = 0;
  /// (d0, d1, d2) = (a0 b0, a0 b1 + a1 b0, a1 b1). Outputs are none of the inputs.
  virtual void tensor(View d0, View d1, View d2, ConstView a0, ConstView a1, ConstView b0,
                      ConstView b1) const = 0;

  /// d = the combination, of at least one term; d2 is left alone if there is no product. Outputs are none of
  /// the inputs.
  virtual void combine(View d0, View d1, View d2, const Combination& c) const = 0;

  // --- automorphisms X -> X^g, g odd, modulo 2N; out is not in ---------------------------------
  virtual void automorphism_ntt(View out, ConstView in, std::uint64_t g) const = 0;
  virtual void automorphism_coeff(View out, ConstView in, std::uint64_t g) const = 0;

  // --- basis changes, NTT form in and out ------------------------------------------------------
  // A digit D of x is a run of its limbs with product |D|. Its centred lift is the integer
  // polynomial with coefficients in [-|D|/2, |D|/2) congruent to x modulo every prime of D. It is
  // computed as sum_i y_i (|D|/q_i) - v |D| with y_i = [x_i (|D|/q_i)^-1]_{q_i} and
  // v = floor(1/2 + sum_i y_i / q_i), the sum taken in double precision, in limb order, by
  //   s = 0.5; for i: s = fma(double(y_i), 1.0 / double(q_i), s);  v = floor(s)
  // so that v is the same integer on every machine. (When the sum lies within rounding error of a
  // half, the lift is off by |D|: still congruent, outside the centred range by a hair.)

  /// ext = lifts of every digit of x to all primes of `ext`. x.primes is a subset of ext.primes;
  /// digit_limbs are the sizes of consecutive digits of x and add up to its limbs.
  /// ext has digit_limbs.size() blocks of shape (ext.primes, batch, N), one after the other:
  /// block j is the centred lift of digit j; on the digit's own primes it equals x.
  virtual void mod_up(View ext, ConstView x, std::span<const std::uint32_t> digit_limbs) const = 0;

  /// acc_c = sum_j sigma_g(ext_j) * key[digit_ids[j]][c], c = 0, 1; over the primes of acc; g = 1
  /// for none. ext: digit_ids.size() blocks as mod_up writes them, over acc0.primes. The
  /// automorphism is applied to ext as it is read. accumulate: add to what acc holds.
  virtual void key_product(View acc0, View acc1, ConstView ext, KeyView key,
                           std::span<const std::uint32_t> digit_ids, std::uint64_t g,
                           bool accumulate) const = 0;

  /// weighted_sums of operands that are made while they are weighed. digit_ids: of ext, for all keys;
  /// s: one a limb of c0, whose primes are the first of the sums' and the same for all operands.
  virtual void rotated_sums(std::span<const Rotated> operands,
                            std::span<const std::uint32_t> digit_ids,
                            std::span<const std::uint64_t> s,
                            std::span<const WeightedSum> sums) const;

  /// mod_up and key_product in one, without the intermediate in memory; same result.
  virtual void key_switch(View acc0, View acc1, ConstView x,
                          std::span<const std::uint32_t> digit_limbs, KeyView key,
                          std::span<const std::uint32_t> digit_ids) const = 0;

  /// key_switch, then s times c0 and c1 added; x.primes are the first of the accumulators'. No output is
  /// an input.
  virtual void key_switch_joined(View acc0, View acc1, ConstView x,
                                 std::span<const std::uint32_t> digit_limbs, KeyView key,
                                 std::span<const std::uint32_t> digit_ids,
                                 const Joined& joined) const;

  /// key_switch_joined of a combination's third part by the other two, none of which need exist in memory:
  /// products of ciphertexts up to the division by P. c has a product; it is over the first primes of the
  /// accumulators, as many as digit_limbs adds up to.
  virtual void combine_key_switch(View acc0, View acc1, const Combination& c,
                                  std::span<const std::uint64_t> s,
                                  std::span<const std::uint32_t> digit_limbs, KeyView key,
                                  std::span<const std::uint32_t> digit_ids) const;
  /// The same for one product.
  void tensor_key_switch(View acc0, View acc1, ConstView a0, ConstView a1, ConstView b0,
                         ConstView b1, std::span<const std::uint64_t> s,
                         std::span<const std::uint32_t> digit_limbs, KeyView key,
                         std::span<const std::uint32_t> digit_ids) const;

  /// Division with rounding between bases: with D the product of the primes of x that out lacks and
  /// A the product of the primes of out that x lacks (both may be empty), out = (x A - [x A]_D) / D,
  /// where [.]_D is the centred lift of the digit of all the dropped limbs. ModDown (D = P), rescale
  /// (D = last primes), both merged, and the rational rescale of small words (A not empty) are all
  /// this. addend (optional, over out.primes): is added to the result. out is not x.
  virtual void scale_down(View out, ConstView x, const ConstView* addend) const = 0;
  /// scale_down of both halves of a ciphertext, which have the same primes and batch: the same results,
  /// and twice as many rows for threads to share. Either addend may be null.
  virtual void scale_down_pair(View out0, View out1, ConstView x0, ConstView x1,
                               const ConstView* addend0, const ConstView* addend1) const {
    scale_down(out0, x0, addend0);
    scale_down(out1, x1, addend1);
  }

  /// A ciphertext under sigma_g (g odd, not 1), back under its own key: acc = key_switch(sigma_g(c1)), then
  /// out = scale_down_pair(acc) with sigma_g(c0) added to out0. out: over c0.primes; acc: over these and P.
  /// No output is an input.
  virtual void rotate(View out0, View out1, View acc0, View acc1, ConstView c0, ConstView c1,
                      std::uint64_t g, std::span<const std::uint32_t> digit_limbs, KeyView key,
                      std::span<const std::uint32_t> digit_ids) const;

  /// The outer sum of a baby-step giant-step block, acc = [acc +] the sum of the terms, at least one. The
  /// digits are those of the level, whose primes are the first of acc. No output is an input.
  virtual void outer_sum(View acc0, View acc1, std::span<const Turned> terms,
                         std::span<const std::uint32_t> digit_limbs,
                         std::span<const std::uint32_t> digit_ids, bool accumulate) const;

  // --- memory and random residues ---------------------------------------------------------------
  const std::shared_ptr<device::Device>& device() const { return device_; }
  /// Where this engine's views point: the device's memory.
  const std::shared_ptr<device::Memory>& memory() const { return device_->memory(); }
  /// Where its blocks come from: the device's pool.
  const std::shared_ptr<device::Pool>& pool() const { return device_->pool(); }
  /// Device::record of the device.
  virtual std::unique_ptr<Captured> capture(std::function<void()> work) const {
    return device_->record(std::move(work));
  }
  /// Uniform residues expanded from a seed: row (i, b) is random::sample_uniform from stream
  /// (index + b) << 16 | primes[i] of the seed. The same on every engine: seeds travel.
  virtual void sample_uniform(View out, std::span<const std::uint8_t, 32> seed,
                              std::uint32_t index) const;

  /// Secret integers expanded from a seed, coefficient form: row (i, b) is values b N .. (b + 1) N of
  /// random::sample_ternary or random::sample_error from `stream` of the seed, modulo primes[i].
  virtual void sample_small(View out, Small kind, std::span<const std::uint8_t, 32> seed,
                            std::uint64_t stream) const;
  /// The same: row (i, b) is random::sample_sparse_ternary from stream `stream` + b.
  virtual void sample_sparse(View out, std::size_t weight, std::span<const std::uint8_t, 32> seed,
                             std::uint64_t stream) const;

  // --- between integers and residues ----------------------------------------------------------
  /// out (coefficient form) = c[b * N + k] mod q for signed 64-bit integers; c holds batch * N.
  virtual void from_int64(View out, std::span<const std::int64_t> c) const = 0;
  /// The same for doubles that hold integers of any size (|c| < 2^1000).
  virtual void from_double(View out, std::span<const double> c) const = 0;

  /// CRT: out (coefficient form) = integers mod q. Unsigned integers of `words` 64-bit words each,
  /// little end first, laid out (word, batch, coefficient). GIF-FHE section V: mod = Horner with
  /// Barrett (CRT-MOD), mul = inner product with precomputed powers of two (CRT-MUL). The integers, here and
  /// in icrt, lie in host memory or in memory().
  virtual void crt(View out, std::span<const std::uint64_t> integers, std::size_t words,
                   CrtMethod method) const = 0;
  /// Inverse CRT of coefficient form to integers in [0, Q), Q the product of x's primes; layout as
  /// in crt; words must hold Q. product_sum: sum of (Q/q_i) [x_i (Q/q_i)^-1] reduced mod Q (ICRT-C);
  /// garner: mixed radix (ICRT-G). Both give the same integers.
  virtual void icrt(std::span<std::uint64_t> integers, std::size_t words, ConstView x,
                    IcrtMethod method) const = 0;

  /// out (coefficient form) = embed(...) of embedding.h: `out.batch` vectors of values, |coefficients|
  /// below 2^62. The same bits on every engine.
  virtual void embed(View out, const Embedding& embedding, std::span<const Complex> values,
                     int log_slots, double factor) const;
  /// The slots (batch, 2^log_slots) of x (coefficient form), its centred coefficients over divisor.
  virtual void unembed(std::span<Complex> slots, const Embedding& embedding, ConstView x,
                       int log_slots, double divisor) const;

  /// psi of a prime: its primitive 2N-th root, arith::primitive_root(q, 2N): the smallest of them.
  virtual std::uint64_t root(PrimeIndex prime) const = 0;

 private:
  const std::shared_ptr<device::Device> device_;
};

/// The first primes of acc, as many as digits of these sizes have limbs: those of what is switched where
/// something joins.
std::span<const PrimeIndex> own_primes(ConstView acc, std::span<const std::uint32_t> digit_limbs);

/// The config itself, if an engine can be made for it; else throws InvalidArgument, naming what is off.
Config validated(Config config);
/// cpu/: throws Unsupported if config.isa names a set this machine lacks.
std::unique_ptr<Ops> make_cpu_ops(Config config);
/// The same on a device that other engines share: the host (device::host_device), or InvalidArgument.
std::unique_ptr<Ops> make_cpu_ops(Config config, std::shared_ptr<device::Device> device);
/// cpu/ with memory of its own that the host may not touch, as a GPU has: for tests of what crosses.
std::unique_ptr<Ops> make_apart_ops(Config config);
/// Instruction sets this machine can run, best first, e.g. {"ifma", "avx512", "avx2", "portable"}.
std::vector<std::string> cpu_isas();
/// Butterflies a second that one thread does on registers, measured now for some milliseconds: the
/// ceiling of the transforms, of which benchmarks print the fraction reached. isa as in Config.
double cpu_butterfly_rate(Word word, const std::string& isa);
/// ref/: the oracle.
std::unique_ptr<Ops> make_ref_ops(Config config);
/// cuda/: one NVIDIA GPU, on a stream of its own; views point to memory(). Throws InvalidArgument for a
/// variant that cuda_variants does not list, NoDevice when this build has no CUDA engine or this machine
/// no such GPU.
std::unique_ptr<Ops> make_cuda_ops(Config config, int device = 0);
/// What Config::variants may choose on a GPU; empty in a build without the CUDA engine. A variant that
/// does not serve a word, a ring degree or a GPU gives way to the engine's own choice there.
std::vector<VariantFamily> cuda_variants();
using device::GpuOptions;
std::unique_ptr<Ops> make_cuda_ops(Config config, const GpuOptions& options);
/// The same on a GPU that other engines share (device::gpu_device), or InvalidArgument for another device.
std::unique_ptr<Ops> make_cuda_ops(Config config, std::shared_ptr<device::Device> device);
using device::cuda_device_count;
using device::cuda_device_name;
using device::cuda_trouble;
using device::has_cuda;
/// What a GPU does at most, measured now: butterflies a second on registers, and bytes read plus written
/// a second when its memory is copied. Floors of operations divide by these.
struct CudaPeak {
  double butterflies = 0;
  double bytes = 0;
};
CudaPeak cuda_peak(Word word, int device = 0);

}  // namespace jali::backend
