// The side that holds the secret key of TFHE.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "bytes.h"
#include "files.h"
#include "interrupts.h"
#include "jali/api/threads.h"
#include "jali/backend/secret/tfhe_client_ops.h"
#include "jali/base/secret_vector.h"
#include "jali/base/wipe.h"
#include "jali/schemes/tfhe/secret/client.h"
#include "jali/wire/secret/tfhe_secret_key.h"
#include "progress.h"
#include "tfhe.h"
#include "tfhe_numbers.h"

namespace jali::python {

using namespace nb::literals;

namespace {

/// Numbers that the Python side has checked: C-contiguous words of 64 bits.
using Words = nb::ndarray<const std::uint64_t, nb::c_contig, nb::device::cpu, nb::ndim<1>>;

class TfheClient {
 public:
  TfheClient(const TfheParams& params, int threads, const std::string& device)
      : client_(params.ptr, engine_of(params, threads, device)) {}

  /// secret: its bytes or, if is_file, anything that load_from takes.
  TfheClient(nb::handle secret, const TfheParams& params, int threads, const std::string& device,
             bool is_file)
      : client_(secret_of(secret, params, is_file), engine_of(params, threads, device)) {}

  void save_secret(nb::handle file) const {
    require<InvalidArgument>(!nb::hasattr(file, "write"),
                             "a secret key is saved to a path, so that nobody else can read the "
                             "file: for other places, see secret_to_bytes");
    const auto path = path_of(file, "a path");
    const nb::gil_scoped_release release;
    wire::save_secret(path, client_.secret_key());
  }
  nb::bytes secret_to_bytes() const {
    return to_python_bytes([&] { return wire::secret_to_bytes(client_.secret_key()); });
  }

  TfheParams params() const { return {client_.params()}; }
  std::string engine() const { return client_.engine().name(); }
  std::string key_id() const { return to_string(client_.key_id()); }

  TfheKeys evaluation_keys(const std::optional<Progress>& progress) {
    auto keys = client_.evaluation_keys(false, with_gil(progress), interrupts());
    return {std::make_shared<const lwe::EvaluationKeys>(std::move(keys))};
  }

  /// values: messages or, if bits is not 0, integers modulo 2^bits. shape: of the array that they
  /// are.
  TfheArray encrypt(const Words& values, std::vector<std::size_t> shape, int bits, bool is_signed,
                    std::optional<std::uint64_t> largest) {
    const std::span<const std::uint64_t> words(values.data(), values.size());
    nb::gil_scoped_release release;
    tfhe::Ciphertext block = bits == 0 ? client_.encrypt(words, largest)
                                       : client_.encrypt(digits_of(words, bits, *client_.params()));
    return {std::move(block), std::move(shape), bits, is_signed};
  }

  nb::object decrypt(const TfheArray& a, bool check) const {
    return decrypted(a.block, a.layout(), check);
  }
  nb::object decrypt_compact(const TfheCompact& a, bool check) const {
    return decrypted(a.block, *a.block.layout, check);
  }

  TfhePublicKey public_key() {
    return {std::make_shared<const lwe::PublicKey>(client_.public_key())};
  }

 private:
  /// Messages, or integers modulo 2^64, with their signs, in memory that Python owns and that is
  /// wiped.
  template <class Ciphertext>
  nb::object decrypted(const Ciphertext& block, const tfhe::Layout& layout, bool check) const {
    auto words = std::make_unique<SecretVector<std::uint64_t>>();
    {
      nb::gil_scoped_release release;
      std::vector<std::uint64_t> digits =
          client_.decrypt(block, check ? tfhe::Check::yes : tfhe::Check::no);
      const WipedAtEnd wiped(digits);
      *words = words_of(digits, layout, *client_.params());
    }
    auto* const data = words.get();
    nb::capsule owner(
        data, [](void* p) noexcept { delete static_cast<SecretVector<std::uint64_t>*>(p); });
    words.release();
    return nb::cast(
        nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>>(data->data(), {data->size()}, owner));
  }
  static std::shared_ptr<const backend::TfheClientOps> engine_of(const TfheParams& params,
                                                                 int threads,
                                                                 const std::string& device) {
    return backend::make_tfhe_client_engine(
        params.ptr->config(threads == 0 ? default_threads() : threads), device);
  }
  static std::shared_ptr<const lwe::SecretKey> secret_of(nb::handle secret,
                                                         const TfheParams& params, bool is_file) {
    const auto of_bytes = [&](std::span<const std::uint8_t> bytes) {
      return std::make_shared<const lwe::SecretKey>(
          wire::tfhe_secret_from_bytes(bytes, params.ptr));
    };
    if (is_file) {
      return load_from(secret, of_bytes, [&](const wire::Source& source) {
        return of_bytes(wire::read_object<wire::SecretBytes>(source, {}));
      });
    }
    const BytesView view(secret);
    const nb::gil_scoped_release release;
    return of_bytes(view.span());
  }

  tfhe::Client client_;
};

}  // namespace

void bind_tfhe_client(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<TfheClient>(m, "ClientCore", "See jali.tfhe.Client.")
      .def(nb::init<const TfheParams&, int, const std::string&>(), "params"_a, "threads"_a = 0,
           "device"_a = "cpu", nogil())
      .def(nb::init<nb::handle, const TfheParams&, int, const std::string&, bool>(),
           "secret"_a.none(), "params"_a, "threads"_a, "device"_a, "is_file"_a)
      .def("save_secret", &TfheClient::save_secret, "file"_a.none())
      .def("secret_to_bytes", &TfheClient::secret_to_bytes)
      .def_prop_ro("params", &TfheClient::params, "Its parameters.")
      .def_prop_ro("engine", &TfheClient::engine, "Its engine.")
      .def_prop_ro("key_id", &TfheClient::key_id, "The name of the secret key.")
      .def("evaluation_keys", &TfheClient::evaluation_keys, "progress"_a = nb::none(), nogil())
      .def("encrypt", &TfheClient::encrypt, "values"_a, "shape"_a, "bits"_a = 0,
           "is_signed"_a = false, "largest"_a = nb::none(),
           nb::sig("def encrypt(self, values: numpy.typing.NDArray[numpy.uint64], "
                   "shape: typing.Sequence[int], bits: int = 0, is_signed: bool = False, "
                   "largest: int | None = None) -> Ciphertext"))
      .def("public_key", &TfheClient::public_key, nogil())
      .def("decrypt_compact", &TfheClient::decrypt_compact, "ciphertext"_a, "check"_a,
           nb::sig("def decrypt_compact(self, ciphertext: CompactCiphertext, check: bool) -> "
                   "numpy.typing.NDArray[numpy.uint64]"))
      .def("decrypt", &TfheClient::decrypt, "ciphertext"_a, "check"_a,
           nb::sig("def decrypt(self, ciphertext: Ciphertext, check: bool) -> "
                   "numpy.typing.NDArray[numpy.uint64]"));
}

}  // namespace jali::python
