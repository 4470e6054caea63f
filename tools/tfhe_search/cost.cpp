// tools/tfhe_search/fit.py has the same formulas, and a test holds the two together.
#include "cost.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include "jali/base/error.h"

namespace jali::tfhe {

namespace {

/// The share of a block's 256 threads that have work: whole warps take whole ciphertexts, of (k +
/// 1) N / 64 threads each (rotation_shape.cuh).
double threads_used(const Literal& literal) {
  const std::size_t each = (literal.k.value + 1) * literal.N.value / 64;
  std::size_t group = each;
  while (group % 32 != 0) group += each;
  return static_cast<double>(256 / group * group) / 256;
}

/// Ciphertexts that share what the CPU reads of a key.
constexpr double kCpuBatch = 8;

/// Of one bootstrapping and its key switch.
struct Counts {
  double steps;
  double butterflies;  // of complex transforms
  double products;  // of complex numbers, with the key on the path of a ciphertext
  double sums;  // the same for the sum of a step's units
  double switch_words;
  double key_bytes;  // of the bootstrapping key in double precision
};

Counts counts_of(const Literal& literal) {
  const double k1 = static_cast<double>(literal.k.value) + 1;
  const double levels = literal.rotation_gadget.levels, group = literal.group;
  const double points = static_cast<double>(literal.N.value) / 2;
  Counts out{};
  out.steps = static_cast<double>(literal.n.value) / group;
  out.butterflies = out.steps * k1 * (levels + 1) * points / 2 * std::log2(points);
  out.products = out.steps * levels * k1 * k1 * points;
  if (literal.rotation == Rotation::multi_bit) out.sums = (std::exp2(group) - 1) * out.products;
  if (literal.rotation == Rotation::block_binary) out.sums = group * out.products;
  out.key_bytes = 16 * std::max(out.products, out.sums);
  out.switch_words = (k1 - 1) * 2 * points * literal.switch_gadget.levels *
                     (static_cast<double>(literal.n.value) + 1);
  return out;
}

/// Multiply-adds of a rotation by the shortest formulas: 6 of a butterfly, 4 of a product, and 3
/// for a point from words to digits and back. multi_bit multiplies with one GGSW ciphertext, which
/// it sums of units times monomials; block_binary with each unit and its monomial.
double multiply_adds(const Literal& literal, const Counts& counts) {
  const double k1 = static_cast<double>(literal.k.value) + 1;
  const double points = static_cast<double>(literal.N.value) / 2;
  const double converted = counts.steps * k1 * (literal.rotation_gadget.levels + 1) * points;
  double products = counts.products + counts.sums;
  if (literal.rotation == Rotation::block_binary) {
    products += counts.steps * literal.group * k1 * points - counts.products;
  }
  return 6 * counts.butterflies + 3 * converted + 4 * products;
}

}  // namespace

CostModel read_cost_model(const std::string& path) {
  std::ifstream file(path);
  std::map<std::string, double> held;
  for (std::string line; std::getline(file, line);) {
    const std::size_t at = line.find(" = ");
    if (line.empty() || line[0] == '#' || at == std::string::npos) continue;
    held[line.substr(0, at)] = std::stod(line.substr(at + 3));
  }
  const auto take = [&](const char* key) {
    require<InvalidArgument>(held.count(key) != 0,
                             [&] { return path + " does not say " + key + ": add it"; });
    return held[key];
  };
  CostModel out{};
  out.butterfly_one = take("butterfly_one");
  out.product_one = take("product_one");
  out.butterfly_many = take("butterfly_many");
  out.product_many = take("product_many");
  out.sum_block_binary = take("sum_block_binary");
  out.sum_multi_bit = take("sum_multi_bit");
  out.butterfly_cluster = take("butterfly_cluster");
  out.butterfly_other = take("butterfly_other");
  out.product_other = take("product_other");
  out.switch_word = take("switch_word");
  out.step_alone = take("step_alone");
  out.butterfly_alone = take("butterfly_alone");
  out.butterfly_alone_other = take("butterfly_alone_other");
  out.switch_alone = take("switch_alone");
  out.switch_word_alone = take("switch_word_alone");
  out.cpu_butterfly = take("cpu_butterfly");
  out.cpu_product = take("cpu_product");
  out.cpu_butterfly_large = take("cpu_butterfly_large");
  out.cpu_sum_block_binary = take("cpu_sum_block_binary");
  out.cpu_sum_multi_bit = take("cpu_sum_multi_bit");
  out.cpu_key_byte = take("cpu_key_byte");
  out.cpu_switch_word = take("cpu_switch_word");
  out.batch_error = take("batch_error");
  out.alone_error = take("alone_error");
  out.cpu_error = take("cpu_error");
  return out;
}

Kernel kernel_of(const Literal& literal) {
  const std::size_t N = literal.N.value, k = literal.k.value;
  // Their accumulators keep 32 bits of a word, which hold digits of 28 bits in all.
  if (literal.rotation_gadget.base_log * literal.rotation_gadget.levels > 28) return Kernel::other;
  if ((N == 2048 && k == 1) || (N == 1024 && k <= 2) || (N == 512 && (k == 3 || k == 4))) {
    return Kernel::own;
  }
  const bool large = k == 1 && (N == 4096 || N == 8192 || N == 16384);
  return large && literal.rotation == Rotation::classic ? Kernel::cluster : Kernel::other;
}

Cost cost(const CostModel& model, const Literal& literal) {
  const Counts counts = counts_of(literal);
  const Kernel kernel = kernel_of(literal);
  const bool multi_bit = literal.rotation == Rotation::multi_bit;
  const double sums = (multi_bit ? model.sum_multi_bit : model.sum_block_binary) * counts.sums;
  Cost out;
  out.fma = multiply_adds(literal, counts);
  switch (kernel) {
    case Kernel::own: {
      const bool one = literal.rotation_gadget.levels == 1;
      out.throughput_seconds =
          ((one ? model.butterfly_one : model.butterfly_many) * counts.butterflies +
           (one ? model.product_one : model.product_many) * counts.products + sums) /
          threads_used(literal);
      break;
    }
    case Kernel::cluster:
      out.throughput_seconds = model.butterfly_cluster * counts.butterflies;
      break;
    case Kernel::other:
      out.throughput_seconds = model.butterfly_other * counts.butterflies +
                               model.product_other * (counts.products + counts.sums);
      break;
  }
  out.throughput_seconds += model.switch_word * counts.switch_words;
  out.latency_seconds = (kernel == Kernel::other ? model.butterfly_alone_other * counts.butterflies
                                                 : model.step_alone * counts.steps +
                                                       model.butterfly_alone * counts.butterflies) +
                        model.switch_alone + model.switch_word_alone * counts.switch_words;
  out.cpu_seconds =
      (literal.N.value > 2048 ? model.cpu_butterfly_large : model.cpu_butterfly) *
          counts.butterflies +
      model.cpu_product * counts.products +
      (multi_bit ? model.cpu_sum_multi_bit : model.cpu_sum_block_binary) * counts.sums +
      model.cpu_key_byte * counts.key_bytes / kCpuBatch +
      model.cpu_switch_word * counts.switch_words;
  return out;
}

}  // namespace jali::tfhe
