#include "jali/schemes/tfhe/compact.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "jali/base/checked.h"
#include "jali/base/error.h"
#include "jali/base/hash.h"

namespace jali::tfhe {

std::size_t compact_bytes(const Params& params, std::size_t count, std::size_t each) {
  const std::size_t polynomials = count / each + (count % each == 0 ? 0 : 1);
  return checked_mul(checked_add(checked_mul(polynomials, params.large().value), count),
                     backend::torus_bytes(params.torus()));
}

void check_sizes(const CompactCiphertext& a) {
  require<InvalidArgument>(a.params != nullptr && a.each >= 1 && a.each <= a.params->N().value &&
                               a.degree < a.params->value_modulus() &&
                               (a.count == 0 || (a.words != nullptr && a.words->host_accessible() &&
                                                 a.words->bytes() >= a.bytes())),
                           "a ciphertext of a public key has another shape than its parameters "
                           "say: take it from an encryptor or from bytes");
}

namespace {

/// Message i as an LWE ciphertext, at `row`.
template <class W>
void extract(W* row, const CompactCiphertext& a, std::size_t i) {
  const std::size_t k = a.params->k().value, N = a.params->N().value, j = i % a.each;
  const W* const masks = static_cast<const W*>(a.words->data()) + a.first_word(i / a.each);
  for (std::size_t c = 0; c < k; ++c, row += N) {
    const W* const mask = masks + c * N;
    for (std::size_t t = 0; t <= j; ++t) row[t] = mask[j - t];
    for (std::size_t t = j + 1; t < N; ++t) row[t] = static_cast<W>(0 - mask[N + j - t]);
  }
  *row = masks[k * N + j];
}

/// Of the row and minus the row, the one whose first mask word that is not 0 is the smaller one
/// stands for both.
template <class W>
Origin origin_of(std::vector<W>& row, W half_step) {
  const auto first = std::find_if(row.begin(), row.end() - 1, [](W x) { return x != 0; });
  const W least = first == row.end() - 1 ? W{0} : *first;
  const bool negated = static_cast<W>(0 - least) < least;
  if (negated) {
    for (W& x : row) x = static_cast<W>(0 - x);
  }
  // What is above half a step is a constant, so that whoever adds one to another owner's ciphertext
  // makes no new error.
  const W constant = row.back() / half_step;
  row.back() %= half_step;
  const auto constant_steps = static_cast<std::int64_t>(constant);
  if (least == 0 && row.back() == 0) return {0, constant_steps};
  const Digest digest =
      hash256({reinterpret_cast<const std::uint8_t*>(row.data()), row.size() * sizeof(W)});
  std::uint64_t id = 0;
  std::memcpy(&id, digest.data(), sizeof id);
  return {mixed(id, 0), negated ? -constant_steps : constant_steps, negated};
}

}  // namespace

lwe::LweBlock extracted(device::Pool& pool, const CompactCiphertext& a) {
  check_sizes(a);
  lwe::LweBlock out = lwe::make_lwe(pool, a.params->torus(), a.params->large(), a.count);
  backend::with_word(out.torus, [&](auto zero) {
    auto* const rows = static_cast<decltype(zero)*>(out.data.data());
    for (std::size_t i = 0; i < a.count; ++i) extract(rows + i * out.row_words(), a, i);
  });
  return out;
}

History history_of(const CompactCiphertext& a) {
  std::vector<Origin> origins;
  origins.reserve(a.count);
  backend::with_word(a.params->torus(), [&](auto zero) {
    using W = decltype(zero);
    std::vector<W> row(a.params->large().value + 1);
    const W half_step = static_cast<W>(a.params->step(a.params->torus()) / 2);
    for (std::size_t i = 0; i < a.count; ++i) {
      extract(row.data(), a, i);
      origins.push_back(origin_of(row, half_step));
    }
  });
  // A message without a mask, which no encryptor makes, is a constant and has no error.
  std::vector<std::uint32_t> begin{0}, column;
  std::vector<std::int64_t> constants;
  for (std::uint32_t i = 0; i < origins.size(); ++i) {
    const bool constant = origins[i].id == 0;
    if (!constant) column.push_back(i);
    begin.push_back(static_cast<std::uint32_t>(column.size()));
    constants.push_back(constant ? origins[i].half_steps : 0);
  }
  const std::vector<std::int64_t> ones(column.size(), 1);
  return History::made(std::move(origins)).combined({begin, column, ones, constants});
}

}  // namespace jali::tfhe
