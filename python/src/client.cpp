// The side that holds the secret, and public-key encryption.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arrays.h"
#include "binding.h"
#include "bytes.h"
#include "here.h"
#include "interrupts.h"
#include "jali/base/wipe.h"
#include "jali/wire/secret.h"
#include "packing.h"
#include "progress.h"
#include "trace.h"

namespace jali::python {

using namespace nb::literals;

namespace {

std::shared_ptr<const ring::Ring> cpu_ring(const params::CkksParams& params, int threads) {
  return ckks::make_ring(params, "cpu", threads == 0 ? default_threads() : threads, {},
                         interrupts());
}

/// Encodes and encrypts arrays with any encryptor; the part that both ways of encryption share.
template <class Encrypt>
ckks::Ciphertext encrypt_array(const params::CkksParamsPtr& params, const ckks::Encoder& encoder,
                               nb::handle values, int level, std::int64_t slots, double magnitude,
                               const Encrypt& encrypt) {
  const Vectors v(values);
  level = checked_level(*params, level);
  const int log_slots = checked_log_slots(*params, slots);
  const std::size_t capacity = std::size_t{1} << log_slots;
  require<InvalidArgument>(v.count() <= capacity, [&] {
    return "a vector of " + std::to_string(v.count()) + " numbers does not fit " +
           std::to_string(capacity) +
           " slots: split it into rows of a batch, or use a larger log_n";
  });
  require<InvalidArgument>(std::isfinite(magnitude) && magnitude > 0,
                           "magnitude must be a positive number: the size of the values at large");
  const double scale = params->level(level).scale;
  nb::gil_scoped_release release;
  const ckks::Plaintext plaintext =
      v.is_complex() ? encoder.encode(v.complex(), v.batch(), level, scale, log_slots)
                     : encoder.encode(v.real(), v.batch(), level, scale, log_slots);
  if (params->bootstrap()) {
    double largest = 0;
    if (v.is_complex()) {
      for (const auto& z : v.complex()) largest = std::max(largest, std::abs(z));
    } else {
      for (const double x : v.real()) largest = std::max(largest, std::fabs(x));
    }
    ckks::check_declared(*params, largest, magnitude);
  }
  ckks::Ciphertext out = encrypt(plaintext);
  out.packing.length = v.count() == capacity ? 0 : static_cast<std::uint32_t>(v.count());
  out.packing.batched = v.batched();
  out.packing.complex_values = v.is_complex();
  out.packing.padded = v.count() < capacity;
  return out;
}

/// Holds the secret key. No method gives it away but secret_to_bytes.
class Client {
 public:
  /// trace: whether what the device does from then on is recorded (benchmarks).
  Client(const Params& params, int threads, const std::string& device, bool trace)
      : params_(params.ptr),
        host_(cpu_ring(*params_, threads)),
        trace_(trace ? std::make_shared<backend::Trace>() : nullptr) {
    rlwe::KeyGenerator generator(params_, host_);
    adopt(std::make_shared<const rlwe::SecretKey>(generator.secret_key()), threads, device);
  }

  Client(nb::handle secret, const Params& params, int threads, const std::string& device)
      : params_(params.ptr), host_(cpu_ring(*params_, threads)) {
    const BytesView view(secret);
    nb::gil_scoped_release release;
    adopt(std::make_shared<const rlwe::SecretKey>(
              wire::secret_from_bytes(view.span(), params_, *host_)),
          threads, device);
  }

  nb::bytes secret_to_bytes() const {
    return to_python_bytes([&] { return wire::secret_to_bytes(*kept_, *host_); });
  }
  std::string engine() const { return ring_->ops().name(); }
  std::optional<Trace> trace() const {
    if (trace_ == nullptr) return std::nullopt;
    return Trace{trace_};
  }

  Params params() const { return {params_}; }

  ckks::Ciphertext encrypt(nb::handle values, int level, std::int64_t slots, double magnitude) {
    return encrypt_array(params_, *encoder_, values, level, slots, magnitude,
                         [&](const ckks::Plaintext& p) {
                           ckks::Ciphertext c = encryptor_->encrypt(p, magnitude);
                           return is_on_host(c) ? std::move(c) : host_copy(c);
                         });
  }

  nb::object decrypt(const ckks::Ciphertext& c, std::size_t length, bool complex_values) const {
    require_same(*params_, *c.params, "the ciphertext is");
    std::vector<std::complex<double>> values;
    const WipedAtEnd wiped(values);
    {
      nb::gil_scoped_release release;
      values = encoder_->decode(decryptor_->decrypt(c));
    }
    return to_numpy(values, c.batch(), length, is_batched(c), complex_values);
  }

  nb::object release(const ckks::Ciphertext& c, const ckks::ReleasePolicy& policy,
                     std::size_t length, bool complex_values) const {
    require_same(*params_, *c.params, "the ciphertext is");
    ckks::flooding_std(policy, std::size_t{1} << c.log_slots);  // refuses a policy before any work
    std::vector<std::complex<double>> values;
    const WipedAtEnd wiped(values);
    {
      nb::gil_scoped_release release;
      values = encoder_->decode(decryptor_->decrypt(c));
      ckks::flood(values, policy);
    }
    return to_numpy(values, c.batch(), length, is_batched(c), complex_values);
  }

  /// bootstrap: numbers of slots of the values that will be bootstrapped, 0 for all of them.
  EvaluationKeys evaluation_keys(const std::vector<int>& rotations, bool conjugate,
                                 bool relinearise, const std::vector<std::int64_t>& bootstrap,
                                 bool minimum, const std::optional<Progress>& progress) const {
    rlwe::KeyGenerator generator(params_, ring_);
    const auto plans = bootstrap_plans(params_, bootstrap, minimum);
    const auto wanted =
        minimum ? ckks::composing_rotations(rotations, params_->slots()) : rotations;
    auto keys = plans.empty() ? generator.evaluation_keys(*secret_, wanted, conjugate, relinearise)
                              : bootstrap::evaluation_keys(generator, *secret_, plans, wanted,
                                                           conjugate, with_gil(progress));
    if (!on_host()) keys = rlwe::host_copy(*ring_, keys);
    return {std::make_shared<const rlwe::EvaluationKeys>(std::move(keys))};
  }

  PublicKey public_key() const {
    rlwe::KeyGenerator generator(params_, ring_);
    rlwe::PublicKey key = generator.public_key(*secret_);
    if (!on_host()) key = rlwe::host_copy(*ring_, key);
    return {std::make_shared<const rlwe::PublicKey>(std::move(key))};
  }

 private:
  bool on_host() const { return ring_->memory().host_accessible(); }

  /// The secret in the host's memory, and where the work is done.
  void adopt(std::shared_ptr<const rlwe::SecretKey> secret, int threads,
             const std::string& device) {
    kept_ = secret_ = std::move(secret);
    ring_ = device == "cpu"
                ? host_
                : ckks::make_ring(*params_, device, threads == 0 ? default_threads() : threads, {},
                                  interrupts());
    if (trace_ != nullptr) ring_ = traced(ring_, trace_);
    if (!on_host()) {
      secret_ = std::make_shared<const rlwe::SecretKey>(
          wire::secret_from_bytes(wire::secret_to_bytes(*kept_, *host_), params_, *ring_));
    }
    encoder_ = std::make_unique<ckks::Encoder>(params_, ring_);
    encryptor_ = std::make_unique<ckks::SecretEncryptor>(secret_, ring_);
    decryptor_ = std::make_unique<ckks::Decryptor>(secret_, ring_);
  }

  params::CkksParamsPtr params_;
  std::shared_ptr<const ring::Ring> host_, ring_;
  std::shared_ptr<backend::Trace> trace_;  // null without one
  std::shared_ptr<const rlwe::SecretKey> kept_, secret_;  // in the host's memory; where ring_ is
  std::unique_ptr<ckks::Encoder> encoder_;
  std::unique_ptr<ckks::SecretEncryptor> encryptor_;
  std::unique_ptr<ckks::Decryptor> decryptor_;
};

class Encryptor {
 public:
  Encryptor(const PublicKey& key, int threads)
      : params_(key.ptr->params),
        ring_(cpu_ring(*params_, threads)),
        encoder_(params_, ring_),
        encryptor_(key.ptr, ring_) {}

  Params params() const { return {params_}; }

  ckks::Ciphertext encrypt(nb::handle values, int level, std::int64_t slots, double magnitude) {
    return encrypt_array(
        params_, encoder_, values, level, slots, magnitude,
        [&](const ckks::Plaintext& p) { return encryptor_.encrypt(p, magnitude); });
  }

 private:
  params::CkksParamsPtr params_;
  std::shared_ptr<const ring::Ring> ring_;
  ckks::Encoder encoder_;
  ckks::PublicEncryptor encryptor_;
};

}  // namespace

void bind_client(nb::module_& m) {
  using nogil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<ckks::ReleasePolicy>(m, "ReleasePolicy",
                                  R"(What the owner declares before results are shared.

error_bound: a bound on |error| of every slot that holds for all inputs of the circuit, in message
    units; see worst_case_error.
releases: decryptions under this key that will be released in all, the repeated ones included.
statistical_bits: security of the secret key over all of them.)")
      .def(
          "__init__",
          [](ckks::ReleasePolicy* self, double error_bound, double releases, int statistical_bits) {
            new (self) ckks::ReleasePolicy{error_bound, releases, statistical_bits};
          },
          nb::kw_only(), "error_bound"_a, "releases"_a = 1.0, "statistical_bits"_a = 40)
      .def_ro("error_bound", &ckks::ReleasePolicy::error_bound, "Bound on a slot's error.")
      .def_ro("releases", &ckks::ReleasePolicy::releases, "Releases in all.")
      .def_ro("statistical_bits", &ckks::ReleasePolicy::statistical_bits, "Bits of security.")
      .def(
          "noise_std",
          [](const ckks::ReleasePolicy& p, std::size_t slots) {
            return ckks::flooding_std(p, slots);
          },
          "slots"_a, "Standard deviation of the noise that release adds to each part of a slot.")
      .def("__repr__", [](const ckks::ReleasePolicy& p) {
        char text[120];
        std::snprintf(text, sizeof(text),
                      "ReleasePolicy(error_bound=%g, releases=%g, statistical_bits=%d)",
                      p.error_bound, p.releases, p.statistical_bits);
        return std::string(text);
      });
  m.def(
      "worst_case_error", &ckks::worst_case_error, "ciphertext"_a,
      R"(A bound on |error| of a slot by the ciphertext's own estimate, at failure probability 2^-128.

Right for circuits whose inputs stay within the magnitudes declared at encryption.)");
  nb::class_<Client>(m, "ClientCore", "See jali.ckks.Client.")
      .def(nb::init<const Params&, int, const std::string&, bool>(), "params"_a, "threads"_a = 0,
           "device"_a = "cpu", "trace"_a = false, nogil())
      .def(nb::init<nb::handle, const Params&, int, const std::string&>(), "secret"_a.none(),
           "params"_a, "threads"_a = 0, "device"_a = "cpu")
      .def_prop_ro("engine", &Client::engine, "Backend and instruction set.")
      .def_prop_ro("trace", &Client::trace, "The recording, or None without one.")
      .def("secret_to_bytes", &Client::secret_to_bytes)
      .def_prop_ro("params", &Client::params, "Its parameters.")
      .def("encrypt", &Client::encrypt, "values"_a.none(), "level"_a = -1, "slots"_a = 0,
           "magnitude"_a = 1.0)
      .def(
          "decrypt", &Client::decrypt, "ciphertext"_a, "length"_a, "complex_values"_a,
          nb::sig("def decrypt(self, ciphertext: Ciphertext, length: int, complex_values: bool) -> "
                  "numpy.typing.NDArray[typing.Any]"))
      .def("release", &Client::release, "ciphertext"_a, "policy"_a, "length"_a, "complex_values"_a,
           nb::sig("def release(self, ciphertext: Ciphertext, policy: ReleasePolicy, length: int, "
                   "complex_values: bool) -> numpy.typing.NDArray[typing.Any]"))
      .def("evaluation_keys", &Client::evaluation_keys, "rotations"_a, "conjugate"_a,
           "relinearise"_a, "bootstrap"_a, "minimum"_a = false, "progress"_a = nb::none(), nogil())
      .def("public_key", &Client::public_key, nogil());
  nb::class_<Encryptor>(m, "EncryptorCore", "See jali.ckks.Encryptor.")
      .def(nb::init<const PublicKey&, int>(), "key"_a, "threads"_a = 0, nogil())
      .def_prop_ro("params", &Encryptor::params, "Its parameters.")
      .def("encrypt", &Encryptor::encrypt, "values"_a.none(), "level"_a = -1, "slots"_a = 0,
           "magnitude"_a = 1.0);
}

}  // namespace jali::python
