#include "jali/backend/tfhe_ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "jali/backend/tfhe_checks.h"
#include "jali/base/error.h"

namespace jali::backend {

namespace {

/// 64-bit words that hold so many bytes, so that they are aligned for either torus.
std::size_t words_for(std::size_t bytes) { return (bytes + 7) / 8; }

/// Ciphertexts [first, first + count) of a key.
void expand_key(void* out, const KeyShape& shape, const SeededKey& key, std::size_t first,
                std::size_t count) {
  const auto* const bodies = static_cast<const std::byte*>(key.bodies);
  expand_rows(out, key.seed, first, bodies + first * shape.body_bytes, shape.mask_bytes,
              shape.body_bytes, count);
}

/// All of these ciphertexts, to a device's memory.
void expand_to(device::Memory& memory, void* out, const KeyShape& shape, const SeededKey& key) {
  // A part is at most 256 KiB of ciphertexts, which stay in a core's cache until they are copied,
  // but at least one.
  const std::size_t part =
      std::clamp<std::size_t>((std::size_t{1} << 18) / shape.row_bytes(), 1, shape.rows);
  std::vector<std::uint64_t> rows(words_for(part * shape.row_bytes()));
  for (std::size_t first = 0; first < shape.rows; first += part) {
    const std::size_t count = std::min(part, shape.rows - first);
    expand_key(rows.data(), shape, key, first, count);
    memory.copy_in(static_cast<std::byte*>(out) + first * shape.row_bytes(), rows.data(),
                   count * shape.row_bytes());
  }
}

}  // namespace

void TfheOps::copy_in(void* out, const void* host, std::size_t bytes) const {
  if (bytes > 0) device()->memory()->copy_in(out, host, bytes);
}

void TfheOps::copy_in_seeded(LweView out, const SeededKey& rows) const {
  check_copy_in_seeded(out, rows.bodies);
  expand_to(*device()->memory(), out.data, lwe_shape(out.torus, out.dimension, out.count), rows);
}

void TfheOps::prepare_seeded_rotation_key(void* out, const SeededKey& key, std::size_t first,
                                          std::size_t count) const {
  check_prepare_rotation_key(config(), out, key.bodies, first, count);
  const KeyShape shape = rotation_key_shape(config());
  const std::size_t rows = shape.rows / config().steps();
  std::vector<std::uint64_t> ggsws(words_for(count * rows * shape.row_bytes()));
  expand_key(ggsws.data(), shape, key, first * rows, count * rows);
  prepare_rotation_key(out, ggsws.data(), first, count);
}

void TfheOps::prepare_seeded_switch_key(void* out, const SeededKey& key) const {
  check_prepare_switch_key(out, key.bodies);
  const KeyShape shape = switch_key_shape(config());
  std::vector<std::uint64_t> rows(words_for(shape.rows * shape.row_bytes()));
  expand_key(rows.data(), shape, key, 0, shape.rows);
  prepare_switch_key(out, rows.data());
}

void TfheOps::prepare_seeded_packing_key(void* out, LweDimension from, const SeededKey& key) const {
  check_prepare_packing_key(config(), out, from, key.bodies);
  expand_to(*device()->memory(), out, packing_key_shape(config(), from), key);
}

void switched(std::span<std::uint32_t> out, const std::uint32_t* ciphertext,
              const TfheConfig& config, int log_many) {
  const std::size_t n = config.n.value;
  require<InvalidArgument>(out.size() == n + 1, [&] {
    return "a switched ciphertext of dimension " + std::to_string(n) + " has " +
           std::to_string(n + 1) + " exponents, not " + std::to_string(out.size());
  });
  const int log_order = std::countr_zero(config.N.value) + 1;  // log2(2N)
  require<InvalidArgument>(log_many >= 0 && log_many < log_order, [&] {
    return "log_many must be from 0 to " + std::to_string(log_order - 1) + ", not " +
           std::to_string(log_many);
  });
  const int log_t = 32 - log_order + log_many;
  const std::int64_t half = std::int64_t{1} << (log_t - 1);
  const auto exponent = [&](std::int64_t rounded) {  // times 2^log_many, modulo 2N
    const std::uint32_t mask = (std::uint32_t{1} << log_order) - 1;
    return (static_cast<std::uint32_t>(rounded) << log_many) & mask;
  };
  std::int64_t sum = 0;  // of the e_i: below n t/2 <= 2^46, so that it is exact as a double
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t a = ciphertext[i], rounded = (a + half) >> log_t;
    sum += a - (rounded << log_t);
    out[i] = exponent(rounded);
  }
  const double mean = config.mean_bit * static_cast<double>(sum);
  const std::int64_t b = ciphertext[n] - static_cast<std::int64_t>(std::floor(mean + 0.5));
  out[n] = exponent((b + half) >> log_t);  // the shift of a negative number rounds down, too
}

}  // namespace jali::backend
