// The side that holds the secret, and encryption under the public key.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bytes.h"
#include "discrete.h"
#include "files.h"
#include "interrupts.h"
#include "jali/rlwe/secret/key_generator.h"
#include "jali/rlwe/secret/secret_key.h"
#include "jali/schemes/discrete/encryptor.h"
#include "jali/schemes/discrete/make_ring.h"
#include "jali/schemes/discrete/secret/decryptor.h"
#include "jali/schemes/discrete/secret/encryptor.h"
#include "jali/wire/secret/secret_key.h"
#include "progress.h"

namespace jali::python {

using namespace nb::literals;

namespace {

/// (vectors, N) numbers.
using Numbers = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::shared_ptr<const ring::Ring> cpu_ring(const discrete::Params& params, int threads) {
  return discrete::make_ring(params, "cpu", threads == 0 ? default_threads() : threads,
                             backend::Variants{}, interrupts());
}

/// What the numbers of an array are declared to be.
discrete::Range declared(const discrete::Params& params, std::int64_t low, std::int64_t high,
                         bool wraps) {
  const discrete::NoiseModel noise(params);
  return wraps ? noise.residues() : noise.range(low, high);
}

/// Encodes and encrypts numbers with any encryptor. encrypt: from a plaintext and a level.
template <class Encrypt>
DiscreteArray encrypt_array(const discrete::ParamsPtr& params, const discrete::Encoder& encoder,
                            const Numbers& values, const discrete::Range& range, int level,
                            const std::optional<ViewTuple>& view, const Encrypt& encrypt) {
  level = checked_level(*params, level);
  require<InvalidArgument>(values.shape(1) == params->n(), "vectors have N numbers");
  const std::span<const std::int64_t> numbers(values.data(), values.size());
  const nb::gil_scoped_release release;
  return {encrypt(encoder.encode(numbers, values.shape(0), range), level), view, true};
}

/// A NumPy array (vectors, N) of numbers.
nb::object to_numpy(const SecretVector<std::int64_t>& numbers, std::size_t n) {
  auto data = std::make_unique<std::int64_t[]>(numbers.size());
  std::copy(numbers.begin(), numbers.end(), data.get());
  std::int64_t* raw = data.release();
  nb::capsule owner(raw, [](void* p) noexcept { delete[] static_cast<std::int64_t*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, std::int64_t>(raw, {numbers.size() / n, n}, owner));
}

/// Holds the secret key. Only secret_to_bytes returns it.
class DiscreteClient {
 public:
  DiscreteClient(const DiscreteParams& params, int threads, const std::string& device)
      : params_(params.ptr), host_(cpu_ring(*params_, threads)) {
    rlwe::KeyGenerator generator(params_, host_);
    adopt(std::make_shared<const rlwe::SecretKey>(generator.secret_key()), threads, device);
  }

  /// secret: its bytes or, if is_file, anything that load_from takes.
  DiscreteClient(nb::handle secret, const DiscreteParams& params, int threads,
                 const std::string& device, bool is_file)
      : params_(params.ptr), host_(cpu_ring(*params_, threads)) {
    const auto of_bytes = [&](std::span<const std::uint8_t> bytes) {
      return std::make_shared<const rlwe::SecretKey>(
          wire::secret_from_bytes(bytes, params_, *host_));
    };
    std::shared_ptr<const rlwe::SecretKey> key;
    if (is_file) {
      key = load_from(secret, of_bytes, [&](const wire::Source& source) {
        return of_bytes(wire::read_object<wire::SecretBytes>(source, {}));
      });
    } else {
      const BytesView view(secret);
      const nb::gil_scoped_release release;
      key = of_bytes(view.span());
    }
    const nb::gil_scoped_release release;
    adopt(std::move(key), threads, device);
  }

  void save_secret(nb::handle file) const {
    require<InvalidArgument>(!nb::hasattr(file, "write"),
                             "a secret key is saved to a path, so that nobody else can read the "
                             "file: for other places, see secret_to_bytes");
    const auto path = path_of(file, "a path");
    const nb::gil_scoped_release release;
    wire::save_secret(path, *kept_, *host_);
  }
  nb::bytes secret_to_bytes() const {
    return to_python_bytes([&] { return wire::secret_to_bytes(*kept_, *host_); });
  }

  std::string engine() const { return ring_->engine().name(); }
  DiscreteParams params() const { return {params_}; }
  std::string key_id() const { return rlwe::to_string(kept_->id()); }

  DiscreteArray encrypt(const Numbers& values, std::int64_t low, std::int64_t high, bool wraps,
                        int level, const std::optional<ViewTuple>& view) const {
    return encrypt_array(params_, *encoder_, values, declared(*params_, low, high, wraps), level,
                         view, [&](const discrete::Plaintext& p, int at) {
                           discrete::Ciphertext c = encryptor_->encrypt(p, at);
                           return is_on_host(c) ? std::move(c) : host_copy(c);
                         });
  }

  /// The residues modulo T of all slots. Which of them are elements, and lie in the array's range,
  /// is the caller's to check: slots that hold no element may hold any number.
  nb::object residues(const DiscreteArray& a, bool check) const {
    require_same(*params_, *a.block.params, "the ciphertext is");
    SecretVector<std::int64_t> numbers;
    {
      const nb::gil_scoped_release release;
      discrete::Ciphertext block = host_copy(a.block);
      block.estimate = discrete::NoiseModel(*params_).as_residues(a.block.estimate);
      numbers = decryptor_->decrypt(block, check ? discrete::Check::yes : discrete::Check::no);
    }
    return to_numpy(numbers, params_->n());
  }

  /// The largest coefficient and the largest slot of the noise.
  std::pair<double, double> noise(const DiscreteArray& a) const {
    require_same(*params_, *a.block.params, "the ciphertext is");
    const auto measured = decryptor_->measure(a.block);
    return {measured.coefficient, measured.slot};
  }

  DiscreteKeys evaluation_keys(const Rotations& rotations, bool swap, bool relinearise,
                               const std::optional<Progress>& progress) const {
    rlwe::KeyGenerator generator(params_, ring_);
    std::map<int, int> everywhere;  // every key serves every level
    for (const int steps : discrete_key_rotations(*params_, rotations)) {
      everywhere.emplace(steps, -1);
    }
    return kept(generator.evaluation_keys(*secret_, everywhere, swap ? -1 : rlwe::kNoKey,
                                          relinearise ? -1 : rlwe::kNoKey, with_gil(progress)));
  }

  DiscreteKeys keys_for(const DiscreteDemand& demand,
                        const std::optional<Progress>& progress) const {
    require_same(*params_, *demand.params, "the function's keys are");
    rlwe::KeyGenerator generator(params_, ring_);
    return kept(generator.keys_for(*secret_, demand.keys, with_gil(progress)));
  }

  DiscretePublicKey public_key() const {
    rlwe::KeyGenerator generator(params_, ring_);
    rlwe::PublicKey key = generator.public_key(*secret_);
    if (!on_host()) key = rlwe::host_copy(*ring_, key);
    return {std::make_shared<const rlwe::PublicKey>(std::move(key)), params_};
  }

 private:
  bool on_host() const { return ring_->memory().host_accessible(); }

  DiscreteKeys kept(rlwe::EvaluationKeys keys) const {
    if (!on_host()) keys = rlwe::host_copy(*ring_, keys);
    return {std::make_shared<const rlwe::EvaluationKeys>(std::move(keys)), params_};
  }

  /// Keeps the secret in the host's memory, where decryption needs it, and copies it to the device
  /// that makes keys and encrypts.
  void adopt(std::shared_ptr<const rlwe::SecretKey> secret, int threads,
             const std::string& device) {
    kept_ = secret_ = std::move(secret);
    ring_ = device == "cpu"
                ? host_
                : discrete::make_ring(*params_, device, threads == 0 ? default_threads() : threads,
                                      backend::Variants{}, interrupts());
    if (!on_host()) {
      secret_ = std::make_shared<const rlwe::SecretKey>(
          wire::secret_from_bytes(wire::secret_to_bytes(*kept_, *host_), params_, *ring_));
    }
    encoder_ = std::make_shared<const discrete::Encoder>(params_, ring_);
    encryptor_ = std::make_shared<discrete::SecretEncryptor>(secret_, ring_, params_);
    decryptor_ = std::make_shared<const discrete::Decryptor>(kept_, host_, params_);
  }

  discrete::ParamsPtr params_;
  std::shared_ptr<const ring::Ring> host_, ring_;
  std::shared_ptr<const rlwe::SecretKey> kept_, secret_;  // in the host's memory; in that of ring_
  std::shared_ptr<const discrete::Encoder> encoder_;
  std::shared_ptr<discrete::SecretEncryptor> encryptor_;
  std::shared_ptr<const discrete::Decryptor> decryptor_;
};

class DiscreteEncryptor {
 public:
  DiscreteEncryptor(const DiscretePublicKey& key, int threads)
      : key_id_(rlwe::to_string(key.ptr->key_id)),
        params_(key.params),
        ring_(cpu_ring(*params_, threads)),
        encoder_(params_, ring_),
        encryptor_(std::make_shared<discrete::PublicEncryptor>(key.ptr, ring_, params_)) {}

  DiscreteParams params() const { return {params_}; }
  std::string key_id() const { return key_id_; }

  DiscreteArray encrypt(const Numbers& values, std::int64_t low, std::int64_t high, bool wraps,
                        int level, const std::optional<ViewTuple>& view) const {
    return encrypt_array(
        params_, encoder_, values, declared(*params_, low, high, wraps), level, view,
        [&](const discrete::Plaintext& p, int at) { return encryptor_->encrypt(p, at); });
  }

 private:
  std::string key_id_;
  discrete::ParamsPtr params_;
  std::shared_ptr<const ring::Ring> ring_;
  discrete::Encoder encoder_;
  std::shared_ptr<discrete::PublicEncryptor> encryptor_;
};

constexpr const char* kEncrypt =
    "def encrypt(self, values: numpy.typing.NDArray[numpy.int64], low: int, high: int, "
    "wraps: bool, level: int, view: tuple[collections.abc.Sequence[tuple[int, int]], int, int] "
    "| None) -> Ciphertext";

}  // namespace

void bind_discrete_client(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<DiscreteClient>(m, "ClientCore", "See jali.discrete.Client.")
      .def(nb::init<const DiscreteParams&, int, const std::string&>(), "params"_a, "threads"_a = 0,
           "device"_a = "cpu", nogil())
      .def(nb::init<nb::handle, const DiscreteParams&, int, const std::string&, bool>(),
           "secret"_a.none(), "params"_a, "threads"_a, "device"_a, "is_file"_a)
      .def("save_secret", &DiscreteClient::save_secret, "file"_a.none())
      .def("secret_to_bytes", &DiscreteClient::secret_to_bytes)
      .def_prop_ro("engine", &DiscreteClient::engine, "Backend and instruction set.")
      .def_prop_ro("params", &DiscreteClient::params, "Its parameters.")
      .def_prop_ro("key_id", &DiscreteClient::key_id, "The name of the secret key.")
      .def("encrypt", &DiscreteClient::encrypt, "values"_a, "low"_a, "high"_a, "wraps"_a, "level"_a,
           "view"_a.none(), nb::sig(kEncrypt))
      .def("residues", &DiscreteClient::residues, "ciphertext"_a, "check"_a,
           nb::sig("def residues(self, ciphertext: Ciphertext, check: bool) -> "
                   "numpy.typing.NDArray[numpy.int64]"))
      .def("noise", &DiscreteClient::noise, "ciphertext"_a, nogil(),
           "The largest coefficient and the largest slot of the noise. It depends on the key.")
      .def("evaluation_keys", &DiscreteClient::evaluation_keys, "rotations"_a, "swap"_a,
           "relinearise"_a, "progress"_a = nb::none(), nogil())
      .def("keys_for", &DiscreteClient::keys_for, "demand"_a, "progress"_a = nb::none(), nogil())
      .def("public_key", &DiscreteClient::public_key, nogil());
  nb::class_<DiscreteEncryptor>(m, "EncryptorCore", "See jali.discrete.Encryptor.")
      .def(nb::init<const DiscretePublicKey&, int>(), "key"_a, "threads"_a = 0, nogil())
      .def_prop_ro("params", &DiscreteEncryptor::params, "Its parameters.")
      .def_prop_ro("key_id", &DiscreteEncryptor::key_id, "The name of the secret key.")
      .def("encrypt", &DiscreteEncryptor::encrypt, "values"_a, "low"_a, "high"_a, "wraps"_a,
           "level"_a, "view"_a.none(), nb::sig(kEncrypt));
}

}  // namespace jali::python
