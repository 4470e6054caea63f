// Those who encrypt for the holder of a secret key of TFHE: the compact public key, and what is
// encrypted under it.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "files.h"
#include "jali/api/threads.h"
#include "jali/schemes/tfhe/secret/encryptor.h"
#include "jali/wire/tfhe.h"
#include "methods.h"
#include "refusals.h"
#include "tfhe.h"
#include "tfhe_bytes.h"
#include "tfhe_numbers.h"

namespace jali::python {

using namespace nb::literals;

namespace {

/// Numbers that the Python side has checked: C-contiguous words of 64 bits.
using Words = nb::ndarray<const std::uint64_t, nb::c_contig, nb::device::cpu, nb::ndim<1>>;

class TfheEncryptor {
 public:
  TfheEncryptor(const TfheParams& params, const TfhePublicKey& key, int threads)
      : encryptor_((require_same(*params.ptr, *key.ptr->params, "the public key is"), key.ptr),
                   threads == 0 ? default_threads() : threads) {}

  TfheParams params() const { return {encryptor_.params()}; }
  std::string key_id() const { return to_string(encryptor_.key_id()); }

  /// As TfheClient::encrypt.
  TfheCompact encrypt(const Words& values, const std::vector<std::size_t>& shape, int bits,
                      bool is_signed, std::optional<std::uint64_t> largest) {
    const std::span<const std::uint64_t> words(values.data(), values.size());
    const nb::gil_scoped_release release;
    tfhe::CompactCiphertext block =
        bits == 0 ? encryptor_.encrypt(words, largest)
                  : encryptor_.encrypt(digits_of(words, bits, *encryptor_.params()));
    block.layout =
        tfhe::Layout{{shape.begin(), shape.end()}, static_cast<std::uint8_t>(bits), is_signed};
    return {std::move(block)};
  }

 private:
  tfhe::PublicEncryptor encryptor_;
};

/// Without a layout, as a program in C++ may send it, it is a vector of messages.
TfheCompact laid(tfhe::CompactCiphertext block) {
  if (!block.layout) block.layout = tfhe::Layout{{static_cast<std::uint32_t>(block.size())}};
  return {std::move(block)};
}

void bind_public_key(nb::module_& m) {
  nb::class_<TfhePublicKey> key(
      m, "PublicKey",
      R"(A key that encrypts and does not decrypt, with which owners of data encrypt apart for one client.

Client.public_key makes it, and Encryptor takes it.

>>> client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"))
>>> sent = client.public_key().to_bytes()
>>> key = tfhe.PublicKey.from_bytes(sent, client.params)
>>> client.decrypt(tfhe.Encryptor(client.params, key).encrypt([1, 2, 3]))
array([1, 2, 3]))");
  refuse_constructor(key, "a public key is made by Client.public_key()");
  const auto bytes = [](const TfhePublicKey& k) { return wire::to_bytes(*k.ptr); };
  add_to_bytes(key, bytes);
  add_save(key, bytes);
  key.def_prop_ro(
         "params", [](const TfhePublicKey& k) { return TfheParams{k.ptr->params}; },
         "Its parameters.")
      .def_prop_ro(
          "key_id", [](const TfhePublicKey& k) { return to_string(k.ptr->key_id()); },
          "The name of the secret key to which it belongs; see Client.key_id.")
      .def_prop_ro(
          "nbytes", [](const TfhePublicKey& k) { return k.ptr->bytes(); },
          "Its bytes: one word for each bit of the large key, and 32 for the seed of its masks.")
      .def("__repr__", [](const TfhePublicKey& k) {
        return "PublicKey(params='" + k.ptr->params->name() +
               "', nbytes=" + std::to_string(k.ptr->bytes()) + ")";
      });
  add_readers(key, [](std::span<const std::uint8_t> read, const tfhe::ParamsPtr& params,
                      const wire::Limits& limits) {
    return TfhePublicKey{std::make_shared<const lwe::PublicKey>(
        wire::tfhe_public_key_from_bytes(read, params, limits))};
  });
  share_copies(key);
}

void bind_compact(nb::module_& m) {
  nb::class_<TfheCompact> compact(
      m, "CompactCiphertext",
      R"(An encrypted array of messages or of integers, under a public key. Encryptor.encrypt makes it.

Evaluator.bind makes an encrypted array of it, and Client.decrypt decrypts it.

>>> client = tfhe.Client(tfhe.Params.preset("message_2_carry_2"))
>>> sent = tfhe.Encryptor(client.params, client.public_key()).encrypt([1, 2, 3]).to_bytes()
>>> client.decrypt(tfhe.CompactCiphertext.from_bytes(sent, client.params))
array([1, 2, 3]))");
  refuse_constructor(
      compact, "compact ciphertexts are made by Encryptor.encrypt and Encryptor.encrypt_uint");
  const auto bytes = [](const TfheCompact& a) { return wire::to_bytes(a.block); };
  add_to_bytes(compact, bytes);
  add_save(compact, bytes);
  compact
      .def_prop_ro(
          "params", [](const TfheCompact& a) { return TfheParams{a.block.params}; },
          "Its parameters.")
      .def_prop_ro(
          "key_id", [](const TfheCompact& a) { return to_string(a.block.key_id); },
          "The name of the secret key to which it belongs; see Client.key_id.")
      .def_prop_ro(
          "shape", [](const TfheCompact& a) { return shape_of(a.shape()); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "The shape of the array.")
      .def_prop_ro(
          "bits", [](const TfheCompact& a) { return int{a.block.layout->bits}; },
          "The width of integers, or 0 for messages.")
      .def_prop_ro(
          "is_signed", [](const TfheCompact& a) { return a.block.layout->is_signed; },
          "Whether integers have a sign.")
      .def_prop_ro(
          "largest", [](const TfheCompact& a) { return a.block.degree; },
          "The largest value that a digit can have, which was stated when it was encrypted.")
      .def_prop_ro(
          "nbytes", [](const TfheCompact& a) { return a.block.bytes(); }, "Bytes of its words.")
      .def("__repr__", [](const TfheCompact& a) {
        return "CompactCiphertext(" +
               described(a.shape(), a.block.layout->bits, a.block.layout->is_signed,
                         *a.block.params) +
               ")";
      });
  refuse_methods(compact,
                 {"__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__add__", "__radd__",
                  "__sub__", "__rsub__", "__mul__", "__rmul__"},
                 "a ciphertext alone cannot compute: x = evaluator.bind(ciphertext)");
  add_readers(compact, [](std::span<const std::uint8_t> read, const tfhe::ParamsPtr& params,
                          const wire::Limits& limits) {
    return laid(wire::tfhe_compact_from_bytes(read, params, limits));
  });
  share_copies(compact);
}

}  // namespace

void bind_tfhe_public(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  bind_public_key(m);
  bind_compact(m);
  nb::class_<TfheEncryptor>(m, "EncryptorCore", "See jali.tfhe.Encryptor.")
      .def(nb::init<const TfheParams&, const TfhePublicKey&, int>(), "params"_a, "key"_a,
           "threads"_a = 0, nogil())
      .def_prop_ro("params", &TfheEncryptor::params, "Its parameters.")
      .def_prop_ro("key_id", &TfheEncryptor::key_id, "The name of the secret key.")
      .def("encrypt", &TfheEncryptor::encrypt, "values"_a, "shape"_a, "bits"_a = 0,
           "is_signed"_a = false, "largest"_a = nb::none(),
           nb::sig("def encrypt(self, values: numpy.typing.NDArray[numpy.uint64], "
                   "shape: typing.Sequence[int], bits: int = 0, is_signed: bool = False, "
                   "largest: int | None = None) -> CompactCiphertext"));
}

}  // namespace jali::python
