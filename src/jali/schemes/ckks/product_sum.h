// A sum of products of ciphertexts that is still to be computed.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "jali/schemes/ckks/types.h"

namespace jali::ckks {

/// sum_k a_k b_k + constant. AutoEvaluator computes it when it is known what follows. If the value
/// itself is wanted, one operation computes, relinearises and rescales it (settle), and the three
/// parts of the products are never written to memory. If it is added to something that is not
/// relinearised yet, it is computed in three parts (expand). AutoEvaluator::product makes it. It
/// keeps its factors alive.
struct ProductSum {
  using Factor = std::shared_ptr<const Ciphertext>;

  /// At least one. All factors have two parts, the canonical scale of `level`, and equal batches.
  std::vector<std::pair<Factor, Factor>> products;
  std::complex<double> constant{};
  Packing packing;

  /// The level of the factors; the settled sum is one level lower.
  int level() const { return products[0].first->level; }
  std::size_t batch() const { return products[0].first->batch(); }
  int log_slots() const { return products[0].first->log_slots; }
};

}  // namespace jali::ckks
