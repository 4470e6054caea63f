// Bytes of parameters and ciphertexts of exact integers modulo T. docs/format.md
// defines the format. wire/keys.h has the keys, and says what reading guarantees.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

#include "jali/params/discrete/params.h"
#include "jali/ring/poly.h"
#include "jali/schemes/ckks/view.h"
#include "jali/schemes/discrete/types.h"
#include "jali/wire/file.h"
#include "jali/wire/frame.h"
#include "jali/wire/keys.h"

namespace jali::wire {

inline constexpr Scheme kDiscrete{4};
inline constexpr Kind kDiscreteParams{kDiscrete, Object::params};
inline constexpr Kind kDiscreteCiphertext{kDiscrete, Object::ciphertext};

/// A ciphertext, and where the elements of an array lie in its rows.
///
/// The numbers of a ciphertext lie in rows of N/2, of which a vector has two: row 2 i + j of a
/// batch is row j of vector i. A view takes every row for a vector of its own, so that an address
/// is row * N/2 + place. A view with a period is one of row 0 of a single vector.
///
/// The range of an array with a view holds for the elements.
struct DiscreteArray {
  discrete::Ciphertext block;
  std::optional<ckks::View> view{};  // none: all numbers of all vectors
  /// Whether, of the rows up to the last one with an element, all numbers that are no elements are
  /// zero.
  bool padded = false;

  std::size_t rows() const { return 2 * block.batch(); }
};

Bytes to_bytes(const discrete::Params& params);
/// A ciphertext that has its seed takes half the bytes. Factor, noise and range travel in the
/// clear; none of them depends on the encrypted numbers. Throws InvalidArgument if the form, level,
/// batch or what is known is one that no evaluator makes.
Bytes to_bytes(const discrete::Ciphertext& ciphertext);
/// The bytes of a DiscreteArray of these parts. Where elements lie is no secret either.
Bytes to_bytes(const discrete::Ciphertext& block, const std::optional<ckks::View>& view,
               bool padded);
inline Bytes to_bytes(const DiscreteArray& array) {
  return to_bytes(array.block, array.view, array.padded);
}

/// The work is bounded before it starts. Throws CorruptData, VersionError or LimitExceeded as in
/// wire/keys.h, InsecureParams below limits.min_security, and ParamsMismatch if this build makes
/// other moduli than the one that wrote the bytes.
discrete::ParamsPtr discrete_params_from_bytes(std::span<const std::uint8_t> bytes,
                                               const Limits& limits = {});

/// Its polynomials lie in the memory of `ring`, which must be made from `params`. Errors are those
/// of wire/keys.h. Bytes of a ciphertext give an array without a view. A ciphertext is not read
/// from the bytes of an array, because numbers that are no elements need not lie in its range.
DiscreteArray discrete_array_from_bytes(std::span<const std::uint8_t> bytes,
                                        const discrete::ParamsPtr& params, const ring::Ring& ring,
                                        const Limits& limits = {});
discrete::Ciphertext discrete_ciphertext_from_bytes(std::span<const std::uint8_t> bytes,
                                                    const discrete::ParamsPtr& params,
                                                    const ring::Ring& ring,
                                                    const Limits& limits = {});

/// Writes what to_bytes gives to a file, which is replaced at once; see wire/file.h.
inline void save(const std::filesystem::path& path, const discrete::Params& params) {
  save_bytes(path, to_bytes(params));
}
inline void save(const std::filesystem::path& path, const discrete::Ciphertext& ciphertext) {
  save_bytes(path, to_bytes(ciphertext));
}
inline void save(const std::filesystem::path& path, const DiscreteArray& array) {
  save_bytes(path, to_bytes(array));
}
/// Reads what `save` wrote. Errors are FileError and those of from_bytes.
inline discrete::ParamsPtr load_discrete_params(const std::filesystem::path& path,
                                                const Limits& limits = {}) {
  return discrete_params_from_bytes(load_bytes(path, limits), limits);
}
inline DiscreteArray load_discrete_array(const std::filesystem::path& path,
                                         const discrete::ParamsPtr& params, const ring::Ring& ring,
                                         const Limits& limits = {}) {
  return discrete_array_from_bytes(load_bytes(path, limits), params, ring, limits);
}
inline discrete::Ciphertext load_discrete_ciphertext(const std::filesystem::path& path,
                                                     const discrete::ParamsPtr& params,
                                                     const ring::Ring& ring,
                                                     const Limits& limits = {}) {
  return discrete_ciphertext_from_bytes(load_bytes(path, limits), params, ring, limits);
}

}  // namespace jali::wire
