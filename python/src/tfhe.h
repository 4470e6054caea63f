// What the source files of the TFHE binding share.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "binding.h"
#include "jali/lwe/keys.h"
#include "jali/params/tfhe_params.h"
#include "jali/schemes/tfhe/ciphertext.h"
#include "jali/schemes/tfhe/compact.h"
#include "jali/schemes/tfhe/table.h"

namespace jali::python {

/// As Params of binding.h: handles that Python holds.
struct TfheParams {
  tfhe::ParamsPtr ptr;
};
struct TfheKeys {
  std::shared_ptr<const lwe::EvaluationKeys> ptr;
};
/// An encrypted array: its elements in C order and, of each element of an integer, its digits, the
/// lowest first.
struct TfheArray {
  tfhe::Ciphertext block;
  std::vector<std::size_t> shape;
  int bits = 0;  // of integers; 0 for messages, which are one digit each
  bool is_signed = false;

  tfhe::Layout layout() const {
    return {{shape.begin(), shape.end()}, static_cast<std::uint8_t>(bits), is_signed};
  }
};
/// The compact public key, and what is encrypted under it, which has its layout.
struct TfhePublicKey {
  std::shared_ptr<const lwe::PublicKey> ptr;
};
struct TfheCompact {
  tfhe::CompactCiphertext block;

  std::vector<std::size_t> shape() const {
    return {block.layout->shape.begin(), block.layout->shape.end()};
  }
};
struct TfheTable {
  std::shared_ptr<const tfhe::LookUpTable> ptr;
};

/// Throws ParamsMismatch unless both are the same parameters. what: the subject of the message,
/// e.g. "the keys are".
void require_same(const tfhe::Params& expected, const tfhe::Params& given, const char* what);

/// A shape as Python shows it; and the shape, the kind of numbers and the parameters of an
/// encrypted array, for its repr.
nb::tuple shape_of(const std::vector<std::size_t>& shape);
std::string described(const std::vector<std::size_t>& shape, int bits, bool is_signed,
                      const tfhe::Params& params);

void bind_tfhe_params(nb::module_& m);
void bind_tfhe_values(nb::module_& m);
void bind_tfhe_client(nb::module_& m);
void bind_tfhe_public(nb::module_& m);
void bind_tfhe_evaluator(nb::module_& m);
void bind_tfhe_integers(nb::module_& m);
void bind_tfhe_captured(nb::module_& m);

}  // namespace jali::python
