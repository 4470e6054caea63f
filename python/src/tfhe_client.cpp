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
#include "jali/base/secret_vector.h"
#include "jali/base/wipe.h"
#include "jali/tfhe/secret/client.h"
#include "jali/wire/secret/tfhe_secret_key.h"
#include "progress.h"
#include "tfhe.h"

namespace jali::python {

using namespace nb::literals;

namespace {

/// Numbers that the Python side has checked: C-contiguous words of 64 bits.
using Words = nb::ndarray<const std::uint64_t, nb::c_contig, nb::device::cpu, nb::ndim<1>>;

class TfheClient {
 public:
  TfheClient(const TfheParams& params, int threads)
      : client_(params.ptr, threads == 0 ? default_threads() : threads) {}

  /// secret: its bytes or, if is_file, anything that load_from takes.
  TfheClient(nb::handle secret, const TfheParams& params, int threads, bool is_file)
      : client_(secret_of(secret, params, is_file), threads == 0 ? default_threads() : threads) {}

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
  std::string key_id() const { return to_string(client_.key_id()); }

  TfheKeys evaluation_keys(const std::optional<Progress>& progress) {
    auto keys = client_.evaluation_keys(false, with_gil(progress), interrupts());
    return {std::make_shared<const lwe::EvaluationKeys>(std::move(keys))};
  }

  /// values: messages or, if bits is not 0, integers modulo 2^bits. shape: of the array that they are.
  TfheArray encrypt(const Words& values, std::vector<std::size_t> shape, int bits, bool is_signed,
                    std::optional<std::uint64_t> largest) {
    const std::span<const std::uint64_t> words(values.data(), values.size());
    nb::gil_scoped_release release;
    tfhe::Ciphertext block =
        bits == 0 ? client_.encrypt(words, largest) : client_.encrypt(digits_of(words, bits));
    return {std::move(block), std::move(shape), bits, is_signed};
  }

  /// Messages, or integers modulo 2^64, with their signs, in memory that Python owns and that is wiped.
  nb::object decrypt(const TfheArray& a, bool check) const {
    auto words = std::make_unique<SecretVector<std::uint64_t>>();
    {
      nb::gil_scoped_release release;
      std::vector<std::uint64_t> digits =
          client_.decrypt(a.block, check ? tfhe::Check::yes : tfhe::Check::no);
      const WipedAtEnd wiped(digits);
      *words = words_of(digits, a);
    }
    auto* const data = words.get();
    nb::capsule owner(
        data, [](void* p) noexcept { delete static_cast<SecretVector<std::uint64_t>*>(p); });
    words.release();
    return nb::cast(
        nb::ndarray<nb::numpy, std::uint64_t, nb::ndim<1>>(data->data(), {data->size()}, owner));
  }

 private:
  std::size_t message_bits() const {
    return static_cast<std::size_t>(client_.params()->message_bits());
  }
  /// The digits of integers of so many bits, those of one together, the lowest first.
  SecretVector<std::uint64_t> digits_of(std::span<const std::uint64_t> words, int bits) const {
    const std::size_t m = message_bits(), count = (static_cast<std::size_t>(bits) + m - 1) / m;
    SecretVector<std::uint64_t> out(words.size() * count);
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = words[i / count] >> (i % count * m) & ((std::uint64_t{1} << m) - 1);
    }
    return out;
  }
  /// The messages or, of integers, the sums of their digits modulo 2^bits, with the sign in every bit above.
  SecretVector<std::uint64_t> words_of(std::span<const std::uint64_t> digits,
                                       const TfheArray& a) const {
    if (a.bits == 0) return {digits.begin(), digits.end()};
    const std::size_t m = message_bits(), count = a.layout().digits(*client_.params());
    SecretVector<std::uint64_t> out(digits.size() / count);
    for (std::size_t i = 0; i < digits.size(); ++i) {
      out[i / count] += digits[i] << (i % count * m);
    }
    const int unused = 64 - a.bits;
    for (std::uint64_t& word : out) {
      word <<= unused;
      word = a.is_signed ? static_cast<std::uint64_t>(static_cast<std::int64_t>(word) >> unused)
                         : word >> unused;
    }
    return out;
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
      .def(nb::init<const TfheParams&, int>(), "params"_a, "threads"_a = 0, nogil())
      .def(nb::init<nb::handle, const TfheParams&, int, bool>(), "secret"_a.none(), "params"_a,
           "threads"_a, "is_file"_a)
      .def("save_secret", &TfheClient::save_secret, "file"_a.none())
      .def("secret_to_bytes", &TfheClient::secret_to_bytes)
      .def_prop_ro("params", &TfheClient::params, "Its parameters.")
      .def_prop_ro("key_id", &TfheClient::key_id, "The name of the secret key.")
      .def("evaluation_keys", &TfheClient::evaluation_keys, "progress"_a = nb::none(), nogil())
      .def("encrypt", &TfheClient::encrypt, "values"_a, "shape"_a, "bits"_a = 0,
           "is_signed"_a = false, "largest"_a = nb::none(),
           nb::sig("def encrypt(self, values: numpy.typing.NDArray[numpy.uint64], "
                   "shape: typing.Sequence[int], bits: int = 0, is_signed: bool = False, "
                   "largest: int | None = None) -> Ciphertext"))
      .def("decrypt", &TfheClient::decrypt, "ciphertext"_a, "check"_a,
           nb::sig("def decrypt(self, ciphertext: Ciphertext, check: bool) -> "
                   "numpy.typing.NDArray[numpy.uint64]"));
}

}  // namespace jali::python
